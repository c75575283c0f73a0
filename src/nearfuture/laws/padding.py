"""Law 5: padding is nothing, in values, in gradients and in running statistics."""

from __future__ import annotations

import copy
import math
import random
from dataclasses import dataclass

import torch
from torch import Tensor

from nearfuture.laws.broken import LawBroken, difference
from nearfuture.laws.stream import Source, inputs, prepare, ragged_lengths, rows
from nearfuture.layers import StreamingLayer

__all__ = ["padding_is_nothing"]

_LAW = "law 5 (padding is nothing)"


def padding_is_nothing(
    layer: Source,
    *,
    seed: int = 0,
    batch: int = 4,
    frames: int = 16,
    dtype: torch.dtype = torch.float64,
) -> None:
    """Law 5: NaN, 1e3 or any amount of padding changes no valid output, gradient or statistic.

    In eval and in train mode, with a batch of empty rows too. Outputs past a row's length are
    exactly 0, and so are the gradients of inputs past it. A layer that draws random numbers in
    train mode must draw as many whatever the padding.

    Raises:
        LawBroken: naming the padding, the mode and what it changed.

    >>> from nearfuture.layers import Bidirectional, GRU
    >>> padding_is_nothing(Bidirectional(GRU(2, 3)))
    """
    subject = prepare(layer, seed=seed, dtype=dtype)
    rng = random.Random(seed)
    x = inputs(subject, batch, frames, seed=seed)
    for lengths in (ragged_lengths(batch, frames - 1, rng), [0] * batch):
        longest = max(lengths)
        for training in (False, True):
            expected = _trace(subject, x, lengths, longest, 0.0, training, seed)
            if not all(bool(g.isfinite().all()) for g in expected.gradients.values()):
                raise LawBroken(_LAW, f"a gradient is not finite for lengths {lengths}")
            for filler in (math.nan, 1e3, -math.inf):
                for extra in (0, 1, frames):
                    width = longest + extra
                    got = _trace(subject, x, lengths, width, filler, training, seed)
                    mode = "train" if training else "eval"
                    what = f"with {filler} in {extra} more frames of padding ({mode} mode)"
                    _compare(got, expected, what)


@dataclass(frozen=True)
class _Trace:
    outputs: list[Tensor]
    gradients: dict[str, Tensor]
    statistics: dict[str, Tensor]


def _trace(
    layer: StreamingLayer,
    x: Tensor,
    lengths: list[int],
    width: int,
    filler: float,
    training: bool,
    seed: int,
) -> _Trace:
    """One forward and backward of a copy, with `filler` past every row's length."""
    subject = copy.deepcopy(layer).train(training)
    padded = x.new_full((x.shape[0], width, x.shape[2]), filler)
    for b, n in enumerate(lengths):
        padded[b, :n] = x[b, :n]
    padded.requires_grad_()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        y, n_y = subject(padded, torch.tensor(lengths, device=x.device))
    outputs = rows(subject, y, n_y)
    loss = y.sum() * 0
    for b, valid in enumerate(outputs):
        weights = torch.cos(torch.arange(valid.numel(), dtype=y.dtype, device=y.device) + b)
        loss = loss + (valid * weights.reshape(valid.shape)).sum()
    if loss.requires_grad:
        loss.backward()  # type: ignore[no-untyped-call]
    gradients = {
        name: torch.zeros_like(p) if p.grad is None else p.grad
        for name, p in subject.named_parameters()
    }
    gradient = torch.zeros_like(padded) if padded.grad is None else padded.grad
    for b, n in enumerate(lengths):
        gradients[f"the input, row {b}"] = gradient[b, :n]
        if bool((gradient[b, n:] != 0).any()):
            raise LawBroken(
                _LAW, f"row {b}: the gradient of its padding is not 0 (filler {filler})"
            )
    return _Trace(
        [valid.detach() for valid in outputs],
        gradients,
        {name: buffer.clone() for name, buffer in subject.named_buffers()},
    )


def _compare(got: _Trace, expected: _Trace, what: str) -> None:
    names = (what, "with none")
    for b, (here, there) in enumerate(zip(got.outputs, expected.outputs, strict=True)):
        where = difference(here, there, names=names)
        if where:
            raise LawBroken(_LAW, f"row {b}, {where}")
    for kind, here_of, there_of in (
        ("gradient of", got.gradients, expected.gradients),
        ("running statistic", got.statistics, expected.statistics),
    ):
        for name, there in there_of.items():
            where = difference(here_of[name], there, names=names)
            if where:
                raise LawBroken(_LAW, f"{kind} {name}, {where}")
