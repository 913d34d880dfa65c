"""Graphs for Model Explorer: whole, wired, with delegates as layers and branches as graphs, in its own form."""

import re
import sys

import pytest
from models import made

import etgraph
from etgraph.registry import registry

pytest.importorskip("model_explorer")


def collection(artifact):
    made = registry.service("model_explorer")(artifact, "label")
    assert made["label"] == "label"
    for graph in made["graphs"]:
        ids = [node["id"] for node in graph["nodes"]]
        assert len(ids) == len(set(ids))
        sources = {edge["sourceNodeId"] for node in graph["nodes"] for edge in node["incomingEdges"]}
        assert sources <= set(ids)
    return {graph["id"]: {node["id"]: node for node in graph["nodes"]} for graph in made["graphs"]}


def run(name, recipe="xnnpack_fp32", **more):
    model, inputs, rest = made(name)
    return etgraph.run(model, inputs, recipe, **rest, **more)


def attributes(node):
    return {one["key"]: one["value"] for one in node["attrs"]}


def reached(nodes, start):
    """Every node that leads to one."""
    found, waiting = set(), [start]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [edge["sourceNodeId"] for edge in nodes[node]["incomingEdges"]]
    return found


def test_an_exported_program_has_its_operators_its_layers_and_its_lines():
    (graph,) = collection(run("conv", to="exported").artifact).values()
    convolution = graph["conv2d"]
    assert convolution["label"] == "aten.conv2d.default"
    assert convolution["namespace"] == "ConvNet/Conv2d conv"
    assert "x = F.relu6(self.norm(self.conv(x)))" in attributes(convolution)["model source"]
    assert convolution["outputsMetadata"][0]["attrs"][0]["value"] == "float32[1, 8, 10, 10]"
    assert attributes(graph["p_conv_weight"])["parameter"] == "conv.weight"
    assert graph["p_conv_weight"]["namespace"] == "inputs"
    assert {"x", "p_head_bias", "conv2d", "linear"} <= reached(graph, "output")


def test_a_delegate_is_a_layer_and_the_data_flows_through_it():
    artifact = run("conv")["lowered"]
    (graph,) = collection(artifact).values()
    inside = [node for node in graph.values() if node["namespace"].startswith("lowered_module_0 (XnnpackBackend)")]
    assert {"aten.convolution.default", "aten.hardtanh.default"} <= {node["label"] for node in inside}
    call = graph["executorch_call_delegate"]
    assert call["label"] == "outputs of XnnpackBackend"
    assert attributes(call)["backend"] == "XnnpackBackend"
    assert int(attributes(call)["bytes"]) > 100
    assert "x" in reached(graph, "output")
    operators = [node for node in graph.values() if "operator" in attributes(node)]
    taken = registry.service("delegation")(artifact)["forward"]
    inside = [node for node in operators if "XnnpackBackend" in node["namespace"] and node["label"].startswith("aten")]
    assert len(inside) == taken["backends"][0]["nodes"]


def test_several_methods_are_several_graphs_at_every_kind():
    result = run("methods")
    for kind in ("exported", "lowered", "executorch"):
        graphs = collection(result[kind])
        assert list(graphs) == ["encode", "decode"]
        assert graphs["encode"] != graphs["decode"]


def test_branches_are_graphs_that_their_operator_leads_to():
    graphs = collection(run("branching", "portable", to="edge").artifact)
    main, *branches = graphs
    assert graphs[main]["cond"]["subgraphIds"] == branches
    assert len(branches) == 2
    assert any("aten.add" in node["label"] for node in graphs[branches[1]].values())


def test_dynamic_sizes_are_shown_by_their_names():
    (graph,) = collection(run("dynamic", to="exported").artifact).values()
    shown = graph["linear"]["outputsMetadata"][0]["attrs"][0]["value"]
    assert re.fullmatch(r"float32\[s\d+, 3\]", shown), shown


def test_a_pte_shows_its_calls_in_order_and_what_they_read_and_write():
    (graph,) = collection(run("conv", "portable").artifact).values()
    labels = [node["label"] for node in graph.values()]
    assert labels[0] == "input 0"
    assert labels[-1] == "outputs"
    order = [label for label in labels if label in ("aten::convolution.out", "aten::mean.out", "aten::addmm.out")]
    assert order == ["aten::convolution.out"] * 2 + ["aten::mean.out", "aten::addmm.out"]
    assert "input 0" in reached(graph, "outputs")
    assert {label for label in labels if label.startswith("aten::")} <= {
        graph[node]["label"] for node in reached(graph, "outputs")
    }
    constants = [node for node in graph.values() if node["namespace"] == "constants"]
    assert all(node["outputsMetadata"][0]["attrs"][0]["value"].startswith("float[") for node in constants)
    delegated = collection(run("conv").artifact)["forward"].values()
    assert "delegate 0 (XnnpackBackend)" in {node["namespace"] for node in delegated}


def test_a_prepared_program_has_its_observers():
    model, inputs, _ = made("conv")
    prepared = etgraph.run(
        model, inputs, "xnnpack_pt2e_int8_static_per_tensor", "prepared", calibration_inputs=[inputs]
    )
    (graph,) = collection(prepared.artifact).values()
    assert any("activation_post_process" in node["label"] for node in graph.values())


def test_a_module_is_refused_and_a_missing_package_is_named(monkeypatch):
    result = run("conv", to="exported")
    with pytest.raises(etgraph.UsageError, match="no graph to show yet"):
        collection(result["module"])
    monkeypatch.setitem(sys.modules, "model_explorer", None)
    with pytest.raises(etgraph.UsageError, match=r"etgraph\[model-explorer\]"):
        collection(result.artifact)
