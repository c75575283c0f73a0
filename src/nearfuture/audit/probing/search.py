"""The lookahead alone, in a few calls: replace whole futures, and bisect where the answer lies.

Shapes: `T` input frames, `U` output frames.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.comparison import differs, epsilon, gaps, largest
from nearfuture.audit.probing.probes import Probes, fill
from nearfuture.audit.probing.rounding import ROUNDING, RoundingCheck
from nearfuture.audit.setup import TRIAL_ROWS, Setup

Array = NDArray[Any]

_ELSEWHERE = 4
"""Places all over the sequence at which each call looks for an output that looks farther."""


@dataclass(frozen=True)
class FarthestDependency:
    """The dependency that reaches farthest ahead.

    Attributes:
        frames: input frames after the output's own.
        output: the output.
        last: the last input frame that it depends on.
        touches_end: every output that looks so far depends on the last frame in use.
        kind: the probe that showed it.
        uniform: other outputs look as far, as far as that was measured.
        fades: the influence sinks below floating-point resolution there.
        rounded: changes of the size of rounding were not counted.
        undecided: as in `Dependencies`.
    """

    frames: int
    output: int
    last: int
    touches_end: bool
    kind: str
    uniform: bool = True
    fades: bool = False
    rounded: bool = False
    undecided: tuple[int, int] | None = None


def farthest_dependency(setup: Setup, base: Array) -> FarthestDependency:
    """Find the farthest lookahead of any output by bisection.

    Every call replaces everything from each of a few frames on, which shows for every output
    whether it depends on any frame from there on. The next call bisects the interval of the output
    that looks farthest, until its last frame is known, and tests outputs all over the sequence for
    a longer lookahead; one that has it is examined next. This takes two calls for a model that
    treats all frames alike, and about `log T` for others.

    Args:
        setup: the model.
        base: (T, …), a row; its length may differ from the example's.
    """
    probes = Probes(base, seed=setup.seed)
    search = _Search(setup, probes)
    kinds = (probes.kinds[0], *probes.neighbours)
    look = max((search.run(kind) for kind in kinds), key=attrgetter("frames"))
    if not look.fades:
        return look
    rounding = RoundingCheck(setup, probes)
    nearest = np.arange(look.last - look.frames + 1, look.last + 1)
    if look.frames:
        is_rounding = rounding.is_rounding(look.output, nearest, search.tiny)
        if is_rounding is not False:
            undecided = None if is_rounding else (look.output, look.last)
            above = search.run(probes.kinds[0], floor=ROUNDING)
            return replace(above, rounded=True, fades=False, undecided=undecided)
    if base.dtype.kind != "f" or not setup.model.adapter.propagates_nan:
        return look
    if look.frames == search.frames - 1 - search.own[0]:  # nothing lies farther ahead
        return replace(look, fades=False)
    further = search.run("nan")
    continues = rounding.continues(look.output, np.arange(look.last + 1, further.last + 1))
    if continues and further.frames > look.frames:
        return replace(further, fades=False)
    return replace(look, fades=continues is None)


@dataclass
class _Intervals:
    """Bounds for every output: the last frame it depends on lies in [low, high].

    Attributes:
        low, high: (U,).
        size: (U,), the relative change that raised `low` last.
    """

    low: Array
    high: Array
    size: Array


class _Search:
    """Searches of one sequence, all compared with the same unchanged answers."""

    def __init__(self, setup: Setup, probes: Probes) -> None:
        self.setup, self.probes = setup, probes
        self.frames = len(probes.base)
        self.first = max(1, setup.observed)
        if self.frames == len(setup.base) and len(setup.trial) == TRIAL_ROWS:
            self.base = setup.trial
        else:
            self.base = setup.run(np.broadcast_to(probes.base, (TRIAL_ROWS, *probes.base.shape)))
        self.own = setup.own(self.base.shape[1])
        self.scale = largest(self.base)
        self.tiny = ROUNDING * epsilon(self.base) * self.scale

    def run(self, kind: str, floor: float = 0.0) -> FarthestDependency:
        """Search with one kind of probe; changes below so many units of rounding do not count."""
        last, outputs = self.frames - 1, self.base.shape[1]
        known = _Intervals(np.minimum(self.own, last), np.full(outputs, last), np.zeros(outputs))
        cuts = np.linspace(self.first, last, TRIAL_ROWS).round()
        self._narrow(known, kind, cuts, floor)
        everywhere = np.linspace(0, outputs - 1, _ELSEWHERE).round().astype(int)
        while True:
            examined = int((known.low - self.own).argmax())
            farthest = int(known.low[examined] - self.own[examined])
            low, high = known.low[examined], known.high[examined]
            # Its next frame first: mostly the earliest that changes is its last already.
            here = np.linspace(low + 1, high, TRIAL_ROWS - _ELSEWHERE).round()
            elsewhere = self.own[everywhere] + farthest + 1
            cuts = np.concatenate([here[here <= high], elsewhere])
            tried = self._narrow(known, kind, cuts, floor)
            settled = known.low[examined] == known.high[examined]
            if not tried or (settled and int((known.low - self.own).max()) <= farthest):
                break
        alike = known.low - self.own == known.low[examined] - self.own[examined]
        return FarthestDependency(
            frames=farthest,
            output=examined,
            last=int(known.low[examined]),
            touches_end=farthest > 0 and bool((known.low[alike] == known.low.max()).all()),
            kind=kind,
            fades=0 < known.size[examined] < ROUNDING * epsilon(self.base),
        )

    def _narrow(self, known: _Intervals, kind: str, cuts: Array, floor: float) -> bool:
        """Replace all from each of these frames on; return whether any of them was in range."""
        cuts = np.unique(cuts.astype(int))
        cuts = cuts[(cuts >= self.first) & (cuts < self.frames)]
        if not len(cuts):
            return False
        got = self.setup.run(self.probes.suffixes(kind, fill(cuts, TRIAL_ROWS)))
        changed = differs(got, self.base, floor)
        for k, cut in enumerate(cuts):
            nearer = changed[k] & (cut > known.low)
            if nearer.any():
                size = gaps(got[k], self.base[k]) / (self.scale or 1.0)
                known.size = np.where(nearer, size, known.size)
            known.low = np.where(nearer, cut, known.low)
            below = np.minimum(known.high, np.maximum(cut - 1, known.low))
            known.high = np.where(changed[k], known.high, below)
        known.high = np.maximum(known.high, known.low)
        return True
