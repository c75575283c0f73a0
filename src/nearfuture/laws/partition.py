"""Laws 1 and 3: chunks of any size give what the whole sequence gives."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from nearfuture.laws.law import law
from nearfuture.laws.strategies import partitions, row_counts
from nearfuture.laws.stream import (
    Partition,
    at_once,
    described,
    lengths_of,
    single_frames,
    streamed,
    whole,
)
from nearfuture.laws.trial import EXAMPLES, Trial
from nearfuture.laws.violation import same


@law(1, "any partition")
def any_partition(trial: Trial, *, examples: int = EXAMPLES) -> None:
    """Law 1: outputs over any cut of the input, and `finish`, equal `forward`.

    `step(x[:k]) ⊕ step(x[k:]) ⊕ finish = forward(x)`, for every cut: single frames, everything at
    once, empty chunks, rows that advance at different paces. What lies past a row's frames in a
    chunk is NaN. A layer that reads everything first must raise `NotStreamable`.

    Options, beside the arguments of every `Law`:
        examples: cuts to draw.

    Raises:
        LawBroken: with the smallest cut that shows the difference.

    >>> from nearfuture.layers import GRU, Lookahead, Serial
    >>> any_partition(Serial(GRU(2, 3), Lookahead(3, frames=2)))
    """
    lengths = (trial.frames, trial.frames // 2, 1, 0)
    trial.check(
        lambda cut: _equals_forward(trial, cut),
        explicit=[single_frames(lengths), at_once(lengths)],
        drawn=partitions(trial.frames),
        examples=examples,
        describe=described,
    )


class _PrefillCase(NamedTuple):
    long: tuple[int, ...]
    single: int

    def __str__(self) -> str:
        frames = self.long[0] if len(self.long) == 1 else self.long
        return f"in one long step of {frames} frames and {self.single} single frames"

    def cut(self) -> Partition:
        return (self.long, *single_frames([self.single] * len(self.long)))


@law(3, "prefill then step")
def prefill_then_step(trial: Trial, *, examples: int = EXAMPLES) -> None:
    """Law 3: one long `step` through the fast kernel, then single frames, equal `forward`.

    The rows of the long step have different lengths, so each must go on from its own last frame.
    It is longer than the chunks of law 1, since a fast kernel may begin with any length.

    Options, beside the arguments of every `Law`:
        examples: lengths to draw.

    Raises:
        LawBroken: with the smallest prefill that shows the difference.

    >>> from nearfuture.layers import LSTM
    >>> prefill_then_step(LSTM(2, 3))
    """
    longest = max(70, 2 * trial.frames)
    prefills = st.lists(row_counts(longest), min_size=1, max_size=3).map(tuple)
    trial.check(
        lambda prefill: _equals_forward(trial, prefill.cut()),
        explicit=[_PrefillCase((5, 5), 2), _PrefillCase((longest, 2, 0), 3)],
        drawn=st.builds(_PrefillCase, prefills, st.integers(1, 5)),
        examples=examples,
        describe=str,
    )


def _equals_forward(trial: Trial, cut: Partition) -> None:
    lengths = lengths_of(cut)
    x = trial.inputs(len(lengths), max(lengths))
    layer = trial.fresh()
    expected = whole(layer, x, lengths)
    for b, (got, there) in enumerate(zip(streamed(layer, x, cut), expected, strict=True)):
        same(got, there, names=("in chunks", "whole"), where=f"row {b}, ")
