"""Law 4: rows of a batch are independent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor

from nearfuture.laws.law import law
from nearfuture.laws.strategies import interrupted
from nearfuture.laws.stream import (
    Partition,
    advance,
    described,
    lengths_of,
    single_frames,
    started,
    streamed,
    until,
    whole,
)
from nearfuture.laws.trial import EXAMPLES, Trial
from nearfuture.laws.violation import TOLERANCE, Violation, same
from nearfuture.layers.state import flatten, put_rows, take_rows


class _RowsCase(NamedTuple):
    """A batch, one row of it, and what happens before which chunk."""

    cut: Partition
    row: int
    at: int
    event: str

    def __str__(self) -> str:
        return described(self.cut)


@st.composite
def _rows_cases(draw: st.DrawFn, frames: int, events: Sequence[str]) -> _RowsCase:
    cut, at = draw(interrupted(frames, fewest_rows=2))
    return _RowsCase(cut, draw(st.integers(0, len(cut[0]) - 1)), at, draw(st.sampled_from(events)))


@law(4, "rows are independent", streaming=False)
def rows_are_independent(
    trial: Trial,
    *,
    examples: int = EXAMPLES,
    tolerance: float | None = None,
) -> None:
    """Law 4: batch mates, row order, a reset of some rows and inactive rows change nothing.

    A row is alone, beside others of 1e3 and of NaN, in another place, moved or reset in mid-stream,
    or beside one that is. A row that gets no frames in a step must keep its state bit for bit.

    Options, beside the arguments of every `Law`:
        examples: batches and cuts to draw.
        tolerance: relative to max(1, |value|). Matrix products round by the size of the batch:
            1e-6 in float32, not bit for bit, and that of the dtype otherwise.

    Raises:
        LawBroken: naming what was done to the others and the row that noticed.

    >>> from nearfuture.layers import GRU
    >>> rows_are_independent(GRU(2, 3))
    """
    if tolerance is None:
        tolerance = 1e-6 if trial.dtype is torch.float32 else TOLERANCE[trial.dtype]
    streams = not trial.refuses_to_stream()
    events = {"alone": _alone, "beside": _beside, "moved": _moved}
    if streams:
        events |= {"reset": _reset, "inactive": _inactive}
    usual: list[tuple[Partition, int, int]] = [
        (single_frames([3, 2, 0]), 1, 2),
        (((4, 0, 1), (0, trial.frames // 2, 1), (5, 2, 2)), 0, 1),
    ]

    @lru_cache(maxsize=1)  # the explicit cases try one event after another on the same batch
    def reference(cut: Partition, row: int, at: int) -> _Reference:
        return _Reference(trial, cut, row, at, streams=streams, limit=tolerance)

    trial.check(
        lambda case: events[case.event](reference(case.cut, case.row, case.at)),
        explicit=[_RowsCase(*case, event) for case in usual for event in events],
        drawn=_rows_cases(trial.frames, list(events)),
        examples=examples,
        describe=str,
    )


class _Reference:
    """The rows of a case, and what they say when nothing happens. Events leave it as it is."""

    def __init__(
        self, trial: Trial, cut: Partition, row: int, at: int, *, streams: bool, limit: float
    ) -> None:
        self.trial, self.streams, self.limit = trial, streams, limit
        self.cut, self.row, self.at = cut, row, at
        self.lengths = lengths_of(self.cut)
        self.batch = len(self.lengths)
        self.x = trial.inputs(self.batch, max(self.lengths))
        self.offline = whole(trial.fresh(), self.x, self.lengths)
        self.online = streamed(trial.fresh(), self.x, self.cut) if streams else []

    def same(self, got: Tensor, expected: Tensor, what: str, row: int) -> None:
        where = f"row {row}, "
        same(got, expected, names=(what, "otherwise"), where=where, tolerance=self.limit)


def _alone(reference: _Reference) -> None:
    b, n, fresh = reference.row, reference.lengths[reference.row], reference.trial.fresh
    x = reference.x[b : b + 1]
    reference.same(whole(fresh(), x[:, :n], [n])[0], reference.offline[b], "alone", b)
    if reference.streams:
        cut = tuple((chunk[b],) for chunk in reference.cut if chunk[b])
        reference.same(streamed(fresh(), x, cut)[0], reference.online[b], "streamed alone", b)


def _beside(reference: _Reference) -> None:
    x, b, fresh = reference.x, reference.row, reference.trial.fresh
    longest = [n if i == b else x.shape[1] for i, n in enumerate(reference.lengths)]
    for words, mate in (("1e3", 1e3 * x), ("NaN", torch.full_like(x, math.nan))):
        mate[b] = x[b]
        got = whole(fresh(), mate, longest)[b]
        reference.same(got, reference.offline[b], f"beside {words}", b)
    if reference.streams:
        got = streamed(fresh(), mate, reference.cut)[b]
        reference.same(got, reference.online[b], "streamed beside NaN", b)


def _moved(reference: _Reference) -> None:
    """Rows in another order, or changing places between two steps: their states move with them."""
    x, at, layer = reference.x, reference.at, reference.trial.fresh()
    order = list(reversed(range(reference.batch)))
    got = whole(layer, x[order], [reference.lengths[b] for b in order])
    for b, expected in enumerate(reference.offline):
        reference.same(got[order.index(b)], expected, "in reversed order", b)
    if not reference.streams:
        return
    early, state, position = until(layer, x, reference.cut[:at])
    later = streamed(
        layer,
        x[order],
        tuple(tuple(chunk[b] for b in order) for chunk in reference.cut[at:]),
        take_rows(state, torch.tensor(order, device=x.device)),
        [position[b] for b in order],
    )
    for b, expected in enumerate(reference.online):
        moved = torch.cat([early[b], later[order.index(b)]])
        reference.same(moved, expected, f"with rows reversed before chunk {at}", b)


def _inactive(reference: _Reference) -> None:
    """A row without frames in a step keeps its state bit for bit and emits nothing."""
    layer, x = reference.trial.fresh(), reference.x
    state = started(layer, x)
    before = flatten(state)
    steps = zip(reference.cut, advance(layer, x, reference.cut, state), strict=True)
    for chunk, (new, after) in steps:
        for b in (b for b, n in enumerate(chunk) if n == 0):
            if len(new[b]):
                raise Violation(f"row {b} got no frame and emitted {len(new[b])}")
            for i, (leaf, was) in enumerate(zip(flatten(after), before, strict=True)):
                names = ("after a step without frames", "before")
                where = f"row {b} is inactive, tensor {i} of the state, "
                same(leaf[b], was[b], names=names, where=where, tolerance=0)
        before = flatten(after)


def _reset(reference: _Reference) -> None:
    """One row starts a new stream in mid-stream; the others go on."""
    x, b, at, layer = reference.x, reference.row, reference.at, reference.trial.fresh()
    early, state, position = until(layer, x, reference.cut[:at])
    fresh = layer.start(1, device=x.device, dtype=x.dtype)
    state = put_rows(state, torch.tensor([b], device=x.device), fresh)
    position[b] = 0
    after = x.clone()
    after[b] = reference.trial.inputs(reference.batch, x.shape[1], other=1)[b]
    later = streamed(layer, after, reference.cut[at:], state, position)
    alone = tuple((chunk[b],) for chunk in reference.cut[at:])
    new = streamed(reference.trial.fresh(), after[b : b + 1], alone)[0]
    reference.same(later[b], new, f"after its reset before chunk {at}", b)
    for i, expected in enumerate(reference.online):
        if i != b:
            went_on = torch.cat([early[i], later[i]])
            reference.same(went_on, expected, f"beside row {b}, reset before chunk {at}", i)
