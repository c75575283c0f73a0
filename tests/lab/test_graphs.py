"""Each graph of the lab is its layer: the same numbers, and the receptive field it declares."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from nearfuture.lab.graphs import FOLDER, open_graph

TOOL = Path(__file__).parents[2] / "tools" / "make_lab_graphs.py"


def imported_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_lab_graphs", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = imported_tool()


def test_every_layer_has_a_graph_and_nothing_else_does() -> None:
    assert {path.stem for path in FOLDER.glob("*.onnx")} == set(tool.LAYERS)


@pytest.mark.parametrize("name", tool.LAYERS)
def test_a_graph_is_its_layer(name: str) -> None:
    layer, graph = tool.build(name), open_graph(name)
    assert graph.field == layer.field
    for batch, frames in ((1, 1), (2, 6), (3, 17)):
        x = torch.randn(batch, frames, graph.width)
        with torch.no_grad():
            y, _ = layer(x, torch.full((batch,), frames))
        np.testing.assert_allclose(graph(x.numpy()), y.numpy(), rtol=0, atol=1e-6)


def test_another_layer_is_not_the_graph() -> None:
    x = torch.randn(1, 6, 4)
    with torch.no_grad():
        y, _ = tool.gru(1)(x, torch.tensor([6]))
    assert np.abs(open_graph("gru-2")(x.numpy()) - y.numpy()).max() > 1e-3
