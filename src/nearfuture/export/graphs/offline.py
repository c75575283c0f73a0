"""The graph of a bidirectional model: whole recordings of any length, any number of them.

Shapes: `B` batch, `N` samples, `T` frames, `D` features in, `H` hidden, `V` vocabulary.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture.error import NearfutureError
from nearfuture.layers import (
    GRU,
    LSTM,
    RNN,
    Bidirectional,
    Recurrent,
    StreamingLayer,
    Windowed,
)
from nearfuture.layers.cell import CLIP
from nearfuture.model import Recognizer


class OfflineGraph(nn.Module):
    """`pcm (B, N, 1), lengths (B,) → log_probs (B, T, V), frames (B,)`, with B and N free.

    `T` may exceed the longest row's frames by a few; what lies past a row's frames is 0. Layers of
    complete windows get one window of silence more than they need, so that no axis is ever empty
    and no size has to be tested inside the graph.

    Args:
        model: a bidirectional recogniser in eval mode; it is not changed.

    Raises:
        NearfutureError: for recurrent cells without biases.
    """

    def __init__(self, model: Recognizer) -> None:
        super().__init__()
        self.model = copy.deepcopy(model)
        for parent in list(self.model.modules()):
            for name, child in list(parent.named_children()):
                if isinstance(child, Bidirectional):
                    setattr(parent, name, OnnxRecurrence(child))

    def forward(self, pcm: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The graph itself, as in the equation above."""
        x, n = _with_spare_window(self.model.features, pcm, lengths)
        for layer in self.model.encoder:
            x, n = _with_spare_window(layer, x, n)
        return self.model.output(x, n)


def _with_spare_window(layer: StreamingLayer, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    if isinstance(layer, Windowed) and not layer.padded:
        x = F.pad(x, (0, 0, 0, layer.kernel))
    return layer(x, lengths)


_GATES: dict[type[Recurrent], tuple[str, tuple[int, ...]]] = {
    RNN: ("RNN", (0,)),
    GRU: ("GRU", (1, 0, 2)),  # z, r, n of torch's r, z, n
    LSTM: ("LSTM", (0, 3, 1, 2)),  # i, o, f, g of torch's i, f, g, o
}
"""The operator of a cell, and its order of gates."""


class OnnxRecurrence(nn.Module):
    """One direction, or both, as one ONNX operator, which reverses each row by its own length.

    `linear_before_reset` is torch's form of a GRU's candidate; a clipped ReLU is a ReLU of a sum
    that was clipped before. It exists only inside an export: eager torch cannot run it.
    """

    def __init__(self, layer: Recurrent | Bidirectional) -> None:
        super().__init__()
        ahead = layer.ahead if isinstance(layer, Bidirectional) else layer
        pair = [ahead.folded()]
        if isinstance(layer, Bidirectional):
            pair.append(layer.back.folded())
        self.operator, order = _GATES[type(ahead)]
        self.hidden = ahead.output_size
        self.directions = len(pair)
        self.merge = layer.merge if isinstance(layer, Bidirectional) else "concat"
        self.weight = nn.Parameter(_stacked([part.weight_ih for part in pair], order))
        self.recurrence = nn.Parameter(_stacked([part.weight_hh for part in pair], order))
        biases = [
            _stacked([part.bias_ih for part in pair], order),
            _stacked([part.bias_hh for part in pair], order),
        ]
        self.bias = nn.Parameter(torch.cat(biases, dim=1))
        self.options: dict[str, Any] = {}
        if isinstance(ahead, GRU):
            self.options["linear_before_reset"] = 1
        if isinstance(ahead, RNN):
            kind = ahead.nonlinearity
            self.options["activations"] = ["Tanh" if kind == "tanh" else "Relu"] * len(pair)
            if kind == "clipped_relu":
                self.options["clip"] = CLIP

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The operator: `x (B, T, D), lengths (B,) → y (B, T, H or 2H), lengths`."""
        batch, frames = x.shape[:2]
        last = (self.directions, batch, self.hidden)
        direction = "bidirectional" if self.directions == 2 else "forward"
        states = 2 if self.operator == "LSTM" else 1
        y, *_ = torch.onnx.ops.symbolic_multi_out(
            self.operator,
            (
                x.transpose(0, 1),
                self.weight,
                self.recurrence,
                self.bias,
                lengths.to(torch.int32),
            ),
            {"hidden_size": self.hidden, "direction": direction, **self.options},
            dtypes=(x.dtype,) * (1 + states),
            shapes=((frames, *last), *(last,) * states),
            version=14,
        )
        if self.merge == "sum":
            return y.sum(dim=1).transpose(0, 1), lengths
        return y.permute(2, 0, 1, 3).flatten(2), lengths


def _stacked(weights: list[Tensor | None], order: tuple[int, ...]) -> Tensor:
    """(G·H, …) of each direction in torch's order of gates → (1 or 2, G·H, …) in ONNX's."""
    ordered = []
    for weight in weights:
        if weight is None:
            raise NearfutureError(
                "the operator of ONNX needs recurrent cells with biases", code="unsupported"
            )
        gates = weight.detach().chunk(len(order))
        ordered.append(torch.cat([gates[gate] for gate in order]))
    return torch.stack(ordered)
