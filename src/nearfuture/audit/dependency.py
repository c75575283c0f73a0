"""Who looks at whom, by value: change a frame, see which outputs change in any bit.

Shapes: `T` input frames, `U` output frames, `K` probes that run together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.prepare import TRIAL_ROWS, Prepared
from nearfuture.audit.probe import Probes, differs
from nearfuture.audit.subject import Subject
from nearfuture.audit.target import CannotRun

__all__ = ["Ahead", "Looks", "ahead_of", "dependency_matrix", "farthest_ahead"]

Array = NDArray[Any]

_FEW_FRAMES = 128
"""Up to here every kind of probe is put to every frame; beyond, the mixed one, and the others to
whole futures."""

_ELSEWHERE = 4
"""How many places all over the sequence are asked whether they look farther."""

_ROUNDING = 256
"""An influence below so many units of rounding may go on where it no longer shows."""


@dataclass(frozen=True)
class Looks:
    """The dependency matrix, and what its edges mean.

    Attributes:
        matrix: (U, T) bool.
        fades_back: the influence of the past sinks below the arithmetic, and may go on.
        fades_ahead: so does that of the future.
        witness: kind of the probe that showed the farthest look ahead.
    """

    matrix: Array
    fades_back: bool
    fades_ahead: bool
    witness: str


@dataclass(frozen=True)
class Ahead:
    """The farthest look ahead that a search found.

    Attributes:
        frames: input frames beyond an output's own.
        output: the output that looks so far.
        last: the input frame it looks at, the last of all that it does.
        touches_end: whether every output that looks so far looks at the last frame in use.
        fades: the influence sinks below the arithmetic there.
        kind: the probe that showed it.
    """

    frames: int
    output: int
    last: int
    touches_end: bool
    fades: bool
    kind: str


def dependency_matrix(prepared: Prepared, probes: Probes) -> Looks:
    """Probe every frame, many at a time; follow by NaN what fades, where NaN can be followed."""
    subject, rows, length = prepared.subject, prepared.rows, len(probes.base)
    base = subject.run(_tile(probes.base, rows), [length] * rows).frames
    own = prepared.own(base.shape[1])
    kinds = probes.kinds
    seen = {kinds[0]: _columns(subject, probes, kinds[0], base, rows)}
    more: Sequence[str] = kinds[1:]
    if length > _FEW_FRAMES:
        more = _contradicting(subject, probes, base, rows, seen[kinds[0]])
    for kind in more:
        seen[kind] = _columns(subject, probes, kind, base, rows)
    matrix = np.logical_or.reduce(list(seen.values()))
    ahead = ahead_of(matrix, own)
    worst = int(ahead.argmax())
    witness = max(seen, key=lambda kind: int(ahead_of(seen[kind], own)[worst]))
    back, forth = _fades(subject, probes, matrix, worst)
    nan = subject.target.follows_nan and probes.base.dtype.kind == "f"
    if not (back or forth) or not nan:
        return Looks(matrix, back, forth, witness)
    paths = _columns(subject, probes, "nan", base, rows)
    future = np.arange(length)[None] > own[:, None] + math.ceil(prepared.stride) - 1
    doubt = _Doubt(prepared, probes)
    last = len(matrix) - 1
    added_back = np.flatnonzero(paths[last] & ~future[last])
    added_back = added_back[added_back < _first(matrix[last], length)][::-1]
    added_forth = np.flatnonzero(paths[worst] & future[worst])
    added_forth = added_forth[added_forth > _last(matrix[worst])]
    if back:
        going_on = doubt.settle(last, added_back)
        matrix |= paths & ~future if going_on else False
        back = going_on is None
    if forth:
        going_on = doubt.settle(worst, added_forth)
        if going_on:
            matrix |= paths & future
            witness = "nan" if len(added_forth) else witness
        forth = going_on is None
    return Looks(matrix, back, forth, witness)


class _Doubt:
    """Whether what NaN shows beyond the last visible influence is an influence.

    `0 · NaN` is NaN: windows that end in 0 and masks that multiply let NaN through where no finite
    value passes. A copy of the model in double precision sees the nearest of those frames if the
    influence only sank below the rounding, and nothing if there is none.
    """

    _NEAREST = 8

    def __init__(self, prepared: Prepared, probes: Probes) -> None:
        self._probes = probes
        target = prepared.subject.target.in_double()
        self._subject = None
        if target is not None:
            self._subject = Subject(
                target, prepared.subject.form, np.dtype(np.float64), seed=prepared.subject.seed
            )
            self._subject.rows = prepared.subject.rows

    def settle(self, output: int, frames: Array) -> bool | None:
        """True: it goes on; False: it ended where it seemed to; None: nobody can tell."""
        if not len(frames):
            return False
        if self._subject is None:
            return None
        nearest = frames[: self._NEAREST]
        probes = Probes(self._probes.base.astype(np.float64), seed=self._subject.seed)
        length = len(probes.base)
        rows = np.concatenate([probes.base[None], probes.frames(probes.kinds[0], nearest)])
        try:
            y = self._subject.run(rows, [length] * len(rows)).frames[:, output]
        except CannotRun:
            return None
        if y.dtype != np.float64:
            return None  # it computes with fewer digits somewhere
        return bool((y[1:] != y[0]).any())


def ahead_of(matrix: Array, own: Array, observed: int = 0) -> Array:
    """(U,): how far beyond its own frame each output looks, at frames that were not observed."""
    looked = matrix.copy()
    looked[:, :observed] = False
    last = np.where(looked.any(axis=1), matrix.shape[1] - 1 - looked[:, ::-1].argmax(axis=1), own)
    return np.asarray(np.maximum(last - own, 0))


def farthest_ahead(prepared: Prepared, base: Array, *, observed: int = 0) -> Ahead:
    """The farthest look ahead alone: change whole futures, and divide where the answer must lie.

    Every call changes everything from each of a few frames on. That tells of every output whether
    it looks at or past that frame; the next call divides the interval of the output that looks
    farthest, until its last frame is known, and asks outputs all over the sequence whether they
    look farther than it; if one does, it is examined next. It takes two calls for a model that
    treats all frames alike, and about `log T` for others.
    """
    probes = Probes(base, seed=prepared.subject.seed)
    search = _Search(prepared, probes, observed)
    found = search.run(probes.kinds[0])
    if not found.fades or not prepared.subject.target.follows_nan or base.dtype.kind != "f":
        return found
    further = search.run("nan")
    beyond = np.arange(found.last + 1, further.last + 1)
    goes_on = _Doubt(prepared, probes).settle(found.output, beyond)
    if goes_on and further.frames > found.frames:
        return replace(further, fades=False)
    return replace(found, fades=goes_on is None)


class _Search:
    """What is known of every output so far: the last frame it looks at lies in [low, high]."""

    def __init__(self, prepared: Prepared, probes: Probes, observed: int) -> None:
        self.subject, self.probes = prepared.subject, probes
        self.length = len(probes.base)
        self.first = max(1, observed)
        if self.length == len(prepared.base) and len(prepared.trial) == TRIAL_ROWS:
            self.base = prepared.trial
        else:
            rows = _tile(probes.base, TRIAL_ROWS)
            self.base = self.subject.run(rows, [self.length] * TRIAL_ROWS).frames
        self.own = prepared.own(self.base.shape[1])

    def run(self, kind: str) -> Ahead:
        frames, outputs = len(self.probes.base), self.base.shape[1]
        self.low = np.minimum(self.own, frames - 1)
        self.high = np.full(outputs, frames - 1)
        self.size = np.zeros(outputs)
        self._ask(kind, np.linspace(self.first, frames - 1, TRIAL_ROWS).round())
        spread = np.linspace(0, outputs - 1, _ELSEWHERE).round().astype(int)
        while True:
            examined = int((self.low - self.own).argmax())
            farthest = int(self.low[examined] - self.own[examined])
            low, high = self.low[examined], self.high[examined]
            # Its next frame first: mostly the earliest that changes has shown its last already.
            here = np.linspace(low + 1, high, TRIAL_ROWS - _ELSEWHERE).round()
            elsewhere = self.own[spread] + farthest + 1
            asked = self._ask(kind, np.concatenate([here[here <= high], elsewhere]))
            settled = self.low[examined] == self.high[examined]
            if not asked or (settled and int((self.low - self.own).max()) <= farthest):
                break
        at_most = self.low - self.own == self.low[examined] - self.own[examined]
        rounding = _ROUNDING * _epsilon(self.base)
        return Ahead(
            frames=farthest,
            output=examined,
            last=int(self.low[examined]),
            touches_end=bool((self.low[at_most] == self.low.max()).all()) and farthest > 0,
            fades=0 < self.size[examined] < rounding,
            kind=kind,
        )

    def _ask(self, kind: str, places: Array) -> bool:
        """Change all from each of these frames on; whether there was anything to change."""
        frames = len(self.probes.base)
        cuts = np.unique(places.astype(int))
        cuts = cuts[(cuts >= self.first) & (cuts < frames)]
        if not len(cuts):
            return False
        rows = self.probes.suffixes(kind, _fill(cuts, TRIAL_ROWS))
        got = self.subject.run(rows, [self.length] * TRIAL_ROWS).frames
        changed = differs(got, self.base)
        scale = np.abs(np.nan_to_num(self.base.astype(np.float64))).max() or 1.0
        for k, cut in enumerate(cuts):
            nearer = changed[k] & (cut > self.low)
            if nearer.any():
                gap = np.abs(got[k].astype(np.float64) - self.base[k]).max(axis=-1) / scale
                self.size = np.where(nearer, gap, self.size)
            self.low = np.where(nearer, cut, self.low)
            below = np.minimum(self.high, np.maximum(cut - 1, self.low))
            self.high = np.where(changed[k], self.high, below)
        self.high = np.maximum(self.high, self.low)
        return True


def _columns(subject: Subject, probes: Probes, kind: str, base: Array, rows: int) -> Array:
    """(U, T) bool for one kind of probe."""
    frames = length = len(probes.base)
    matrix = np.zeros((base.shape[1], frames), np.bool_)
    for begin in range(0, frames, rows):
        places = np.arange(begin, min(begin + rows, frames))
        got = subject.run(probes.frames(kind, _fill(places, rows)), [length] * rows).frames
        matrix[:, places] = differs(got, base)[: len(places)].T
    return matrix


def _contradicting(
    subject: Subject, probes: Probes, base: Array, rows: int, matrix: Array
) -> list[str]:
    """Kinds of probes that see outputs look farther ahead than the matrix says."""
    frames = length = matrix.shape[1]
    last = np.where(matrix.any(axis=1), frames - 1 - matrix[:, ::-1].argmax(axis=1), -1)
    kinds = probes.kinds[1:]
    cuts = np.linspace(1, frames - 1, max(1, rows // len(kinds))).round().astype(int)
    asked = [(kind, int(cut)) for kind in kinds for cut in cuts]
    found = []
    for begin in range(0, len(asked), rows):
        some = asked[begin : begin + rows]
        x = np.concatenate([probes.suffixes(kind, np.array([cut])) for kind, cut in some])
        got = subject.run(x[_fill(np.arange(len(x)), rows)], [length] * rows).frames
        for (kind, cut), changed in zip(some, differs(got, base), strict=False):
            if bool((changed & (cut > last)).any()):
                found.append(kind)
    return list(dict.fromkeys(found))


def _fades(subject: Subject, probes: Probes, matrix: Array, worst: int) -> tuple[bool, bool]:
    """Whether influence sinks into rounding at the edge of the past, and of the future."""
    frames = length = matrix.shape[1]
    last_output = matrix.shape[0] - 1
    past, future = np.flatnonzero(matrix[last_output]), np.flatnonzero(matrix[worst])
    if not len(past) or not len(future):
        return False, False
    places = np.array([past[0], future[-1]])
    kind = probes.kinds[0]
    rows = np.concatenate([probes.base[None], probes.frames(kind, places)])
    answer = subject.run(rows, [length] * 3).frames
    y, precision = answer.astype(np.float64), _epsilon(answer)
    rounding = _ROUNDING * precision
    scale = np.abs(y[0]).max() or 1.0
    back = np.abs(y[1, last_output] - y[0, last_output]).max() / scale
    ahead = np.abs(y[2, worst] - y[0, worst]).max() / scale
    return bool(back < rounding and past[0] > 0), bool(ahead < rounding and future[-1] < frames - 1)


def _first(looks: Array, default: int) -> int:
    return int(looks.argmax()) if looks.any() else default


def _last(looks: Array) -> int:
    return int(np.flatnonzero(looks)[-1]) if looks.any() else -1


def _epsilon(values: Array) -> float:
    return float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 0.0


def _tile(base: Array, rows: int) -> Array:
    return np.broadcast_to(base[None], (rows, *base.shape))


def _fill(places: Array, rows: int) -> Array:
    """The same places, the last repeated, so that every call has the same shape."""
    return np.concatenate([places, np.full(rows - len(places), places[-1], places.dtype)])
