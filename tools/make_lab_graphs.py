"""Export the graphs of the lab's figures from the real layers: `python tools/make_lab_graphs.py`.

Every layer reads frames of four values and writes frames of four values, so that any of them can
stand on any other. With names, only those graphs are made again. `tests/lab/test_graphs.py`
compares each graph with the layer that is built here.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from nearfuture.export.graphs.offline import OnnxRecurrence
from nearfuture.export.graphs.translation import translate
from nearfuture.layers import GRU, Bidirectional, Lookahead, Recurrent, StreamingLayer

FOLDER = Path(__file__).parents[1] / "src" / "nearfuture" / "assets" / "lab" / "graphs"
WIDTH = 4
LOOKAHEADS = range(7)


def gru(seed: int) -> StreamingLayer:
    """A layer that reads the past, with weights of its own for each seed."""
    torch.manual_seed(seed)
    return GRU(WIDTH, WIDTH)


def bidirectional(seed: int) -> StreamingLayer:
    """A layer that reads the past and the future, and sums what it has read."""
    torch.manual_seed(seed)
    return Bidirectional(GRU(WIDTH, WIDTH), merge="sum")


def row_convolution(frames: int) -> StreamingLayer:
    """A layer that looks τ frames ahead; weights of one decimal can be read in a figure."""
    torch.manual_seed(frames)
    layer = Lookahead(WIDTH, frames)
    with torch.no_grad():
        layer.weights[0].copy_(torch.randint(1, 10, (WIDTH, frames + 1)) / 10)
    return layer


LAYERS: dict[str, Callable[[], StreamingLayer]] = {
    **{f"gru-{number}": lambda seed=number: gru(seed) for number in (1, 2, 3)},
    **{f"bidirectional-{number}": lambda seed=number: bidirectional(seed) for number in (1, 2, 3)},
    **{f"row-convolution-{tau}": lambda tau=tau: row_convolution(tau) for tau in LOOKAHEADS},
}
"""A line for each graph: its name, and what builds its layer."""


class LayerGraph(nn.Module):
    """`x (B, T, D), lengths (B,) → y (B, T, D)`, with B and T free."""

    def __init__(self, layer: StreamingLayer) -> None:
        super().__init__()
        recurrent = isinstance(layer, Recurrent | Bidirectional)
        self.layer = OnnxRecurrence(layer) if recurrent else layer

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """The layer's output; its lengths are those of the input."""
        y: Tensor = self.layer(x, lengths)[0]
        return y


def build(name: str) -> StreamingLayer:
    """Build the layer of a graph, the same at every call."""
    return LAYERS[name]().eval()


def export(name: str) -> bytes:
    """Export the layer of a graph, with the receptive field that it declares."""
    layer = build(name)
    field = layer.field
    declared = {
        "left": None if math.isinf(field.left) else field.left,
        "right": None if math.isinf(field.right) else field.right,
        "block": field.block,
    }
    x, lengths = torch.randn(2, 6, layer.input_size), torch.tensor([6, 4])
    inputs = {"x": (x, {0: "B", 1: "T"}), "lengths": (lengths, {0: "B"})}
    metadata = {"layer": repr(layer).splitlines()[0].rstrip("("), "field": declared}
    return translate(LayerGraph(layer), inputs, ["y"], metadata).SerializeToString()


def main(names: list[str]) -> None:
    """Write the graphs of these names, or all of them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or LAYERS:
        graph = export(name)
        (FOLDER / f"{name}.onnx").write_bytes(graph)
        print(f"{name}: {len(graph):,} bytes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
