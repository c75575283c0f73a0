"""Percentiles of measured times that claim nothing between the values seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Times in ms; each percentile is a value that was seen (nearest rank).

        p_q = the ⌈q · n / 100⌉-th smallest of n

    Attributes:
        count: n.
        p50, p90, p99: percentiles.
        max: the largest.

    >>> Distribution.of([3.0, 1.0, 2.0])
    Distribution(count=3, p50=2.0, p90=3.0, p99=3.0, max=3.0)
    >>> Distribution.of([]) is None
    True
    """

    count: int
    p50: float
    p90: float
    p99: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Distribution | None:
        """Return the distribution of some values; None if there are none."""
        if len(values) == 0:
            return None
        ranks = np.percentile(values, (50, 90, 99, 100), method="inverted_cdf").tolist()
        p50, p90, p99, largest = ranks
        return cls(count=len(values), p50=p50, p90=p90, p99=p99, max=largest)
