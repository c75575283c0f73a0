"""The dependency matrix by value: replace a frame, and compare every output bit for bit.

Shapes: `T` input frames, `U` output frames, `K` probes that run together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.comparison import differs, epsilon, gaps, largest
from nearfuture.audit.probing.probes import Probes, fill
from nearfuture.audit.probing.rounding import ROUNDING, RoundingCheck
from nearfuture.audit.setup import Setup

Array = NDArray[Any]

_FEW_FRAMES = 128
"""Up to here every kind of probe replaces every frame; beyond, the mixed one does, and the others
replace whole futures."""

_CUTS = 5
"""Futures of each kind that are replaced as a whole."""


@dataclass(frozen=True)
class Dependencies:
    """The dependency matrix, and what its edges mean.

    Attributes:
        matrix: (U, T) bool.
        kind: the probe that showed the farthest dependency ahead.
        past_fades: influence of the past sinks below floating-point resolution, and may continue.
        future_fades: so does that of the future.
        rounded: changes of the size of rounding were not counted.
        undecided: an output and the farthest input of which the audit cannot decide whether the
            output depends on it or is rounded differently; None: there is no doubt.
    """

    matrix: Array
    kind: str
    past_fades: bool = False
    future_fades: bool = False
    rounded: bool = False
    undecided: tuple[int, int] | None = None


def dependency_matrix(setup: Setup, probes: Probes) -> Dependencies:
    """Measure the dependency matrix by probing every frame; NaN finds dependencies that fade."""
    probing = _Probing(setup, probes)
    matrix, kind = probing.values()
    own = setup.own(len(matrix))
    rounding = RoundingCheck(setup, probes)
    worst, last = int(frames_ahead(matrix, own).argmax()), len(matrix) - 1
    sizes = probing.sizes(matrix, worst)
    future = np.arange(matrix.shape[1])[None] > own[:, None] + math.ceil(setup.stride) - 1
    ahead = np.flatnonzero(matrix[worst] & future[worst])
    if len(ahead):
        is_rounding = rounding.is_rounding(worst, ahead, probing.tiny * largest(probing.base))
        if is_rounding is not False:
            undecided = None if is_rounding else (worst, int(ahead[-1]))
            matrix, kind = probing.values(floor=ROUNDING)
            return Dependencies(matrix, kind, rounded=True, undecided=undecided)
    past_fades = sizes[0] < probing.tiny and not matrix[last, 0]
    future_fades = sizes[1] < probing.tiny and not matrix[worst, -1]
    by_nan = setup.model.adapter.propagates_nan and probes.base.dtype.kind == "f"
    if not (past_fades or future_fades) or not by_nan:
        return Dependencies(matrix, kind, past_fades, future_fades)
    paths = probing.columns("nan")
    if past_fades:
        added = np.flatnonzero(paths[last] & ~future[last])
        continues = rounding.continues(last, added[added < matrix[last].argmax()][::-1])
        matrix = matrix | (paths & ~future) if continues else matrix
        past_fades = continues is None
    if future_fades:
        added = np.flatnonzero(paths[worst] & future[worst])
        continues = rounding.continues(worst, added[added > np.flatnonzero(matrix[worst])[-1]])
        matrix = matrix | (paths & future) if continues else matrix
        kind = "nan" if continues else kind
        future_fades = continues is None
    return Dependencies(matrix, kind, past_fades, future_fades)


def frames_ahead(matrix: Array, own: Array, observed: int = 0) -> Array:
    """Return (U,): how far after its own frame each output depends on frames not observed."""
    counted = matrix.copy()
    counted[:, :observed] = False
    return np.asarray(
        np.maximum(np.where(counted.any(axis=1), last_dependency(counted), own) - own, 0)
    )


def last_dependency(matrix: Array) -> Array:
    """Return (U,): the last input frame that each output depends on; -1 for none.

    >>> last_dependency(np.array([[True, True, False], [False, False, False]])).tolist()
    [1, -1]
    """
    last = matrix.shape[1] - 1 - matrix[:, ::-1].argmax(axis=1)
    return np.where(matrix.any(axis=1), last, -1)


class _Probing:
    """Probes in batches of one shape, compared with an unchanged batch of that shape.

    Attributes:
        base: (K, U, E), the result for the unchanged batch.
        tiny: changes below this, relative to the largest output, may be rounding.
    """

    def __init__(self, setup: Setup, probes: Probes) -> None:
        self.setup, self.probes, self.rows = setup, probes, setup.rows
        self.length = len(probes.base)
        self.own = setup.own(setup.trial.shape[1])
        self.base = setup.run(np.broadcast_to(probes.base, (self.rows, *probes.base.shape)))
        self.tiny = ROUNDING * epsilon(self.base)

    def values(self, floor: float = 0.0) -> tuple[Array, str]:
        """Return (U, T) bool by finite probes, and the kind that showed the farthest dependency.

        Args:
            floor: changes below this many units of rounding do not count; 0: every bit does.
        """
        kinds = self.probes.kinds
        few = self.length <= _FEW_FRAMES
        seen: dict[str, Array] = {}
        known = np.zeros((self.base.shape[1], self.length), np.bool_)
        for kind in kinds if few else kinds[:1]:
            # A frame that every output is known to depend on needs no other kind.
            seen[kind] = self.columns(kind, floor, np.flatnonzero(~known.all(axis=0)))
            known |= seen[kind]
        # A whole future may do what no frame of it does alone, or what only another kind does.
        beyond = self._beyond(known, kinds, floor)
        for kind, _, _ in beyond:
            if kind not in seen:
                seen[kind] = self.columns(kind, floor)
        matrix = np.logical_or.reduce(list(seen.values()))
        for _, cut, outputs in beyond:
            matrix[outputs, cut] |= ~matrix[outputs, cut:].any(axis=1)
        worst = int(frames_ahead(matrix, self.own).argmax())
        far = {kind: int(frames_ahead(each, self.own)[worst]) for kind, each in seen.items()}
        return matrix, max(far, key=lambda kind: far[kind])

    def columns(self, kind: str, floor: float = 0.0, frames: Array | None = None) -> Array:
        """Return (U, T) bool for one kind of probe, False where a frame is not among these."""
        matrix = np.zeros((self.base.shape[1], self.length), np.bool_)
        frames = np.arange(self.length) if frames is None else frames
        for begin in range(0, len(frames), self.rows):
            places = frames[begin : begin + self.rows]
            got = self.setup.run(self.probes.frames(kind, fill(places, self.rows)))
            matrix[:, places] = differs(got, self.base, floor)[: len(places)].T
        return matrix

    def sizes(self, matrix: Array, worst: int) -> tuple[float, float]:
        """Return the relative size of a change at the edge of the past, and of the future."""
        last = len(matrix) - 1
        past, future = np.flatnonzero(matrix[last]), np.flatnonzero(matrix[worst])
        if not len(past) or not len(future):
            return math.inf, math.inf  # there is no influence that could fade
        places = np.array([past[0], future[-1]])
        changed = self.probes.frames(self.probes.kinds[0], places)
        y = self.setup.run(np.concatenate([self.probes.base[None], changed]))
        scale = largest(y[0]) or 1.0
        return (
            float(gaps(y[1, last], y[0, last]) / scale),
            float(gaps(y[2, worst], y[0, worst]) / scale),
        )

    def _beyond(
        self, matrix: Array, kinds: Sequence[str], floor: float
    ) -> list[tuple[str, int, Array]]:
        """Return kinds, cuts, and the outputs that change after a cut against the matrix."""
        last = last_dependency(matrix)
        cuts = np.unique(np.linspace(1, self.length - 1, _CUTS).round().astype(int))
        tried = [(kind, int(cut)) for kind in kinds for cut in cuts]
        beyond = []
        for begin in range(0, len(tried), self.rows):
            some = tried[begin : begin + self.rows]
            x = np.concatenate([self.probes.suffixes(kind, np.array([cut])) for kind, cut in some])
            got = self.setup.run(x[fill(np.arange(len(x)), self.rows)])
            changes = differs(got, self.base, floor)
            for (kind, cut), changed in zip(some, changes, strict=False):
                outputs = np.flatnonzero(changed & (cut > last))
                if len(outputs):
                    beyond.append((kind, cut, outputs))
        return beyond
