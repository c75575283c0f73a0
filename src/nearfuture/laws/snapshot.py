"""Law 6: save, restore and continue, as if never interrupted."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor

from nearfuture.laws.law import law
from nearfuture.laws.strategies import interrupted
from nearfuture.laws.stream import (
    Partition,
    described,
    lengths_of,
    started,
    streamed,
    until,
)
from nearfuture.laws.trial import EXAMPLES, Trial
from nearfuture.laws.violation import same
from nearfuture.layers import State
from nearfuture.layers.state import (
    batch_size,
    clone,
    deserialize,
    flatten,
    put_rows,
    serialize,
    take_rows,
    to,
)

_WAYS: dict[str, Callable[[State, State], State]] = {
    "clone": lambda state, _: clone(state),
    "to": lambda state, _: to(state, flatten(state)[0].device),
    "take_rows": lambda state, _: take_rows(state, _everyone(state)),
    "put_rows": lambda state, start: put_rows(start, _everyone(state), state),
    "serialize": lambda state, start: deserialize(serialize(state), start),
}
"""A state and one before the first frame → a snapshot."""


def _everyone(state: State) -> Tensor:
    return torch.arange(batch_size(state), device=flatten(state)[0].device)


class _SnapshotCase(NamedTuple):
    cut: Partition
    at: int
    way: str

    def __str__(self) -> str:
        return f"{described(self.cut)}, saved by {self.way} before chunk {self.at}"


@law(6, "snapshot round trip")
def snapshot_round_trip(trial: Trial, *, examples: int = EXAMPLES) -> None:
    """Law 6: a snapshot in memory or in bytes continues bit for bit where the stream was.

    Neither going on nor overwriting the original changes a snapshot, and a step changes nothing in
    the state it was given.

    Options, beside the arguments of every `Law`:
        examples: cuts and interruptions to draw.

    Raises:
        LawBroken: naming the snapshot and the first difference.

    >>> from nearfuture.layers import LSTM
    >>> snapshot_round_trip(LSTM(2, 3))
    """
    trial.check(
        lambda case: _survives(trial, case),
        explicit=[_SnapshotCase(((2, 0), (4, 1), (trial.frames, 1)), 2, way) for way in _WAYS],
        drawn=st.tuples(interrupted(trial.frames), st.sampled_from(list(_WAYS))).map(
            lambda drawn: _SnapshotCase(*drawn[0], drawn[1])
        ),
        examples=examples,
        describe=str,
    )


def _survives(trial: Trial, case: _SnapshotCase) -> None:
    cut, at, way = case
    lengths = lengths_of(cut)
    x = trial.inputs(len(lengths), max(lengths))
    layer = trial.fresh()
    _, state, position = until(layer, x, cut[:at])
    truth = [leaf.clone() for leaf in flatten(state)]
    start, untouched = (started(trial.fresh(), x) for _ in range(2))
    snapshot = _WAYS[way](state, start)
    _unchanged(start, flatten(untouched), f"{way} writes into its argument")
    expected = streamed(layer, x, cut[at:], state, position)
    _unchanged(state, truth, "going on writes into the state it was given")
    for leaf in flatten(state):
        leaf.fill_(77)
    _unchanged(snapshot, truth, f"{way} shares memory with the original")
    continued = streamed(layer, x, cut[at:], snapshot, position)
    for b, (got, never) in enumerate(zip(continued, expected, strict=True)):
        names = ("restored", "uninterrupted")
        same(got, never, names=names, where=f"row {b}, ", tolerance=0)


def _unchanged(state: State, truth: list[Tensor], what: str) -> None:
    for i, (leaf, was) in enumerate(zip(flatten(state), truth, strict=True)):
        where = f"{what}: tensor {i}, "
        same(leaf, was, names=("afterwards", "before"), where=where, words=(), tolerance=0)
