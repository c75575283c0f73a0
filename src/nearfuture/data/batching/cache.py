"""Decoded audio in memory, up to a limit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]


class AudioCache:
    """Audio with 16 bits a sample: whatever came first, until the cache is full.

    Nothing is evicted: a training walks through all recordings again and again, so what would be
    evicted for the newest is the next to be requested.

    Args:
        megabytes: of samples that are kept, 10^6 bytes each.

    Attributes:
        size: bytes of samples that are kept.

    >>> cache = AudioCache(megabytes=1.0)
    >>> cache.put("a", np.array([0.5, -1.0], np.float32)).round(4).tolist() == [0.5, -1.0]
    True
    >>> cache.get("b") is None, cache.size
    (True, 4)
    """

    def __init__(self, megabytes: float) -> None:
        self.limit, self.size = megabytes * 1e6, 0
        self._entries: dict[object, tuple[NDArray[np.int16], np.float32]] = {}

    def get(self, key: object) -> Samples | None:
        """The samples (n,) kept under a key, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0] * entry[1]

    def put(self, key: object, samples: Samples) -> Samples:
        """Keep samples (n,) if they fit, and return what `get` returns for them in any case.

        They are rounded to 1 / 32767 of their peak, whatever it is, so that nothing clips and
        quiet recordings lose nothing.
        """
        peak = float(np.abs(samples).max(initial=0.0))
        step = np.float32(max(peak, 1e-9) / 32767)
        rounded = np.round(samples / step).astype(np.int16)
        if key not in self._entries and self.size + rounded.nbytes <= self.limit:
            self.size += rounded.nbytes
            self._entries[key] = rounded, step
        return rounded * step
