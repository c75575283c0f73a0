"""The recurrences themselves, over input that was projected once for all frames.

Their backward passes are written by hand: what does not depend on the step before is computed for
all frames at once, and the gradient of `U` is one matrix product instead of one per frame. On CPU
that is as fast as torch's kernels, which cannot begin behind the projection.

Shapes: `B` batch, `T` frames, `H` hidden, `G` gates. Everything here is time-first.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable


def rnn(projected: Tensor, h: Tensor, weight: Tensor, nonlinearity: str, clip: float) -> Tensor:
    """Every `h_t = f(p_t + U h_{t-1})`: (T, B, H) from `p`, `h_0` (B, H) and `U` (H, H).

    >>> rnn(torch.ones(3, 1, 1), torch.zeros(1, 1), torch.ones(1, 1), "relu", 20.0).flatten()
    tensor([1., 2., 3.])
    """
    ceiling = clip if nonlinearity == "clipped_relu" else None
    outputs: Tensor = _RNN.apply(projected, h, weight, nonlinearity == "tanh", ceiling)  # type: ignore[no-untyped-call]
    return outputs


def gru(projected: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Every h (T, B, H) of a GRU: `p` (T, B, 3H), `h_0` (B, H), `U` (3H, H), `b_hh` (3H,).

    >>> gru(torch.zeros(2, 1, 3), torch.ones(1, 1), torch.zeros(3, 1), None).flatten()
    tensor([0.5000, 0.2500])
    """
    outputs: Tensor = _GRU.apply(projected, h, weight, bias)  # type: ignore[no-untyped-call]
    return outputs


def lstm(projected: Tensor, h: Tensor, c: Tensor, weight: Tensor) -> Tensor:
    """Every h (T, B, H) of an LSTM: `p` (T, B, 4H), `h_0` and `c_0` (B, H), `U` (4H, H).

    >>> zero = torch.zeros(1, 1)
    >>> lstm(torch.zeros(2, 1, 4), zero, zero, torch.zeros(4, 1)).flatten()
    tensor([0., 0.])
    """
    outputs: Tensor = _LSTM.apply(projected, h, c, weight)  # type: ignore[no-untyped-call]
    return outputs


def _history(first: Tensor, frames: int) -> Tensor:
    """Room for a state at every frame and before (T + 1, B, H), and the first one in it."""
    states = first.new_empty(frames + 1, *first.shape)
    states[0] = first
    return states


def _of_weight(gates: Tensor, states: Tensor) -> Tensor:
    """The gradient of `U` (G·H, H): of all frames at once."""
    return gates.flatten(0, 1).t() @ states[:-1].flatten(0, 1)


class _RNN(Function):
    @staticmethod
    def forward(
        ctx: Any, p: Tensor, h: Tensor, weight: Tensor, tanh: bool, ceiling: float | None
    ) -> Tensor:
        states = _history(h, p.shape[0])
        transposed = weight.t()
        for t in range(p.shape[0]):
            h = torch.addmm(p[t], states[t], transposed, out=states[t + 1])
            if tanh:
                h.tanh_()
            else:
                h.clamp_(min=0, max=ceiling)
        ctx.save_for_backward(states, weight)
        ctx.tanh, ctx.ceiling = tanh, ceiling
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        states, weight = ctx.saved_tensors
        y = states[1:]
        if ctx.tanh:
            slope = 1 - y.square()
        else:
            slope = ((y > 0) & (y < (ctx.ceiling or torch.inf))).to(y.dtype)
        d = torch.empty_like(y)
        carried = torch.zeros_like(states[0])
        for t in reversed(range(len(d))):
            torch.mul(carried.add_(gradient[t]), slope[t], out=d[t])
            carried = d[t] @ weight
        return d, carried, _of_weight(d, states), None, None


