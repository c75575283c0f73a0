"""Export the graphs of the lab's figures from the real layers: `python tools/make_lab_graphs.py`.

Every layer reads frames of four values; those that a page stacks write as many, so that any of them
can stand on any other. With names, only those graphs are made again. `tests/lab/test_graphs.py`
compares each graph with the layer that is built here.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture.export.graphs.offline import OnnxRecurrence
from nearfuture.export.graphs.translation import translate
from nearfuture.layers import (
    GRU,
    LSTM,
    RNN,
    AttentionMask,
    Bidirectional,
    CausalMask,
    ChunkedMask,
    FullMask,
    Lookahead,
    Recurrent,
    SelfAttention,
    SlidingMask,
    StreamingLayer,
)

FOLDER = Path(__file__).parents[1] / "src" / "nearfuture" / "assets" / "lab" / "graphs"
WIDTH = 4
STATE = 8
LOOKAHEADS = range(7)
LEVELS = 3


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


def concatenated() -> StreamingLayer:
    """A layer whose two directions can be told apart: four values of each."""
    torch.manual_seed(0)
    return Bidirectional(GRU(WIDTH, WIDTH))


def bidirectional_lstm() -> StreamingLayer:
    """A layer of two LSTMs, which read both ways."""
    torch.manual_seed(0)
    return Bidirectional(LSTM(WIDTH, WIDTH), merge="sum")


class Terms(nn.Module):
    """The terms of an RNN's state, beside the state: `x (B, T, D) → (B, T, 4H)`.

    `W_x x_t`, `W_h h_{t-1}`, `b` and `h_t`, from the layer's own weights and outputs.
    """

    def __init__(self, layer: RNN) -> None:
        super().__init__()
        self.rnn = layer
        self.recurrence: nn.Module = layer
        self.input_size, self.field = layer.input_size, layer.field

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """All terms of every frame; `b` is the sum of the layer's two biases."""
        assert self.rnn.bias_ih is not None
        assert self.rnn.bias_hh is not None
        h = self.recurrence(x, lengths)[0]
        before = F.pad(h, (0, 0, 1, 0))[:, :-1]
        of_x, of_h = F.linear(x, self.rnn.weight_ih), F.linear(before, self.rnn.weight_hh)
        bias = (self.rnn.bias_ih + self.rnn.bias_hh).expand_as(h)
        return torch.cat([of_x, of_h, bias, h], dim=-1), lengths


def terms(nonlinearity: Literal["tanh", "relu"]) -> Terms:
    """The terms of an RNN of eight values of state."""
    torch.manual_seed(1)
    return Terms(RNN(WIDTH, STATE, nonlinearity=nonlinearity))


class Stack(nn.Module):
    """The outputs of every layer of a stack, side by side: `x (B, T, D) → (B, T, sum of widths)`.

    A shorter stack is what its first layers write.
    """

    def __init__(self, layers: Sequence[Recurrent | Bidirectional]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        # Each reads all of the past, or all there is: those above add nothing to the first.
        self.input_size, self.field = layers[0].input_size, layers[0].field

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """What each layer makes of what the one below has written."""
        outputs = []
        for layer in self.layers:
            x, _ = layer(x, lengths)
            outputs.append(x)
        return torch.cat(outputs, dim=-1), lengths


def stacked(directions: int) -> Stack:
    """Three plain RNNs of eight values on each other, read one way or both."""
    torch.manual_seed(2)
    cells = [RNN(WIDTH if not level else directions * STATE, STATE) for level in range(LEVELS)]
    return Stack([Bidirectional(each) if directions == 2 else each for each in cells])


def cell(kind: Callable[[int, int], Recurrent]) -> Recurrent:
    """A layer of eight values of state, as in the figures of PyTorch's `nn.RNN(4, 8)`."""
    torch.manual_seed(1)
    return kind(WIDTH, STATE)


MASKS: dict[str, AttentionMask] = {
    "causal": CausalMask(),
    "full": FullMask(),
    "sliding": SlidingMask(left=4, right=1),
    "chunked": ChunkedMask(chunk=4, left_chunks=1),
}


def attention(mask: str, seed: int) -> StreamingLayer:
    """A layer that looks wherever its mask lets it."""
    torch.manual_seed(seed)
    return SelfAttention(WIDTH, heads=2, mask=MASKS[mask])


LAYERS: dict[str, Callable[[], StreamingLayer | Terms | Stack]] = {
    **{f"gru-{number}": lambda seed=number: gru(seed) for number in (1, 2, 3)},
    **{f"bidirectional-{number}": lambda seed=number: bidirectional(seed) for number in (1, 2, 3)},
    **{
        f"{mask}-attention-{number}": lambda mask=mask, seed=number: attention(mask, seed)
        for mask in MASKS
        for number in (1, 2, 3)
    },
    **{f"row-convolution-{tau}": lambda tau=tau: row_convolution(tau) for tau in LOOKAHEADS},
    "bidirectional-concat": concatenated,
    "bidirectional-lstm": bidirectional_lstm,
    "unrolled-tanh": lambda: terms("tanh"),
    "unrolled-relu": lambda: terms("relu"),
    "unrolled-gru": lambda: cell(GRU),
    "unrolled-lstm": lambda: cell(LSTM),
    "stacked-one": lambda: stacked(1),
    "stacked-both": lambda: stacked(2),
}
"""A line for each graph: its name, and what builds its layer."""


class LayerGraph(nn.Module):
    """`x (B, T, D), lengths (B,) → y (B, T, E)`, with B and T free."""

    def __init__(self, layer: StreamingLayer | Terms | Stack) -> None:
        super().__init__()
        self.layer: nn.Module = layer
        if isinstance(layer, Recurrent | Bidirectional):
            self.layer = OnnxRecurrence(layer)
        elif isinstance(layer, Terms):
            layer.recurrence = OnnxRecurrence(layer.rnn)
        elif isinstance(layer, Stack):
            layer.layers = nn.ModuleList(OnnxRecurrence(each) for each in layer.layers)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """The layer's output; its lengths are those of the input."""
        y: Tensor = self.layer(x, lengths)[0]
        return y


def build(name: str) -> StreamingLayer | Terms | Stack:
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
