"""How far the outputs of a model depend on its inputs: the numbers of a report.

Shapes: `T` input frames, `U` output frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.probing import (
    FarthestDependency,
    Probes,
    dependency_matrix,
    extrapolate,
    farthest_dependency,
    frames_ahead,
    last_dependency,
)
from nearfuture.audit.setup import Setup

Array = NDArray[Any]

_MATRIX_FRAMES = 2000
"""Longer matrices take a while, and are measured only on request."""

_MANY = 8
"""Fewer outputs with the same lookahead may have it by chance: longer sequences show it."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The dependencies of a model, as far as they were measured.

    Attributes:
        matrix, lookahead, lookback, lookahead_is_lower_bound, lookback_is_lower_bound: as in
            `Report`.
        kind: the probe that showed the farthest dependency ahead.
        output: the output that looks so far.
        own: (U,) the input frame at which each output's own begins.
        last: (U,) the last input frame that each output depends on.
        middle: the same of an output in the middle of those that look so far.
        undecided: an output and the farthest input of which the audit cannot decide whether the
            output depends on it or is rounded differently.
        checked: what was measured.
        notes: what a reader of the numbers should know.
    """

    matrix: Array | None
    lookahead: float
    lookback: float | None
    lookahead_is_lower_bound: bool
    lookback_is_lower_bound: bool = False
    kind: str
    output: int
    own: Array
    last: Array
    middle: int
    undecided: tuple[int, int] | None
    checked: str
    notes: tuple[str, ...]

    @property
    def certain_last(self) -> Array:
        """(U,) the last input frame that each output may depend on, where a unit saturates too."""
        if math.isinf(self.lookahead):
            return self.last
        return np.asarray(np.maximum(self.last, self.own + math.ceil(self.lookahead)))


def measure(setup: Setup, matrix: bool | None, limit: float) -> Measurement:
    """Measure every output, or only the one that looks farthest.

    Args:
        setup: the model.
        matrix: whether to measure the whole matrix; None: up to 2000 frames.
        limit: the lookahead allowed; longer sequences are tried until they show more than that.
    """
    if len(setup.base) <= _MATRIX_FRAMES if matrix is None else matrix:
        return _whole_matrix(setup, limit)
    return _lookahead_alone(setup, limit)


def _lookahead_alone(setup: Setup, limit: float) -> Measurement:
    look = farthest_dependency(setup, setup.base)
    own = setup.own(setup.trial.shape[1])
    last = np.minimum(own + look.frames, len(setup.base) - 1)
    last[look.output] = look.last
    lookahead, more = extrapolate(setup, look, limit)
    return Measurement(
        matrix=None,
        lookahead=lookahead,
        lookback=None,
        lookahead_is_lower_bound=more or look.undecided is not None,
        kind=look.kind,
        output=look.output,
        own=own,
        last=last,
        middle=look.last,
        undecided=look.undecided,
        checked="the lookahead, by replacing whole futures",
        notes=_notes(setup, look.rounded and look.undecided is None),
    )


def _whole_matrix(setup: Setup, limit: float) -> Measurement:
    dependencies = dependency_matrix(setup, Probes(setup.base, seed=setup.seed))
    matrix = dependencies.matrix
    notes = _notes(setup, dependencies.rounded and dependencies.undecided is None)
    if constant := int((~matrix.any(axis=1)).sum()):
        notes += (f"{constant} of {len(matrix)} outputs depend on nothing: no input changes them",)
    own, last = setup.own(len(matrix)), last_dependency(matrix)
    ahead = frames_ahead(matrix, own, setup.observed)
    worst = int(ahead.argmax())
    farthest = np.flatnonzero(ahead == ahead[worst])
    look = FarthestDependency(
        frames=int(ahead[worst]),
        output=worst,
        last=int(last[worst]),
        touches_end=bool(ahead[worst] and (last[farthest] == last.max()).all()),
        kind=dependencies.kind,
        uniform=_is_uniform(ahead, own, len(setup.base)),
    )
    lookahead, more = extrapolate(setup, look, limit)
    return Measurement(
        matrix=matrix,
        lookahead=lookahead,
        lookback=_lookback(matrix, own),
        lookahead_is_lower_bound=(
            dependencies.future_fades or more or dependencies.undecided is not None
        ),
        lookback_is_lower_bound=dependencies.past_fades,
        kind=dependencies.kind,
        output=worst,
        own=own,
        last=last,
        middle=int(last[farthest[len(farthest) // 2]]),
        undecided=dependencies.undecided,
        checked="every input frame against every output frame",
        notes=notes,
    )


def _is_uniform(ahead: Array, own: Array, frames: int) -> bool:
    """Whether half of the outputs that could have the largest lookahead have it, and are many."""
    could = own + ahead.max() < frames
    farthest = int((ahead[could] == ahead.max()).sum())
    return farthest >= _MANY and 2 * farthest >= int(could.sum())


def _notes(setup: Setup, rounded: bool) -> tuple[str, ...]:
    notes = []
    if rounded:
        notes.append(
            "changes of the size of rounding were not counted: they shrink in higher precision"
        )
    if setup.trial.dtype.kind != "f":
        notes.append(
            "the outputs are integers: only a change of an integer is visible; audit the scores "
            "from which they are decided"
        )
    return tuple(notes)


def _lookback(matrix: Array, own: Array) -> float:
    """Return the farthest look back; inf where the farthest reach the first frame."""
    depends = matrix.any(axis=1)
    if not depends.any():
        return 0
    first = matrix.argmax(axis=1)
    back = np.where(depends, np.maximum(own - first, 0), 0)
    farthest = depends & (back == back.max())
    if back.max() > 0 and bool((first[farthest] == 0).all()):
        return math.inf
    return int(back.max())