class _GRU(Function):
    @staticmethod
    def forward(ctx: Any, p: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        frames, batch, width = p.shape[0], *h.shape
        states = _history(h, frames)
        # Contiguous: a product of few rows is an eighth faster so.
        of_rz = weight[: 2 * width].t().contiguous()
        of_n = weight[2 * width :].t().contiguous()
        p_rz, p_n = p[..., : 2 * width], p[..., 2 * width :]
        by_bias = h.new_zeros(width)
        if bias is not None:
            p_rz, by_bias = p_rz + bias[: 2 * width], bias[2 * width :]
        gates = p.new_empty(frames, batch, 2 * width)  # r, z
        new = p.new_empty(frames, batch, width)  # n
        inner = torch.empty_like(new)  # U_n h + b_hn, which r multiplies
        r, z = gates.chunk(2, dim=2)
        tensors = (p_rz, p_n, gates, r, z, new, inner, states[:-1])
        each = zip(*(x.unbind() for x in tensors), strict=True)
        for t, (a_rz, a_n, rz_t, r_t, z_t, n_t, inner_t, h_t) in enumerate(each):
            torch.addmm(a_rz, h_t, of_rz, out=rz_t).sigmoid_()
            torch.addmm(by_bias, h_t, of_n, out=inner_t)
            torch.addcmul(a_n, r_t, inner_t, out=n_t).tanh_()
            torch.lerp(n_t, h_t, z_t, out=states[t + 1])
        ctx.save_for_backward(gates, new, inner, states, weight)
        ctx.bias = bias is not None
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gates, new, inner, states, weight = ctx.saved_tensors
        frames, batch, width = inner.shape
        r, z = gates.chunk(2, dim=2)
        by_n = (1 - z) * (1 - new.square())
        # What a gradient of h is multiplied by, for r, z and U_n h: all at once in every frame.
        slopes = r.new_empty(frames, batch, 3, width)
        torch.mul(by_n * inner, r * (1 - r), out=slopes[:, :, 0])
        torch.mul(states[:-1] - new, z * (1 - z), out=slopes[:, :, 1])
        torch.mul(by_n, r, out=slopes[:, :, 2])
        inside = torch.empty_like(slopes)  # the gradient of U h + b_hh
        of_h = torch.empty_like(new)
        carried = torch.zeros_like(states[0])
        each = zip(
            *(reversed(x.unbind()) for x in (gradient, z, slopes, inside, inside.flatten(2), of_h)),
            strict=True,
        )
        for gradient_t, z_t, slopes_t, inside_t, flat_t, of_h_t in each:
            torch.add(carried, gradient_t, out=of_h_t)
            torch.mul(slopes_t, of_h_t[:, None], out=inside_t)
            carried = torch.addmm(of_h_t * z_t, flat_t, weight)
        d = inside.clone()  # the gradient of p: the same but for n, which r does not multiply there
        torch.mul(of_h, by_n, out=d[:, :, 2])
        inside = inside.flatten(2)
        of_bias = inside.sum((0, 1)) if ctx.bias else None
        return d.flatten(2), carried, _of_weight(inside, states), of_bias


class _LSTM(Function):
    @staticmethod
    def forward(ctx: Any, p: Tensor, h: Tensor, c: Tensor, weight: Tensor) -> Tensor:
        frames, width = p.shape[0], h.shape[1]
        states, cells = _history(h, frames), _history(c, frames)
        gates = torch.empty_like(p)  # i, f, g, o
        squashed = torch.empty_like(cells[1:])
        transposed = weight.t()
        for t in range(frames):
            a = torch.addmm(p[t], states[t], transposed, out=gates[t])
            i, f, g, o = a.chunk(4, dim=1)
            a[:, : 2 * width].sigmoid_()
            g.tanh_()
            o.sigmoid_()
            torch.mul(f, cells[t], out=cells[t + 1]).addcmul_(i, g)
            torch.tanh(cells[t + 1], out=squashed[t])
            torch.mul(o, squashed[t], out=states[t + 1])
        ctx.save_for_backward(gates, squashed, cells, states, weight)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gates, squashed, cells, states, weight = ctx.saved_tensors
        width = squashed.shape[2]
        i, f, g, o = gates.chunk(4, dim=2)
        by_c = o * (1 - squashed.square())
        by_o = squashed * o * (1 - o)
        by_gates = torch.stack(
            [g * i * (1 - i), cells[:-1] * f * (1 - f), i * (1 - g.square())], dim=2
        )
        d = torch.empty_like(gates)
        carried, of_c = torch.zeros_like(states[0]), torch.zeros_like(cells[0])
        for t in reversed(range(len(d))):
            carried = carried.add_(gradient[t])
            of_c.addcmul_(carried, by_c[t])
            first_three = d[t].view(-1, 4, width)[:, :3]
            torch.mul(by_gates[t], of_c[:, None], out=first_three)
            torch.mul(carried, by_o[t], out=d[t, :, 3 * width :])
            of_c.mul_(f[t])
            carried = d[t] @ weight
        return d, carried, of_c, _of_weight(d, states)
