"""Law 5: padding is ignored, in values, in gradients and in running statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor

from nearfuture.laws.law import law
from nearfuture.laws.strategies import row_counts
from nearfuture.laws.stream import rows
from nearfuture.laws.trial import EXAMPLES, Trial
from nearfuture.laws.violation import Violation, same
from nearfuture.layers.random import manual_seed


class _PaddingCase(NamedTuple):
    """Rows of these lengths, in a batch that is `extra` frames wider than the longest."""

    lengths: tuple[int, ...]
    filler: float
    extra: int
    training: bool

    def __str__(self) -> str:
        mode = "train" if self.training else "eval"
        return (
            f"for rows of {list(self.lengths)} frames and {self.extra} more of padding with "
            f"{self.filler} ({mode} mode)"
        )


@law(5, "padding is ignored", streaming=False)
def padding_is_ignored(trial: Trial, *, examples: int = EXAMPLES) -> None:
    """Law 5: NaN, 1e3 or any amount of padding changes no valid output, gradient or statistic.

    In eval and in train mode, with a batch of empty rows too. Outputs past a row's length are
    exactly 0, and so are the gradients of inputs past it. A layer that draws random numbers in
    train mode must draw as many whatever the padding.

    Options, beside the arguments of every `Law`:
        examples: lengths, fillers, amounts and modes to draw.

    Raises:
        LawBroken: naming the padding, the mode and what it changed.

    >>> from nearfuture.layers import Bidirectional, GRU
    >>> padding_is_ignored(Bidirectional(GRU(2, 3)))
    """
    usual = (trial.frames // 2, 4, 1)

    def test(case: _PaddingCase) -> None:
        expected = _trace(trial, _PaddingCase(case.lengths, 0.0, 0, case.training))
        for name, gradient in expected.gradients.items():
            if not bool(gradient.isfinite().all()):
                raise Violation(f"the gradient of {name} is not finite")
        _compare(_trace(trial, case), expected)

    lengths = st.lists(row_counts(trial.frames), min_size=1, max_size=4).map(tuple)
    fillers = st.sampled_from([math.nan, 1e3, -math.inf])
    trial.check(
        test,
        explicit=[
            _PaddingCase(usual, math.nan, 1, False),
            _PaddingCase(usual, math.nan, 1, True),
            _PaddingCase(usual, 1e3, 0, True),
            _PaddingCase((0, 0), -math.inf, 2, True),
        ],
        drawn=st.builds(_PaddingCase, lengths, fillers, st.integers(0, 24), st.booleans()),
        examples=examples,
        describe=str,
    )


@dataclass(frozen=True)
class _Trace:
    outputs: list[Tensor]
    gradients: dict[str, Tensor]
    statistics: dict[str, Tensor]


def _trace(trial: Trial, case: _PaddingCase) -> _Trace:
    """One forward and backward of a copy, with the filler past every row's length."""
    layer = trial.fresh().train(case.training)
    x = trial.inputs(len(case.lengths), max(case.lengths))
    padded = x.new_full((x.shape[0], x.shape[1] + case.extra, x.shape[2]), case.filler)
    for b, n in enumerate(case.lengths):
        padded[b, :n] = x[b, :n]
    padded.requires_grad_()
    # What a layer drops in train mode is the same each time; cuDNN has no gradient in eval mode.
    with torch.random.fork_rng(devices=[]), torch.backends.cudnn.flags(enabled=False):
        manual_seed(trial.seed)
        y, n_y = layer(padded, torch.tensor(case.lengths, device=x.device))
        outputs = rows(layer, y, n_y)
        loss = y.sum() * 0
        for b, valid in enumerate(outputs):
            weights = torch.cos(torch.arange(valid.numel(), dtype=y.dtype, device=y.device) + b)
            loss = loss + (valid * weights.reshape(valid.shape)).sum()
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
    gradients = {
        name: torch.zeros_like(p) if p.grad is None else p.grad
        for name, p in layer.named_parameters()
    }
    gradient = torch.zeros_like(padded) if padded.grad is None else padded.grad
    for b, n in enumerate(case.lengths):
        gradients[f"the input, row {b}"] = gradient[b, :n]
        if bool((gradient[b, n:] != 0).any()):
            raise Violation(f"row {b}, the gradient of its padding is not 0")
    return _Trace(
        [valid.detach() for valid in outputs],
        gradients,
        {name: buffer.clone() for name, buffer in layer.named_buffers()},
    )


def _compare(got: _Trace, expected: _Trace) -> None:
    names = ("so", "with no padding")
    for b, (here, there) in enumerate(zip(got.outputs, expected.outputs, strict=True)):
        same(here, there, names=names, where=f"row {b}, ")
    for kind, here_of, there_of in (
        ("gradient of", got.gradients, expected.gradients),
        ("running statistic", got.statistics, expected.statistics),
    ):
        for name, there in there_of.items():
            same(here_of[name], there, names=names, where=f"{kind} {name}, ", words=())
