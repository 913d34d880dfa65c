"""The networks that the figures are about: transformers' own classes with random weights, seed 0."""

from __future__ import annotations

from typing import Any

#: Name to how people write it; the first four are what is asked of in full, the others are small.
NAMES = {
    "mobilenet_v2": "MobileNetV2",
    "resnet_50": "ResNet-50",
    "vit_base": "ViT-base",
    "bert_base": "BERT-base",
    "mobilenet_small": "a small MobileNetV2",
    "vit_small": "a small ViT",
}

_SMALL_VIT = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "image_size": 64,
}


def make(name: str, **options: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a network in eval mode, and one sample of example inputs.

    Args:
        options: of its configuration, on top of what the name says.
    """
    import torch
    import transformers

    torch.manual_seed(0)
    if name.startswith("mobilenet"):
        small = {"image_size": 64, "depth_multiplier": 0.35} if name == "mobilenet_small" else {}
        config = transformers.MobileNetV2Config(**{**small, **options})
        return transformers.MobileNetV2ForImageClassification(config).eval(), (_image(config.image_size),)
    if name == "resnet_50":
        return transformers.ResNetForImageClassification(transformers.ResNetConfig(**options)).eval(), (_image(224),)
    if name.startswith("vit"):
        config = transformers.ViTConfig(**{**(_SMALL_VIT if name == "vit_small" else {}), **options})
        return transformers.ViTForImageClassification(config).eval(), (_image(config.image_size),)
    if name == "bert_base":
        config = transformers.BertConfig(**options)
        return transformers.BertModel(config).eval(), (torch.randint(config.vocab_size, (1, 64)),)
    raise ValueError(f"there is no network {name!r}; there are {', '.join(NAMES)}")


def _image(size: int) -> Any:
    import torch

    return torch.randn(1, 3, size, size)
