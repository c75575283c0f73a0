"""Several channels as one: their mean, or one of them where they would cancel each other.

A cable that is wired the wrong way round makes one channel the negative of the other: their mean is
silence. What the channels are to each other is decided once a recording, in the second from its
first sound on, so that every sample of it is mixed alike.

Shapes: `n` samples of each channel, `C` channels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

QUIETEST = 1e-4
"""Full scale is 1; what is never louder, three steps of 16 bits, is silence."""

CANCELS_BELOW = 0.1
DECIDED_S = 1.0

Samples = NDArray[np.float32]


class Mixdown:
    """Mix the channels of one recording, block by block; any cut gives the same samples.

        y = Σ_c x_c / C,   or   y = x_k where   P(Σ_c x_c) < 0.1 · Σ_c P(x_c),   k = argmax P(x_c)

    with the powers P of one second from the first sample beyond `QUIETEST` on, which is held back
    until it is there. Channels that have nothing in common have a sum of power Σ P(x_c), so that
    the mean is kept of anything but what cancels, a silent channel beside a good one included.

    Args:
        channels: C.
        rate: Samples per second.

    Attributes:
        decided: Whether the second is over.
        silent: Whether no sample was beyond `QUIETEST` so far.
        chosen: The channel k that is taken alone; None: the mean.
        dead: Channels without a sound in that second, where others had one.

    >>> left = np.sin(np.arange(8000, dtype=np.float32))
    >>> mix = Mixdown(2, 8000)
    >>> mono = np.concatenate([mix.step(np.stack([left, -left], axis=1)), mix.finish()])
    >>> mix.chosen, bool((mono == left).all())
    (0, True)
    """

    def __init__(self, channels: int, rate: int) -> None:
        self.decided = False
        self.silent = True
        self.chosen: int | None = None
        self.dead: tuple[int, ...] = ()
        self._window = max(1, round(DECIDED_S * rate))
        self._waiting = np.zeros((0, channels), np.float32)

    def step(self, block: Samples) -> Samples:
        """Mix a block (n, C): return the samples (m,) that are final after it."""
        if self.decided:
            return self._mixed(block)
        quiet = block[:0]
        if self.silent:
            loud = np.abs(block).max(axis=1, initial=0.0) > QUIETEST
            first = int(loud.argmax()) if loud.any() else len(block)
            self.silent = first == len(block)
            quiet, block = block[:first], block[first:]
        before = self._mixed(quiet)
        self._waiting = np.concatenate([self._waiting, block])
        if len(self._waiting) < self._window:
            return before
        return np.concatenate([before, self.finish()])

    def finish(self) -> Samples:
        """Mix the samples that are still held back; they decide, however few they are."""
        waiting, self._waiting = self._waiting, self._waiting[:0].copy()
        if not self.decided and len(waiting):
            self._decide(waiting[: self._window])
        return self._mixed(waiting)

    def _decide(self, window: Samples) -> None:
        self.decided = True
        powers = np.einsum("nc,nc->c", window, window, dtype=np.float64)
        together = window.sum(axis=1, dtype=np.float64)
        if float(np.dot(together, together)) < CANCELS_BELOW * float(powers.sum()):
            self.chosen = int(powers.argmax())
        quiet = np.abs(window).max(axis=0) <= QUIETEST
        self.dead = tuple(int(channel) for channel in np.flatnonzero(quiet))

    def _mixed(self, block: Samples) -> Samples:
        if self.chosen is not None:
            return block[:, self.chosen].copy()
        return np.asarray(block.mean(axis=1, dtype=np.float32))
