"""Laws 1 and 3: chunks of any size give what the whole sequence gives."""

from __future__ import annotations

from typing import NamedTuple

import torch
from hypothesis import strategies as st

from nearfuture.laws.broken import same
from nearfuture.laws.drawing import partitions, row_counts
from nearfuture.laws.stream import (
    Partition,
    Source,
    at_once,
    lengths_of,
    single_frames,
    streamed,
    told,
    whole,
)
from nearfuture.laws.trial import EXAMPLES, Trial

__all__ = ["any_partition", "prefill_then_step"]


def any_partition(
    layer: Source,
    *,
    seed: int = 0,
    examples: int = EXAMPLES,
    dtype: torch.dtype = torch.float64,
) -> None:
    """Law 1: outputs over any cut of the input, and `finish`, equal `forward`.

    `step(x[:k]) ⊕ step(x[k:]) ⊕ finish = forward(x)`, for every cut: single frames, everything at
    once, empty chunks, rows that advance at different paces. What lies past a row's frames in a
    chunk is NaN. A layer that reads everything first must say `NotStreamable`.

    Args:
        layer: a layer, which is copied, or a function that makes one.
        seed: of weights (where the layer is made here), inputs and cuts.
        examples: cuts to draw.
        dtype: float64 shows that what differs in float32 is rounding.

    Raises:
        LawBroken: with the smallest cut that shows the difference.

    >>> from nearfuture.layers import GRU, Lookahead, Serial
    >>> any_partition(Serial(GRU(2, 3), Lookahead(3, frames=2)))
    """
    law = "law 1 (any partition)"
    trial = Trial(law, any_partition, layer, seed=seed, dtype=dtype, examples=examples)
    if trial.refuses_to_stream():
        return
    lengths = (trial.frames, trial.frames // 2, 1, 0)
    trial.hold(
        lambda cut: _equals_forward(trial, cut),
        obvious=[single_frames(lengths), at_once(lengths)],
        drawn=partitions(trial.frames),
        examples=examples,
        told=told,
    )


class _Prefill(NamedTuple):
    long: tuple[int, ...]
    single: int

    def __str__(self) -> str:
        frames = self.long[0] if len(self.long) == 1 else self.long
        return f"in one long step of {frames} frames and {self.single} single frames"

    def cut(self) -> Partition:
        return (self.long, *single_frames([self.single] * len(self.long)))


def prefill_then_step(
    layer: Source,
    *,
    seed: int = 0,
    examples: int = EXAMPLES,
    dtype: torch.dtype = torch.float64,
) -> None:
    """Law 3: one long `step` through the fast kernel, then single frames, equal `forward`.

    The rows of the long step have different lengths, so each must go on from its own last frame.
    It is longer than the chunks of law 1, since a fast kernel may begin with any length.

    Args:
        layer: a layer, or a function that makes one.
        seed: of weights (where the layer is made here), inputs and lengths.
        examples: lengths to draw.
        dtype: of weights and inputs.

    Raises:
        LawBroken: with the smallest prefill that shows the difference.

    >>> from nearfuture.layers import LSTM
    >>> prefill_then_step(LSTM(2, 3))
    """
    law = "law 3 (prefill then step)"
    trial = Trial(law, prefill_then_step, layer, seed=seed, dtype=dtype, examples=examples)
    if trial.refuses_to_stream():
        return
    longest = max(70, 2 * trial.frames)
    prefills = st.lists(row_counts(longest), min_size=1, max_size=3).map(tuple)
    trial.hold(
        lambda prefill: _equals_forward(trial, prefill.cut()),
        obvious=[_Prefill((5, 5), 2), _Prefill((longest, 2, 0), 3)],
        drawn=st.builds(_Prefill, prefills, st.integers(1, 5)),
        examples=examples,
        told=str,
    )


def _equals_forward(trial: Trial, cut: Partition) -> None:
    lengths = lengths_of(cut)
    x = trial.inputs(len(lengths), max(lengths))
    layer = trial.fresh()
    expected = whole(layer, x, lengths)
    for b, (got, there) in enumerate(zip(streamed(layer, x, cut), expected, strict=True)):
        same(got, there, names=("in chunks", "whole"), where=f"row {b}, ")
