"""Deep Speech 2 as bundles: batch norms folded, convolutions over frequency, every cell."""

import dataclasses
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

from nearfuture.budget import (
    RecognizerConfig,
    deep_speech_2_deployed,
    deep_speech_2_research,
)
from nearfuture.export import ModelCard, export_bundle
from nearfuture.layers import SequenceBatchNorm
from nearfuture.model import Recognizer
from nearfuture.runtime import load
from tests.waveform import assert_stream_equals_torch, signals


def settled(
    config: RecognizerConfig, *, hidden: int = 8, layers: int = 1, channels: int = 2
) -> Recognizer:
    """A narrow model whose batch norms have seen some noise."""
    torch.manual_seed(0)
    shapes = tuple(dataclasses.replace(shape, channels=channels) for shape in config.convolutions)
    model = Recognizer(config.replace(rate=8000, convolutions=shapes, hidden=hidden, layers=layers))
    features, n = model.features(0.1 * torch.randn(2, 8000, 1), torch.tensor([8000, 5000]))
    model.features.fit(features[0])
    for _ in range(5):
        model(2 * torch.randn_like(features) + 1, n)
    norms = [module for module in model.modules() if isinstance(module, SequenceBatchNorm)]
    assert all(bool((norm.running_var != 1).all()) for norm in norms)
    return model.eval()


def exported(model: Recognizer, folder: Path) -> Path:
    """The bundle, which the export has compared with torch."""
    return export_bundle(model, folder / "model", ModelCard(name="x"), trainable=True)


def operators(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path, load_external_data=False).graph.node]


def test_the_deployed_model_streams_from_a_bundle(tmp_path: Path) -> None:
    reference = settled(deep_speech_2_deployed(symbols=tuple("abc")))
    model = load(exported(reference, tmp_path))
    latency = model.budgets[19]
    assert [(item.name, item.ms) for item in latency.items] == [
        ("window", 20),
        ("convolution 1", 50),
        ("convolution 2", 100),
        ("lookahead", 760),
    ]
    assert (model.manifest.frame_ms, model.manifest.centre_ms) == (40, 10)
    assert_stream_equals_torch(model, reference, signals(1.3)["speech"])
    step = operators(tmp_path / "model" / "step.onnx")
    # Two convolutions; the cell runs once a quantum.
    assert (step.count("Conv"), step.count("Tanh")) == (2, 1)


CELLS: list[Any] = [
    "rnn",
    *(pytest.param(cell, marks=pytest.mark.slow) for cell in ("gru", "lstm")),
]


@pytest.mark.parametrize("cell", CELLS)
def test_the_research_model_runs_from_a_bundle(cell: Any, tmp_path: Path) -> None:
    reference = settled(deep_speech_2_research(symbols=tuple("abc"), cell=cell))
    model = load(exported(reference, tmp_path))
    assert model.manifest.kind == "bidirectional"
    assert operators(tmp_path / "model" / "offline.onnx").count(cell.upper()) == 1
