"""The values that replace an input frame, so that the outputs which depend on it change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

KINDS = ("mixed", "other", "opposite", "small", "large", "silent")
"""The kinds of substitutes: "mixed" draws one of the next four for every value; "other" is another
frame's value, "opposite" has the other sign, "small" is a hundredth of a deviation away, "large"
thirty; "silent" is 0, which means something in audio and in padded batches."""

NEIGHBOURS = {"lag 1": 1, "lag 2": 2, "lag -1": -1, "held": 1}
"""Copies of the frame so many before: they show what depends on two frames being equal, where
values are discrete. A future that is "held" repeats the last frame before it."""


class Probes:
    """A sequence of substitutes for each kind of probe.

    Integers are tokens: each is replaced by another one between the smallest and the largest.
    Booleans are inverted.

    Args:
        base: (T, …), the sequence that is probed.
        seed: seed of what is drawn.
    """

    def __init__(self, base: Array, *, seed: int) -> None:
        self.base = base
        self._rng = np.random.default_rng(seed)
        self._substitutes: dict[str, Array] = {}
        scale = float(np.std(base)) if base.dtype.kind == "f" and base.size else 0.0
        self._scale = scale or 1.0

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that apply to these values."""
        if self.base.dtype.kind == "f":
            return (*KINDS, *self.neighbours)
        return (*(("other", "another") if self._are_tokens else ("other",)), *self.neighbours)

    @property
    def neighbours(self) -> tuple[str, ...]:
        """The kinds that copy neighbours, where values are discrete."""
        discrete = self.base.dtype.kind != "f" or bool((self.base == np.round(self.base)).all())
        return tuple(NEIGHBOURS) if discrete else ()

    def substitute(self, kind: str) -> Array:
        """Return (T, …): the substitute of each frame; "nan" is NaN throughout."""
        if kind not in self._substitutes:
            self._substitutes[kind] = self._draw(kind).astype(self.base.dtype)
        return self._substitutes[kind]

    def frames(self, kind: str, frames: Array) -> Array:
        """Return (K, T, …): row `k` has its frame `frames[k]` replaced."""
        where = np.arange(len(self.base)) == np.asarray(frames)[:, None]
        return self._replaced(kind, where)

    def suffixes(self, kind: str, cuts: Array) -> Array:
        """Return (K, T, …): row `k` has every frame from `cuts[k]` on replaced."""
        if kind == "held":
            index = np.minimum(np.arange(len(self.base)), np.asarray(cuts)[:, None] - 1)
            return np.asarray(self.base[np.maximum(index, 0)])
        where = np.arange(len(self.base)) >= np.asarray(cuts)[:, None]
        return self._replaced(kind, where)

    def _replaced(self, kind: str, where: Array) -> Array:
        where = where.reshape(*where.shape, *[1] * (self.base.ndim - 1))
        rows: Array = np.where(where, self.substitute(kind)[None], self.base[None])
        return rows

    @property
    def _are_tokens(self) -> bool:
        return self.base.dtype.kind in "iu"

    def _draw(self, kind: str) -> Array:
        base, rng = self.base, self._rng
        if kind in NEIGHBOURS:
            return np.roll(base, NEIGHBOURS[kind], axis=0)
        if base.dtype.kind == "b":
            return np.asarray(~base)
        if self._are_tokens:
            low, high = int(base.min()), int(base.max())
            if low == high:  # no other value is known to be a token
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


def fill(places: Array, rows: int) -> Array:
    """Repeat the last place until there are so many, so that every call has the same shape."""
    return np.concatenate([places, np.full(rows - len(places), places[-1], places.dtype)])
