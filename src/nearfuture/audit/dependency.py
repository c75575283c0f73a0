"""Who looks at whom, by value: change a frame, see which outputs change in any bit.

Shapes: `T` input frames, `U` output frames, `K` probes that run together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.doubt import ROUNDING, Doubt, epsilon
from nearfuture.audit.prepare import Prepared
from nearfuture.audit.probe import Probes, differs, fill
from nearfuture.audit.subject import Subject

Array = NDArray[Any]

_FEW_FRAMES = 128
"""Up to here every kind of probe is put to every frame; beyond, the mixed one, and the others to
whole futures."""

_CUTS = 5
"""Futures of each kind that are changed as a whole."""


@dataclass(frozen=True)
class Looks:
    """The dependency matrix, and what its edges mean.

    Attributes:
        matrix: (U, T) bool.
        fades_back: the influence of the past sinks below the arithmetic, and may go on.
        fades_ahead: so does that of the future.
        witness: kind of the probe that showed the farthest look ahead.
        rounded: changes of the size of rounding were left out.
    """

    matrix: Array
    fades_back: bool
    fades_ahead: bool
    witness: str
    rounded: bool


def dependency_matrix(prepared: Prepared, probes: Probes) -> Looks:
    """Probe every frame, many at a time; follow by NaN what fades, where NaN can be followed."""
    probing = _Probing(prepared, probes)
    matrix, witness = probing.values()
    own = prepared.own(len(matrix))
    doubt = Doubt(prepared, probes)
    worst, last = int(ahead_of(matrix, own).argmax()), len(matrix) - 1
    sizes = probing.sizes(matrix, worst)
    future = np.arange(matrix.shape[1])[None] > own[:, None] + math.ceil(prepared.stride) - 1
    looked = np.flatnonzero(matrix[worst] & future[worst])
    scale = float(np.abs(np.nan_to_num(probing.base.astype(np.float64))).max())
    if len(looked) and doubt.is_rounding(worst, looked, probing.tiny * scale):
        probing.floor = ROUNDING
        matrix, witness = probing.values()
        return Looks(matrix, False, False, witness, True)
    back = sizes[0] < probing.tiny and not matrix[last, 0]
    forth = sizes[1] < probing.tiny and not matrix[worst, -1]
    nan = prepared.subject.target.follows_nan and probes.base.dtype.kind == "f"
    if not (back or forth) or not nan:
        return Looks(matrix, back, forth, witness, False)
    paths = probing.columns("nan")
    if back:
        added = np.flatnonzero(paths[last] & ~future[last])
        goes_on = doubt.goes_on(last, added[added < matrix[last].argmax()][::-1])
        matrix = matrix | (paths & ~future) if goes_on else matrix
        back = goes_on is None
    if forth:
        added = np.flatnonzero(paths[worst] & future[worst])
        added = added[added > np.flatnonzero(matrix[worst])[-1]]
        goes_on = doubt.goes_on(worst, added)
        matrix = matrix | (paths & future) if goes_on else matrix
        witness = "nan" if goes_on else witness
        forth = goes_on is None
    return Looks(matrix, back, forth, witness, False)


def ahead_of(matrix: Array, own: Array, observed: int = 0) -> Array:
    """(U,): how far beyond its own frame each output looks, at frames that were not observed."""
    looked = matrix.copy()
    looked[:, :observed] = False
    last = np.where(looked.any(axis=1), matrix.shape[1] - 1 - looked[:, ::-1].argmax(axis=1), own)
    return np.asarray(np.maximum(last - own, 0))


class _Probing:
    """Probes in batches of one shape, beside an unchanged batch of that shape.

    Attributes:
        floor: changes below so many units of rounding do not count; 0: every bit does.
        tiny: changes below this, relative to the largest output, may be something else.
    """

    def __init__(self, prepared: Prepared, probes: Probes) -> None:
        self.subject: Subject = prepared.subject
        self.probes, self.rows = probes, prepared.rows
        self.length = len(probes.base)
        self.floor = 0
        self.own = prepared.own(prepared.trial.shape[1])
        self.base = self._run(np.broadcast_to(probes.base, (self.rows, *probes.base.shape)))
        self.tiny = ROUNDING * epsilon(self.base)

    def values(self) -> tuple[Array, str]:
        """(U, T) bool by finite probes, and the kind that saw the farthest look ahead."""
        kinds = self.probes.kinds
        few = self.length <= _FEW_FRAMES
        seen = {kind: self.columns(kind) for kind in (kinds if few else kinds[:1])}
        # A whole future may do what no frame of it does alone, or what only another kind does.
        beyond = self._beyond(np.logical_or.reduce(list(seen.values())), kinds)
        for kind, _, _ in beyond:
            if kind not in seen:
                seen[kind] = self.columns(kind)
        matrix = np.logical_or.reduce(list(seen.values()))
        for _, cut, outputs in beyond:
            matrix[outputs, cut] |= ~matrix[outputs, cut:].any(axis=1)
        worst = int(ahead_of(matrix, self.own).argmax())
        far = {kind: int(ahead_of(each, self.own)[worst]) for kind, each in seen.items()}
        return matrix, max(far, key=lambda kind: far[kind])

    def columns(self, kind: str) -> Array:
        """(U, T) bool for one kind of probe."""
        matrix = np.zeros((self.base.shape[1], self.length), np.bool_)
        for begin in range(0, self.length, self.rows):
            places = np.arange(begin, min(begin + self.rows, self.length))
            got = self._run(self.probes.frames(kind, fill(places, self.rows)))
            matrix[:, places] = differs(got, self.base, self.floor)[: len(places)].T
        return matrix

    def sizes(self, matrix: Array, worst: int) -> tuple[float, float]:
        """The relative size of a change at the edge of the past, and at that of the future."""
        last = len(matrix) - 1
        past, future = np.flatnonzero(matrix[last]), np.flatnonzero(matrix[worst])
        if not len(past) or not len(future):
            return math.inf, math.inf  # nothing is looked at: nothing fades
        places = np.array([past[0], future[-1]])
        rows = np.concatenate(
            [self.probes.base[None], self.probes.frames(self.probes.kinds[0], places)]
        )
        y = self._run(rows).astype(np.float64)
        scale = np.abs(y[0]).max() or 1.0
        back, ahead = np.abs(y[1, last] - y[0, last]), np.abs(y[2, worst] - y[0, worst])
        return float(back.max() / scale), float(ahead.max() / scale)

    def _beyond(self, matrix: Array, kinds: Sequence[str]) -> list[tuple[str, int, Array]]:
        """Kinds, cuts, and the outputs that change with what follows a cut against the matrix."""
        frames = self.length
        last = np.where(matrix.any(axis=1), frames - 1 - matrix[:, ::-1].argmax(axis=1), -1)
        cuts = np.unique(np.linspace(1, frames - 1, _CUTS).round().astype(int))
        asked = [(kind, int(cut)) for kind in kinds for cut in cuts]
        found = []
        for begin in range(0, len(asked), self.rows):
            some = asked[begin : begin + self.rows]
            x = np.concatenate([self.probes.suffixes(kind, np.array([cut])) for kind, cut in some])
            got = self._run(x[fill(np.arange(len(x)), self.rows)])
            for (kind, cut), changed in zip(
                some, differs(got, self.base, self.floor), strict=False
            ):
                outputs = np.flatnonzero(changed & (cut > last))
                if len(outputs):
                    found.append((kind, cut, outputs))
        return found

    def _run(self, x: Array) -> Array:
        frames: Array = self.subject.run(x, [self.length] * len(x)).frames
        return frames
