"""The recurrent cells, and the layers that run them.

Whole sequences go through torch's own kernels, chunks through one step of the same cell.

Shapes: `B` batch, `T` frames, `D` features in, `H` hidden, `G` gates.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture.budget import ReceptiveField
from nearfuture.error import NearfutureError
from nearfuture.layers.contract import StreamingLayer
from nearfuture.layers.ragged import mask
from nearfuture.layers.state import State, flatten

__all__ = ["GRU", "LSTM", "RNN", "Recurrent"]

CLIP = 20.0
"""Deep Speech 2's clipped ReLU: min(max(x, 0), 20)."""

_KERNEL_FROM_FRAMES = 4
"""Chunks at least this long go through the whole-sequence kernel where it can carry the state."""


class Recurrent(StreamingLayer):
    """One unidirectional recurrent layer over input that was projected once for all frames.

    A subclass gives `cell`, one step over pre-projected input, and `sequence`, all steps at once.
    Weights carry torch's names, shapes and gate order, without the `_l0` suffix.

    Args:
        input_size: D, features in.
        hidden_size: H, width of the state; not a number of words remembered.
        bias: carry `bias_ih` and `bias_hh`, two vectors as in torch.
    """

    gates: ClassVar[int]

    def __init__(self, input_size: int, hidden_size: int, *, bias: bool = True) -> None:
        super().__init__()
        self.input_size = input_size
        self.output_size = hidden_size
        self.field = ReceptiveField(left=float("inf"))
        width = self.gates * hidden_size
        self.weight_ih = nn.Parameter(torch.empty(width, input_size))
        self.weight_hh = nn.Parameter(torch.empty(width, hidden_size))
        self.bias_ih = nn.Parameter(torch.empty(width)) if bias else None
        self.bias_hh = nn.Parameter(torch.empty(width)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within ±1/√H, as in torch."""
        bound = self.output_size**-0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    @abstractmethod
    def cell(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        """One frame: `W x + b` (B, G·H) and the state → h (B, H) and the state."""

    @abstractmethod
    def sequence(self, x: Tensor, state: State) -> tuple[Tensor, State | None]:
        """All frames of (B, T, D) → every h (B, T, H), and the last state."""

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = mask(x, lengths)
        if x.shape[1] == 0:
            return x.new_zeros(x.shape[0], 0, self.output_size), lengths
        start = self.start(x.shape[0], device=x.device, dtype=x.dtype)
        return mask(self.sequence(x, start)[0], lengths), lengths

    def start(
        self,
        batch_size: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> State:
        return self._zeros(batch_size, self.output_size, device=device, dtype=dtype)

    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        x = mask(x, lengths)
        if x.shape[1] >= _KERNEL_FROM_FRAMES and not torch.compiler.is_exporting():
            y, last = self.sequence(x, state)
            after = self._state_after(y, lengths, state, last)
            if after is not None:
                return mask(y, lengths), lengths, after
        projected = F.linear(x, self.weight_ih, self.bias_ih)
        outputs = []
        for t in range(x.shape[1]):
            h, moved = self.cell(projected[:, t], state)
            state = _hold(t < lengths, moved, state)
            outputs.append(h)
        if not outputs:
            return x.new_zeros(x.shape[0], 0, self.output_size), lengths, state
        return mask(torch.stack(outputs, dim=1), lengths), lengths, state

    def _state_after(
        self, y: Tensor, lengths: Tensor, before: State, last: State | None
    ) -> State | None:
        """Each row's state after its own last frame, or None where the kernel does not tell."""
        assert isinstance(before, Tensor)
        history = torch.cat([before[:, None], y], dim=1)
        index = lengths[:, None, None].expand(-1, 1, y.shape[2])
        return history.gather(1, index)[:, 0]

    def finish(self, state: State) -> tuple[Tensor, Tensor]:
        h = flatten(state)[0]
        nothing = torch.zeros(h.shape[0], dtype=torch.int64, device=h.device)
        return h.new_zeros(h.shape[0], 0, self.output_size), nothing

    def _weights(self) -> list[Tensor]:
        weights: list[Tensor] = [self.weight_ih, self.weight_hh]
        if self.bias_ih is not None and self.bias_hh is not None:
            weights += [self.bias_ih, self.bias_hh]
        return weights


class RNN(Recurrent):
    """The basic recurrence (Elman 1990): `h_t = f(W_x x_t + b_ih + W_h h_{t-1} + b_hh)`, `h_0 = 0`.

    Args:
        input_size: d.
        hidden_size: H; `W_x` is H×d, `W_h` is H×H.
        nonlinearity: `tanh`, `relu`, or `clipped_relu`, `min(max(x, 0), 20)` (Deep Speech 2 §3.1).
        bias: the two bias vectors.

    >>> layer = RNN(4, 8)
    >>> y, n = layer(torch.zeros(2, 3, 4), torch.tensor([3, 2]))
    >>> tuple(y.shape), sum(p.numel() for p in layer.parameters())
    ((2, 3, 8), 112)
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        nonlinearity: Literal["tanh", "relu", "clipped_relu"] = "tanh",
        bias: bool = True,
    ) -> None:
        if nonlinearity not in ("tanh", "relu", "clipped_relu"):
            raise NearfutureError(
                f"nonlinearity is tanh, relu or clipped_relu, not {nonlinearity!r}"
            )
        super().__init__(input_size, hidden_size, bias=bias)
        self.nonlinearity = nonlinearity

    def cell(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        assert isinstance(state, Tensor)
        a = projected + F.linear(state, self.weight_hh, self.bias_hh)
        if self.nonlinearity == "tanh":
            h = torch.tanh(a)
        else:
            h = a.clamp(min=0, max=CLIP if self.nonlinearity == "clipped_relu" else None)
        return h, h

    def sequence(self, x: Tensor, state: State) -> tuple[Tensor, State | None]:
        assert isinstance(state, Tensor)
        if self.nonlinearity == "clipped_relu":  # torch has no kernel for it
            projected = F.linear(x, self.weight_ih, self.bias_ih)
            outputs = []
            for t in range(x.shape[1]):
                state = self.cell(projected[:, t], state)[1]
                assert isinstance(state, Tensor)
                outputs.append(state)
            return torch.stack(outputs, dim=1), state
        kernel = torch.rnn_tanh if self.nonlinearity == "tanh" else torch.rnn_relu
        bias = self.bias_ih is not None
        y, _ = kernel(x, state[None], self._weights(), bias, 1, 0.0, self.training, False, True)
        return y, None


class GRU(Recurrent):
    """Gated recurrent unit (Cho et al. 2014), with the reset gate after the matrix product.

    `r = σ(W_r x + U_r h + …)`, `z = σ(W_z x + U_z h + …)`,
    `n = tanh(W_n x + b_in + r ∘ (U_n h + b_hn))`, `h' = (1 - z) ∘ n + z ∘ h`.

    This is torch's form. Deep Speech 2 writes `h' = (1 - z) ∘ h + z ∘ n` with one bias: the roles
    of z swap, and the two biases of `n` do not collapse into one because `b_hn` stands inside
    `r ∘ (…)`.

    Args:
        input_size: D.
        hidden_size: H.
        bias: the two bias vectors.

    >>> layer = GRU(4, 8)
    >>> sum(p.numel() for p in layer.parameters()) == 3 * 112
    True
    """

    gates = 3

    def cell(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        assert isinstance(state, Tensor)
        r_x, z_x, n_x = projected.chunk(3, dim=-1)
        r_h, z_h, n_h = F.linear(state, self.weight_hh, self.bias_hh).chunk(3, dim=-1)
        z = torch.sigmoid(z_x + z_h)
        n = torch.tanh(n_x + torch.sigmoid(r_x + r_h) * n_h)
        h = n + z * (state - n)
        return h, h

    def sequence(self, x: Tensor, state: State) -> tuple[Tensor, State | None]:
        assert isinstance(state, Tensor)
        bias = self.bias_ih is not None
        y, _ = torch.gru(x, state[None], self._weights(), bias, 1, 0.0, self.training, False, True)
        return y, None


class LSTM(Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), in torch's form without peepholes.

    `i, f, o = σ(…)`, `g = tanh(…)`, `c' = f ∘ c + i ∘ g`, `h' = o ∘ tanh(c')`; the state is (h, c).

    Args:
        input_size: D.
        hidden_size: H.
        bias: the two bias vectors.

    >>> layer = LSTM(4, 8)
    >>> sum(p.numel() for p in layer.parameters()) == 4 * 112
    True
    """

    gates = 4

    def start(
        self,
        batch_size: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> State:
        h = super().start(batch_size, device=device, dtype=dtype)
        assert isinstance(h, Tensor)
        return h, h.clone()

    def cell(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        h, c = flatten(state)
        gates = projected + F.linear(h, self.weight_hh, self.bias_hh)
        i, f, g, o = gates.chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, (h, c)

    def sequence(self, x: Tensor, state: State) -> tuple[Tensor, State | None]:
        h, c = flatten(state)
        bias = self.bias_ih is not None
        y, h, c = torch.lstm(
            x, (h[None], c[None]), self._weights(), bias, 1, 0.0, self.training, False, True
        )
        return y, (h[0], c[0])

    def _state_after(
        self, y: Tensor, lengths: Tensor, before: State, last: State | None
    ) -> State | None:
        # The kernel returns only the last c, which is a row's own only if the row is full.
        return last if bool((lengths == y.shape[1]).all()) else None


def _hold(active: Tensor, moved: State, state: State) -> State:
    """The new state for rows that have this frame, the old one for those that do not."""
    if isinstance(moved, Tensor):
        assert isinstance(state, Tensor)
        return torch.where(active[:, None], moved, state)
    return tuple(_hold(active, m, s) for m, s in zip(moved, state, strict=True))
