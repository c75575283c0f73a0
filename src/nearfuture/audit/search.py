"""The lookahead alone, in a few calls: change whole futures, divide where the answer must lie.

Shapes: `T` input frames, `U` output frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.doubt import ROUNDING, Doubt, epsilon
from nearfuture.audit.prepare import TRIAL_ROWS, Prepared
from nearfuture.audit.probe import Probes, differs, fill
from nearfuture.audit.target import CannotRun

Array = NDArray[Any]

_ELSEWHERE = 4
"""How many places all over the sequence are asked whether they look farther."""

_ENOUGH_FRAMES = 256


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
        rounded: changes of the size of rounding were left out.
    """

    frames: int
    output: int
    last: int
    touches_end: bool
    fades: bool
    kind: str
    rounded: bool = False


def farthest_ahead(prepared: Prepared, base: Array, *, observed: int = 0) -> Ahead:
    """The farthest look ahead of any output.

    Every call changes everything from each of a few frames on. That tells of every output whether
    it looks at or past that frame; the next call divides the interval of the output that looks
    farthest, until its last frame is known, and asks outputs all over the sequence whether they
    look farther than it; if one does, it is examined next. It takes two calls for a model that
    treats all frames alike, and about `log T` for others.
    """
    probes = Probes(base, seed=prepared.subject.seed)
    search = _Search(prepared, probes, observed)
    found = search.run(probes.kinds[0])
    if not found.fades or base.dtype.kind != "f":
        return found
    doubt = Doubt(prepared, probes)
    nearest = np.arange(found.last - found.frames + 1, found.last + 1)
    if found.frames and doubt.is_rounding(found.output, nearest, search.tiny):
        search.floor = ROUNDING
        return replace(search.run(probes.kinds[0]), rounded=True, fades=False)
    if not prepared.subject.target.follows_nan:
        return found
    further = search.run("nan")
    goes_on = doubt.goes_on(found.output, np.arange(found.last + 1, further.last + 1))
    if goes_on and further.frames > found.frames:
        return replace(further, fades=False)
    return replace(found, fades=goes_on is None)


def boundless(prepared: Prepared, found: Ahead, observed: int, limit: float) -> tuple[float, bool]:
    """The lookahead, or inf where it grows with the sequence: tried on longer and longer ones.

    At least twice as long, 256 frames, and long enough to see beyond the limit; one frame more each
    time, so that no block of frames fits them all. What touches the end of them grows. A number is
    believed where a longer sequence says it again, for two of three sequences of values.

    Returns:
        The frames, and whether they may be more.
    """
    base = prepared.base
    enough = max(2 * len(base), _ENOUGH_FRAMES)
    if math.isfinite(limit):
        enough = max(enough, math.ceil(2 * (limit + prepared.stride)))
    seen, grew = found.frames, False
    if not found.touches_end:
        return seen, found.fades
    if not prepared.any_length:
        return math.inf, False
    while len(base) < enough or grew:
        base = np.concatenate([base, base[::-1], base[:1]])
        rng = np.random.default_rng(len(base))
        answers: list[Ahead] = []
        for values in (base, rng.permutation(base), rng.permutation(base)):
            try:
                answers.append(farthest_ahead(prepared, values, observed=observed))
            except CannotRun:
                return math.inf, False
            if answers[-1].touches_end:
                break
        if answers[-1].touches_end:
            if grew:
                return math.inf, False
            continue
        far = max(answers, key=lambda each: each.frames)
        again = sum(each.frames == far.frames for each in answers) > 1
        if far.frames < seen or (far.frames == seen and not again):
            return seen, True
        if far.frames == seen:
            return seen, False
        if far.fades or grew:
            return math.inf, False  # it grew, and may have sunk on the way
        seen, grew = far.frames, True
    return math.inf, False


class _Search:
    """What is known of every output so far: the last frame it looks at lies in [low, high]."""

    def __init__(self, prepared: Prepared, probes: Probes, observed: int) -> None:
        self.subject, self.probes = prepared.subject, probes
        self.length = len(probes.base)
        self.first = max(1, observed)
        self.floor = 0
        if self.length == len(prepared.base) and len(prepared.trial) == TRIAL_ROWS:
            self.base = prepared.trial
        else:
            rows = np.broadcast_to(probes.base, (TRIAL_ROWS, *probes.base.shape))
            self.base = self.subject.run(rows, [self.length] * TRIAL_ROWS).frames
        self.own = prepared.own(self.base.shape[1])
        scale = float(np.abs(np.nan_to_num(self.base.astype(np.float64))).max())
        self.tiny = ROUNDING * epsilon(self.base) * scale

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
        rounding = ROUNDING * epsilon(self.base)
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
        rows = self.probes.suffixes(kind, fill(cuts, TRIAL_ROWS))
        got = self.subject.run(rows, [self.length] * TRIAL_ROWS).frames
        changed = differs(got, self.base, self.floor)
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
