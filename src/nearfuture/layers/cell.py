"""The recurrent layers, each by the equation of its cell.

Whole sequences go through torch's own kernels, or through `recurrence` where `W x` is normalised by
its batch or shared between directions; chunks go through one step of the same cell.

Shapes: `B` batch, `T` frames, `D` features in, `H` hidden.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from nearfuture.error import NearfutureError
from nearfuture.layers import recurrence
from nearfuture.layers.recurrent import Recurrent
from nearfuture.layers.state import Device, DType, State, flatten

CLIP = 20.0
"""Deep Speech 2's clipped ReLU: min(max(x, 0), 20)."""


class RNN(Recurrent):
    """The basic recurrence (Elman 1990): `h_t = f(W_x x_t + b_ih + W_h h_{t-1} + b_hh)`, `h_0 = 0`.

    Args:
        input_size: d.
        hidden_size: H; `W_x` is H×d, `W_h` is H×H.
        nonlinearity: `tanh`, `relu`, or `clipped_relu`, `min(max(x, 0), 20)` (Deep Speech 2 §3.1).
        bias: the two bias vectors.
        batch_norm: normalise `W x`, with one bias instead of the two, see `Recurrent`.

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
        batch_norm: bool = False,
    ) -> None:
        if nonlinearity not in ("tanh", "relu", "clipped_relu"):
            raise NearfutureError(
                f"`nonlinearity` must be tanh, relu or clipped_relu, not {nonlinearity!r}",
                parameter="nonlinearity",
            )
        super().__init__(input_size, hidden_size, bias=bias, batch_norm=batch_norm)
        self.nonlinearity = nonlinearity

    def cell(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        assert isinstance(state, Tensor)
        a = projected + F.linear(state, self.weight_hh, self.bias_hh)
        if self.nonlinearity == "tanh":
            h = torch.tanh(a)
        elif self.nonlinearity == "relu":
            h = torch.relu(a)
        else:
            h = F.hardtanh(a, 0.0, CLIP)  # clamp with both limits does not export
        return h, h

    def run(self, projected: Tensor, state: State) -> Tensor:
        assert isinstance(state, Tensor)
        p = projected if self.bias_hh is None else projected + self.bias_hh
        p = p.transpose(0, 1).contiguous()
        return recurrence.rnn(p, state, self.weight_hh, self.nonlinearity, CLIP).transpose(0, 1)

    def sequence(self, x: Tensor, state: State) -> tuple[Tensor, State | None]:
        assert isinstance(state, Tensor)
        weights = self._weights()
        if self.nonlinearity == "clipped_relu":  # torch has no kernel for it
            bias = weights[2] if len(weights) == 4 else None
            return self.run(F.linear(x, weights[0], bias), state), None
        kernel = torch.rnn_tanh if self.nonlinearity == "tanh" else torch.rnn_relu
        train, biases = self.training, len(weights) == 4
        y, _ = kernel(x, state[None], weights, biases, 1, 0.0, train, False, True)
        return y, None


class GRU(Recurrent):
    """Gated recurrent unit (Cho et al. 2014), with the reset gate after the matrix product.

    `r = σ(W_r x + U_r h + …)`, `z = σ(W_z x + U_z h + …)`,
    `n = tanh(W_n x + b_in + r ∘ (U_n h + b_hn))`, `h' = (1 - z) ∘ n + z ∘ h`.

    This is torch's form. Deep Speech 2 writes `h' = (1 - z) ∘ h + z ∘ n` with one bias: the roles
    of z swap, and the two biases of `n` do not collapse into one because `b_hn` stands inside
    `r ∘ (…)`. With `batch_norm=True` there is one bias, outside: `n = tanh(B(W_n x) + r ∘ U_n h)`.

    Args:
        input_size: D.
        hidden_size: H.
        bias: the two bias vectors.
        batch_norm: normalise `W x`, with one bias instead of the two, see `Recurrent`.

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

    def run(self, projected: Tensor, state: State) -> Tensor:
        assert isinstance(state, Tensor)
        p = projected.transpose(0, 1).contiguous()
        return recurrence.gru(p, state, self.weight_hh, self.bias_hh).transpose(0, 1)

    def sequence(self, x: Tensor, state: State) -> tuple[Tensor, State | None]:
        assert isinstance(state, Tensor)
        weights = self._weights()
        train, biases = self.training, len(weights) == 4
        y, _ = torch.gru(x, state[None], weights, biases, 1, 0.0, train, False, True)
        return y, None


class LSTM(Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), in torch's form without peepholes.

    `i, f, o = σ(…)`, `g = tanh(…)`, `c' = f ∘ c + i ∘ g`, `h' = o ∘ tanh(c')`; the state is (h, c).

    Args:
        input_size: D.
        hidden_size: H.
        bias: the two bias vectors.
        batch_norm: normalise `W x`, with one bias instead of the two, see `Recurrent`.

    >>> layer = LSTM(4, 8)
    >>> sum(p.numel() for p in layer.parameters()) == 4 * 112
    True
    """

    gates = 4

    def start(self, batch_size: int, *, device: Device = None, dtype: DType = None) -> State:
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

    def run(self, projected: Tensor, state: State) -> Tensor:
        h, c = flatten(state)
        p = projected if self.bias_hh is None else projected + self.bias_hh
        p = p.transpose(0, 1).contiguous()
        return recurrence.lstm(p, h, c, self.weight_hh).transpose(0, 1)

    def sequence(self, x: Tensor, state: State) -> tuple[Tensor, State | None]:
        h, c = flatten(state)
        weights = self._weights()
        train, biases = self.training, len(weights) == 4
        y, h, c = torch.lstm(x, (h[None], c[None]), weights, biases, 1, 0.0, train, False, True)
        return y, (h[0], c[0])

    def _state_after(
        self, y: Tensor, lengths: Tensor, before: State, last: State | None
    ) -> State | None:
        # The kernel returns only the last c, which is a row's own only if the row is full.
        return last if bool((lengths == y.shape[1]).all()) else None
