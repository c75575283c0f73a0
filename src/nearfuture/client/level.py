"""How loud a microphone is, as a meter, and whether it hears anything at all."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

QUIETEST_DB, BARS = -60.0, 12
SILENT_S = 2.0
FALL_DB_PER_S = 40.0
SILENCE_DB = -70.0


@dataclass
class Level:
    """The level of live audio: rises at once, falls slowly, so that an eye can follow.

    Args:
        rate: samples per second.

    Attributes:
        db: in dB of full scale.
        silent_s: how long nothing has been heard.
        dead: whether every sample so far was exactly zero.

    >>> level = Level(8000)
    >>> level.hear(np.full(160, 0.5, np.float32))
    >>> round(level.db), level.meter, level.hint
    (-6, '███████████ ', '')
    >>> level.hear(np.zeros(20_000, np.float32))
    >>> level.hint
    'no sound'
    """

    rate: int
    db: float = -math.inf
    silent_s: float = 0.0
    dead: bool = True

    def hear(self, samples: NDArray[np.float32]) -> None:
        """Take note of the next samples (n,), any n."""
        if len(samples) == 0:
            return
        seconds = len(samples) / self.rate
        power = float(np.mean(samples.astype(np.float64) ** 2))
        heard_db = 10 * math.log10(power) if power > 0 else -math.inf
        self.db = max(heard_db, self.db - FALL_DB_PER_S * seconds)
        self.silent_s = 0.0 if heard_db > SILENCE_DB else self.silent_s + seconds
        self.dead = self.dead and power == 0

    @property
    def meter(self) -> str:
        """A bar from −60 dB to full scale."""
        share = (max(self.db, QUIETEST_DB) - QUIETEST_DB) / -QUIETEST_DB
        return ("█" * round(min(1.0, share) * BARS)).ljust(BARS)

    @property
    def hint(self) -> str:
        """What to check when nothing is heard; "" while something is."""
        if self.silent_s < SILENT_S:
            return ""
        if self.dead:
            return "no sound at all: is the microphone muted, or not permitted to this program?"
        return "no sound"
