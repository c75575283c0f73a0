"""The lookahead at any length: a number, or the rest of the sequence.

Method: a lookahead that touches the end of the example may be longer than the example, or grow
with it. In one longer sequence the last frame is replaced, and others, so close together that one
of them follows every border that a block of frames could have. It grows where the first output sees
the last frame; and where each of these frames is seen from farther away than any frame of the
example was, and the influence of the last one sinks below rounding instead of ending. Otherwise
longer and longer sequences are searched.

Example: 24 frames, output 0 sees the last, 23 ahead; in 256 frames, frames 24, 48, … 240 and 255
are replaced. Attention to everything: output 0 sees frame 255; it grows. A bidirectional GRU: each
is seen from at least 24 away, frame 255 from 90 away, where its influence sinks; it grows.
Attention in blocks of 100: no output before frame 200 sees frame 216. A convolution: frame 255 is
seen from 30 away, at full size. There the search goes on, and finds 99 and 30.

Shapes: `K` probes, `U` output frames.
"""

from __future__ import annotations

import math

import numpy as np

from nearfuture.audit.adapters import CannotRun
from nearfuture.audit.comparison import differs, epsilon, gaps, largest
from nearfuture.audit.probing.probes import Probes
from nearfuture.audit.probing.rounding import ROUNDING, RoundingCheck
from nearfuture.audit.probing.search import FarthestDependency, farthest_dependency
from nearfuture.audit.setup import Setup

_ENOUGH_FRAMES = 256

_MOST_PLACES = 32
"""More frames than these take longer than the search."""


def extrapolate(setup: Setup, look: FarthestDependency, limit: float) -> tuple[float, bool]:
    """Return the lookahead at any length: inf where it grows with the sequence.

    Longer and longer sequences are tried: at least twice as long, 256 frames, and long enough to
    see beyond the limit; a little more each time, so that no block of frames fits them all. A
    lookahead that touches the end of each of them grows; so may one that few outputs have, as where
    a maximum over all frames rarely changes. A number is believed where a longer sequence confirms
    it, for two of three sequences of values.

    Args:
        setup: the model.
        look: what was found in the example.
        limit: the lookahead allowed.

    Returns:
        The lookahead, and whether it is only a lower bound.
    """
    base = setup.base
    enough = max(2 * len(base), _ENOUGH_FRAMES)
    if math.isfinite(limit):
        enough = max(enough, math.ceil(2 * (limit + setup.stride)))
    seen, grew = look.frames, False
    if not look.touches_end and (look.uniform or look.frames == 0):
        return seen, look.fades
    if not setup.period:
        return (math.inf, False) if look.touches_end else (seen, look.fades)
    if look.touches_end and _grows(setup, look.frames, enough):
        return math.inf, False
    while len(base) < enough or grew:
        base = setup.longer(base)
        rng = np.random.default_rng(len(base))
        answers: list[FarthestDependency] = []
        for values in (base, rng.permutation(base), rng.permutation(base)):
            try:
                answers.append(farthest_dependency(setup, values))
            except CannotRun:
                return (math.inf, False) if look.touches_end else (seen, True)
            if answers[-1].touches_end:
                break
        if answers[-1].touches_end:
            if grew:
                return math.inf, False
            continue
        farthest = max(answers, key=lambda answer: answer.frames)
        confirmed = sum(answer.frames == farthest.frames for answer in answers) > 1
        if farthest.frames < seen or (farthest.frames == seen and not confirmed):
            return seen, look.touches_end or look.fades
        if farthest.frames == seen:
            return seen, False
        if farthest.fades or grew:
            return math.inf, False  # it grew, and may have sunk on the way
        seen, grew = farthest.frames, True
    return math.inf, False


def _grows(setup: Setup, seen: int, enough: int) -> bool:
    """Whether the lookahead grows, as one sequence of enough frames shows.

    Args:
        setup: the model.
        seen: the farthest lookahead in the example.
        enough: at least so many frames are tried.
    """
    base, farther = setup.of_length(enough), seen + 1
    last = len(base) - 1
    places = np.array([*range(farther, last, farther), last])
    if last < farther or len(places) > _MOST_PLACES:
        return False
    probes = Probes(base, seed=setup.seed)
    kind = probes.kinds[0]
    try:
        before = setup.run(np.broadcast_to(base, (len(places), *base.shape)))
        after = setup.run(probes.frames(kind, places))
    except CannotRun:
        return False
    own, changed = setup.own(before.shape[1]), differs(after, before)
    far = changed & (own <= places[:, None] - farther)
    if not far.any(axis=1).all():
        return False
    first, sizes = int(changed[-1].argmax()), gaps(after[-1], before[-1])
    tiny = ROUNDING * epsilon(before) * largest(before)
    if sizes[first] >= tiny:
        return bool(own[first] == own[0])
    clearest = int(np.where(far[-1], sizes, 0.0).argmax())
    if sizes[clearest] >= tiny:
        return True
    return RoundingCheck(setup, probes).is_rounding(clearest, places[-1:], tiny) is False
