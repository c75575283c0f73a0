"""Deep Speech 2 as bundles: batch norms folded, convolutions over frequency, every cell."""

from pathlib import Path
from typing import Any

import onnx
import pytest

from nearfuture.budget import deep_speech_2_research
from nearfuture.export import ModelCard, export_bundle
from nearfuture.export.graphs.offline import OfflineGraph
from nearfuture.model import Recognizer
from nearfuture.runtime import load
from tests.export.conftest import settled
from tests.waveform import assert_stream_equals_torch, signals


def operators(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path, load_external_data=False).graph.node]


def test_the_deployed_model_streams_from_a_bundle(
    deep_speech_2: Recognizer, deep_speech_2_folder: Path
) -> None:
    model = load(deep_speech_2_folder)
    latency = model.budgets[3]
    assert [(item.name, item.ms) for item in latency.items] == [
        ("window", 20),
        ("convolution 1", 50),
        ("convolution 2", 100),
        ("lookahead", 120),
    ]
    assert (model.manifest.frame_ms, model.manifest.centre_ms) == (40, 10)
    assert_stream_equals_torch(model, deep_speech_2, signals(1.3)["speech"])
    step = operators(deep_speech_2_folder / "step.onnx")
    # Two convolutions; the cells of both layers run once a quantum.
    assert (step.count("Conv"), step.count("Tanh")) == (2, 2)


@pytest.mark.parametrize(
    ("cell", "options"),
    [
        ("rnn", {"activations": ["Relu", "Relu"], "clip": 20.0}),
        ("gru", {"linear_before_reset": 1}),
        ("lstm", {}),
    ],
)
def test_the_operator_of_a_cell_has_its_gates_and_options(
    cell: Any, options: dict[str, Any]
) -> None:
    config = deep_speech_2_research(symbols=tuple("abc"), cell=cell)
    graph = OfflineGraph(settled(config))
    (recurrence,) = (part for part in graph.modules() if hasattr(part, "operator"))
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[cell]
    assert (recurrence.operator, recurrence.options) == (cell.upper(), options)
    assert recurrence.weight.shape == (2, gates * 8, recurrence.weight.shape[2])
    assert recurrence.bias.shape == (2, 2 * gates * 8)


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_the_research_model_runs_from_a_bundle(cell: Any, tmp_path: Path) -> None:
    reference = settled(deep_speech_2_research(symbols=tuple("abc"), cell=cell))
    model = load(export_bundle(reference, tmp_path / "model", ModelCard(name="x")))
    assert model.manifest.kind == "bidirectional"
    assert operators(tmp_path / "model" / "offline.onnx").count(cell.upper()) == 1
