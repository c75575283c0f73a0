"""How a gradient fades on its way through time, in each direction.

Method: the Jacobian of one output in all inputs, by one backward pass over H copies of a sequence,
of which copy i asks for the gradient of value i. Example: with `h_t = 0.5 h_{t-1} + x_t`,
`∂h_t/∂x_s = 0.5^(t−s)` for s ≤ t and 0 behind; read backwards, the same for s ≥ t.

Shapes: `B` sequences, `T` frames, `D` features, `H` hidden.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nearfuture.layers import Bidirectional, Recurrent


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientNorms:
    """The norms of the gradient of one frame's output in every input frame, by direction.

    Attributes:
        ahead: (T,) of the forward direction, 0 for inputs behind the frame.
        back: (T,) of the backward direction, 0 for inputs before it; None where there is none.
    """

    ahead: Tensor
    back: Tensor | None


def gradient_norms(layer: Recurrent | Bidirectional, x: Tensor, frame: int) -> GradientNorms:
    """Measure `‖∂h_t / ∂x_s‖` for one frame t and every s, in each direction by itself.

    The norm is Frobenius's, as root mean square over the sequences.

    Args:
        layer: one direction or two.
        x: (B, T, D).
        frame: t.

    >>> from nearfuture.layers import RNN
    >>> layer = RNN(1, 1, nonlinearity="relu", bias=False)
    >>> _ = layer.weight_ih.data.fill_(1.0), layer.weight_hh.data.fill_(0.5)
    >>> both = Bidirectional(layer)
    >>> both.back.load_state_dict(layer.state_dict())
    <All keys matched successfully>
    >>> norms = gradient_norms(both, torch.ones(1, 5, 1), 2)
    >>> norms.ahead.tolist(), norms.back.tolist()
    ([0.25, 0.5, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.5, 0.25])
    """
    hidden = layer.ahead.output_size if isinstance(layer, Bidirectional) else layer.output_size
    copies = x.to(_dtype(layer)).repeat_interleave(hidden, dim=0).requires_grad_()
    lengths = torch.full((len(copies),), x.shape[1])
    each_value = torch.eye(hidden, dtype=copies.dtype).repeat(len(x), 1)

    def norms(y: Tensor, t: int) -> Tensor:
        (gradient,) = torch.autograd.grad(y[:, t], copies, each_value)
        squares = gradient.square().sum(dim=-1).view(len(x), hidden, -1).sum(dim=1)
        return squares.mean(dim=0).sqrt()

    if isinstance(layer, Bidirectional):
        ahead, back = layer.directions(copies, lengths)
        # The backward direction's outputs come in the order in which it reads.
        return GradientNorms(ahead=norms(ahead, frame), back=norms(back, x.shape[1] - 1 - frame))
    return GradientNorms(ahead=norms(layer(copies, lengths)[0], frame), back=None)


def fading(norms: Tensor, near: int, far: int) -> float:
    """Return the factor by which norms, by distance, shrink in every frame from `near` to `far`.

    >>> round(fading(torch.tensor([8.0, 4.0, 2.0, 1.0]), 1, 3), 3)
    0.5
    """
    return float((norms[far] / norms[near]) ** (1 / (far - near)))


def _dtype(layer: Recurrent | Bidirectional) -> torch.dtype:
    return next(layer.parameters()).dtype
