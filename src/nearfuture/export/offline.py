"""The graph of a bidirectional model: whole recordings of any length, any number of them.

Shapes: `B` batch, `N` samples, `T` frames, `D` features in, `H` hidden, `V` vocabulary.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture.error import NearfutureError
from nearfuture.layers import GRU, Bidirectional, StreamingLayer, Windowed
from nearfuture.speech import Recognizer

__all__ = ["OfflineGraph"]


class OfflineGraph(nn.Module):
    """`pcm (B, N, 1), lengths (B,) → log_probs (B, T, V), frames (B,)`, with B and N free.

    `T` may exceed the longest row's frames by a few; what lies past a row's frames is 0. Layers of
    complete windows get one window of silence more than they need, so that no axis is ever empty
    and no size has to be tested inside the graph.

    Args:
        model: a bidirectional recogniser in eval mode; it is not changed.

    Raises:
        NearfutureError: for cells other than GRU.
    """

    def __init__(self, model: Recognizer) -> None:
        super().__init__()
        self.model = copy.deepcopy(model)
        for parent in list(self.model.modules()):
            for name, child in list(parent.named_children()):
                if isinstance(child, Bidirectional):
                    setattr(parent, name, _OnnxGRU(child))

    def forward(self, pcm: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The graph itself, as in the equation above."""
        x, n = _roomy(self.model.features, pcm, lengths)
        for layer in self.model.encoder:
            x, n = _roomy(layer, x, n)
        return self.model.output(x, n)


def _roomy(layer: StreamingLayer, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    if isinstance(layer, Windowed) and not layer.padded:
        x = F.pad(x, (0, 0, 0, layer.kernel))
    return layer(x, lengths)


class _OnnxGRU(nn.Module):
    """Both directions as one ONNX `GRU`, which reverses each row by its own length.

    Its order of gates is z, r, n; its `linear_before_reset` is torch's form of the candidate. It
    exists only inside an export: eager torch cannot run it.
    """

    def __init__(self, layer: Bidirectional) -> None:
        super().__init__()
        pair = (layer.ahead, layer.back)
        if not all(isinstance(part, GRU) for part in pair):
            cell = type(layer.ahead).__name__
            raise NearfutureError(f"the offline graph knows GRU cells only, not {cell}")
        self.hidden = layer.ahead.output_size
        self.merge = layer.merge
        self.weight = nn.Parameter(_both([part.weight_ih for part in pair]))
        self.recurrence = nn.Parameter(_both([part.weight_hh for part in pair]))
        biases = [_both([part.bias_ih for part in pair]), _both([part.bias_hh for part in pair])]
        self.bias = nn.Parameter(torch.cat(biases, dim=1))

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        batch, frames = x.shape[:2]
        y, _ = torch.onnx.ops.symbolic_multi_out(
            "GRU",
            (
                x.transpose(0, 1),
                self.weight,
                self.recurrence,
                self.bias,
                lengths.to(torch.int32),
            ),
            {
                "hidden_size": self.hidden,
                "linear_before_reset": 1,
                "direction": "bidirectional",
            },
            dtypes=(x.dtype, x.dtype),
            shapes=((frames, 2, batch, self.hidden), (2, batch, self.hidden)),
            version=14,
        )
        if self.merge == "sum":
            return y.sum(dim=1).transpose(0, 1), lengths
        return y.permute(2, 0, 1, 3).flatten(2), lengths


def _both(weights: list[Tensor | None]) -> Tensor:
    """(3H, …) of two directions in torch's order r, z, n → (2, 3H, …) in ONNX's order z, r, n."""
    ordered = []
    for weight in weights:
        if weight is None:
            raise NearfutureError("the offline graph needs GRU cells with biases")
        r, z, n = weight.detach().chunk(3)
        ordered.append(torch.cat([z, r, n]))
    return torch.stack(ordered)
