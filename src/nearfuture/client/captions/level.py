"""The level of a microphone as a meter, and a hint where there is no sound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

METER_DB, METER_BARS = -60.0, 12
SILENT_S = 2.0
FALL_DB_PER_S = 40.0
SILENCE_DB = -70.0


@dataclass
class LevelMeter:
    """The level of live audio: rises at once, falls slowly, so that it is readable.

    Args:
        rate: samples per second.

    Attributes:
        db: in dB of full scale.
        silent_s: how long there has been silence.
        dead: whether every sample so far was exactly zero.

    >>> level = LevelMeter(8000)
    >>> level.update(np.full(160, 0.5, np.float32))
    >>> round(level.db), level.meter, level.hint
    (-6, '███████████ ', '')
    >>> level.update(np.zeros(20_000, np.float32))
    >>> level.hint
    'no sound'
    """

    rate: int
    db: float = -math.inf
    silent_s: float = 0.0
    dead: bool = True

    def update(self, samples: NDArray[np.float32]) -> None:
        """Measure the next samples (n,), any n."""
        if len(samples) == 0:
            return
        seconds = len(samples) / self.rate
        power = float(np.mean(samples.astype(np.float64) ** 2))
        block_db = 10 * math.log10(power) if power > 0 else -math.inf
        self.db = max(block_db, self.db - FALL_DB_PER_S * seconds)
        self.silent_s = 0.0 if block_db > SILENCE_DB else self.silent_s + seconds
        self.dead = self.dead and power == 0

    @property
    def meter(self) -> str:
        """A bar from −60 dB to full scale."""
        share = (max(self.db, METER_DB) - METER_DB) / -METER_DB
        return ("█" * round(min(1.0, share) * METER_BARS)).ljust(METER_BARS)

    @property
    def hint(self) -> str:
        """What to check when there is no sound; "" while there is."""
        if self.silent_s < SILENT_S:
            return ""
        if self.dead:
            return "no sound at all: is the microphone muted, or not permitted to this program?"
        return "no sound"
