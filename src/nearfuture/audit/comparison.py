"""Two outputs compared: bit for bit after calls of one shape, else within rounding; and in words.

Shapes: `N` rows, `U` output frames, `E` values of an output frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2}
"""Of calls of different shapes, relative to the largest output."""


def differs(got: Array, expected: Array, floor: float = 0.0) -> Array:
    """Return (N, U): where any value of a frame differs in any bit; NaN equals NaN.

    Args:
        got: (N, U, E).
        expected: (N, U, E).
        floor: differences below this many units of rounding of the largest value do not count.
    """
    other = got != expected
    if got.dtype.kind == "f":
        if np.isnan(expected.sum()):  # rare: a sum is faster than two searches for NaN
            other &= ~(np.isnan(got) & np.isnan(expected))
        if floor:
            least = floor * epsilon(got) * largest(expected)
            other &= ~(np.abs(got - expected) < least)
    changed: Array = other.any(axis=-1)
    return changed


def epsilon(values: Array) -> float:
    """Return one unit of rounding, relative to 1; 0 for integers."""
    return float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 0.0


def largest(values: Array) -> float:
    """Return the largest finite magnitude; 0 of no values."""
    return float(np.abs(np.nan_to_num(values.astype(np.float64))).max(initial=0.0))


def gaps(got: Array, expected: Array) -> Array:
    """Return (…,): the largest difference of each frame; inf where one of two values is NaN."""
    gap = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    if np.isnan(gap.sum()):  # rare: -inf in a mask, or NaN
        equal = (got == expected) | ((got != got) & (expected != expected))
        gap = np.where(equal, 0.0, gap)
    return np.asarray(np.nan_to_num(gap, nan=np.inf).max(axis=-1, initial=0.0))


@dataclass(frozen=True)
class Comparison:
    """Frames (U, E) of two calls.

    Attributes:
        got: of the second call.
        expected: of the first call.
        exact: the calls had the same shape, so that equal values are equal bit for bit; otherwise
            they agree within the rounding that other kernels bring.
        words: how the two values are called.
    """

    got: Array
    expected: Array
    exact: bool = True
    words: tuple[str, str] = ("before", "after")

    @property
    def differ(self) -> bool:
        """Whether the two outputs differ."""
        if self.got.shape != self.expected.shape:
            return True
        if self.exact:
            return bool(differs(self.got, self.expected).any())
        return bool((gaps(self.got, self.expected) > self._tolerance).any())

    @property
    def first(self) -> int:
        """The first frame that differs."""
        if self.exact:
            return int(differs(self.got, self.expected).argmax())
        return int((gaps(self.got, self.expected) > self._tolerance).argmax())

    def describe(self, frames: Array | None = None) -> str:
        """Describe the difference with its numbers.

        Args:
            frames: (U,) the number of each output; None: they are counted from 0.
        """
        if self.got.shape != self.expected.shape:
            counts = f"{len(self.expected)} outputs {self.words[0]}"
            return f"{counts}, {len(self.got)} {self.words[1]}"
        # Beyond rounding the largest difference says most; bit for bit the first one does.
        at = self.first if self.exact else int(gaps(self.got, self.expected).argmax())
        output = at if frames is None else int(frames[at])
        return f"output {output}, {difference(self.got[at], self.expected[at], self.words)}"

    @property
    def _tolerance(self) -> float:
        if self.expected.dtype.kind != "f":
            return 0.0
        return _TOLERANCE[str(self.expected.dtype)] * largest(self.expected)


def difference(got: Array, expected: Array, words: tuple[str, str] = ("before", "after")) -> str:
    """Describe where two frames (E,) differ most, with as many digits as it takes to see it.

    >>> difference(np.array([1.0, 2.0000001]), np.array([1.0, 2.0]))
    'feature 1: 2 before, 2.0000001 after'
    """
    gap = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    at = int(np.nan_to_num(gap, nan=np.inf).argmax())
    before, after = float(expected[at]), float(got[at])
    digits = next((n for n in range(6, 17) if f"{before:.{n}g}" != f"{after:.{n}g}"), 17)
    return f"feature {at}: {before:.{digits}g} {words[0]}, {after:.{digits}g} {words[1]}"
