"""What is put in place of a frame, to see who notices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.target import integers_of

Array = NDArray[Any]

KINDS = ("mixed", "other", "opposite", "small", "large", "silent")
"""Each value of each frame one of these by chance: another frame's values, the same with the other
sign, a hundredth of a deviation away, thirty deviations away; and 0, in audio and in padded batches
the one value that means something."""


class Probes:
    """A whole sequence of substitutes for every kind of probe.

    Args:
        base: (T, …), the sequence that is probed.
        seed: of what is drawn.

    Integers are tokens: each is replaced by another one between the smallest and the largest.
    Booleans are inverted.
    """

    def __init__(self, base: Array, *, seed: int) -> None:
        self.base = base
        self._rng = np.random.default_rng(seed)
        self._made: dict[str, Array] = {}
        scale = float(np.std(base)) if base.dtype.kind == "f" and base.size else 0.0
        self._scale = scale or 1.0

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that make sense for values of this type."""
        if self.base.dtype.kind == "f":
            return KINDS
        return ("other", "another") if integers_of(self.base.dtype) else ("other",)

    def substitute(self, kind: str) -> Array:
        """(T, …): what stands in for each frame; "nan" is NaN throughout."""
        if kind not in self._made:
            self._made[kind] = self._make(kind).astype(self.base.dtype)
        return self._made[kind]

    def frames(self, kind: str, frames: Array) -> Array:
        """(K, T, …): row `k` has its frame `frames[k]` replaced."""
        where = np.arange(len(self.base)) == np.asarray(frames)[:, None]
        return self._where(kind, where)

    def suffixes(self, kind: str, cuts: Array) -> Array:
        """(K, T, …): row `k` has every frame from `cuts[k]` on replaced."""
        where = np.arange(len(self.base)) >= np.asarray(cuts)[:, None]
        return self._where(kind, where)

    def _where(self, kind: str, where: Array) -> Array:
        where = where.reshape(*where.shape, *[1] * (self.base.ndim - 1))
        rows: Array = np.where(where, self.substitute(kind)[None], self.base[None])
        return rows

    def _make(self, kind: str) -> Array:
        base, rng = self.base, self._rng
        if base.dtype.kind == "b":
            return np.asarray(~base)
        if integers_of(base.dtype):
            low, high = int(base.min()), int(base.max())
            if low == high:  # nothing else is known to be a token
                return np.full_like(base, low - 1 if low > 0 else low + 1)
            step = rng.integers(1, high - low + 1, base.shape)
            return np.asarray(low + (base - low + step) % (high - low + 1))
        noise = rng.standard_normal(base.shape) * self._scale
        if kind == "nan":
            return np.full_like(base, np.nan)
        if kind == "mixed":
            parts = np.stack([self.substitute(name) for name in KINDS[1:5]])
            choice = rng.integers(0, len(parts), base.shape)
            return np.asarray(np.take_along_axis(parts, choice[None], axis=0)[0])
        if kind == "other":
            return np.asarray(rng.permutation(base) + noise)
        if kind == "opposite":
            return np.where(base == 0, noise, -1.1 * base)
        if kind == "silent":
            silent = (base == 0).all(axis=tuple(range(1, base.ndim)), keepdims=True)
            return np.where(silent, noise, 0)
        if kind == "small":
            return np.asarray(base + 1e-2 * noise)
        return np.asarray(base + 30 * noise)


def differs(got: Array, expected: Array, floor: int = 0) -> Array:
    """(N, U) where any value of a frame differs in any bit; NaN equals NaN.

    Args:
        got: (N, U, E).
        expected: (N, U, E).
        floor: differences below so many units of rounding of the largest value do not count.
    """
    other = got != expected
    if got.dtype.kind == "f":
        if np.isnan(expected.sum()):  # seldom: a sum is quicker than to look for NaN twice
            other &= ~(np.isnan(got) & np.isnan(expected))
        if floor:
            largest = float(np.abs(np.nan_to_num(expected.astype(np.float64))).max())
            least = floor * float(np.finfo(got.dtype).eps) * largest
            other &= ~(np.abs(got - expected) < least)
    changed: Array = other.any(axis=-1)
    return changed


def fill(places: Array, rows: int) -> Array:
    """The same places, the last repeated, so that every call has the same shape."""
    return np.concatenate([places, np.full(rows - len(places), places[-1], places.dtype)])


def difference(got: Array, expected: Array, words: tuple[str, str] = ("before", "after")) -> str:
    """Where two frames (E,) differ most, in words, with as many digits as it takes to see it.

    >>> difference(np.array([1.0, 2.0000001]), np.array([1.0, 2.0]))
    'feature 1: 2 before, 2.0000001 after'
    """
    gap = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    at = int(np.nan_to_num(gap, nan=np.inf).argmax())
    before, after = float(expected[at]), float(got[at])
    digits = next((n for n in range(6, 17) if f"{before:.{n}g}" != f"{after:.{n}g}"), 17)
    return f"feature {at}: {before:.{digits}g} {words[0]}, {after:.{digits}g} {words[1]}"
