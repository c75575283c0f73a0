"""Percentiles of measured times that claim nothing between the values seen."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Times in ms; each percentile is a value that was seen (nearest rank).

        p_q = the ⌈q · n / 100⌉-th smallest of n

    Attributes:
        count: n.
        p50, p90, p99: percentiles.
        most: the largest.

    >>> Distribution.of([3.0, 1.0, 2.0])
    Distribution(count=3, p50=2.0, p90=3.0, p99=3.0, most=3.0)
    >>> Distribution.of([]) is None
    True
    """

    count: int
    p50: float
    p90: float
    p99: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Distribution | None:
        """That of some values; None if there are none."""
        ordered = sorted(values)
        if not ordered:
            return None

        def rank(percent: int) -> float:
            return ordered[math.ceil(percent * len(ordered) / 100) - 1]

        return cls(count=len(ordered), p50=rank(50), p90=rank(90), p99=rank(99), most=ordered[-1])
