"""Which frames may look at which: the masks of self-attention, as values.

All of them are one rule. Frames come in blocks of `c`; a frame sees its whole block, `left` frames
before the first of the block and `right` frames after the last:

    c·⌊t/c⌋ - left  ≤  s  ≤  c·⌊t/c⌋ + c - 1 + right        (t looks at s)

and that is what a `ReceptiveField` says. Example, `c = 2`, `left = 2`, `right = 1`: frames 4 and 5
both see frames 2 … 6, and both exist as soon as frame 6 has arrived.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral

import torch
from torch import Tensor

from nearfuture.budget import ReceptiveField
from nearfuture.error import NearfutureError


class AttentionMask(ABC):
    """Which frames a frame looks at: the block it lies in, and what lies around the block."""

    @property
    @abstractmethod
    def field(self) -> ReceptiveField:
        """The same as a receptive field: left, right and block."""

    def allows(self, query: Tensor, key: Tensor) -> Tensor:
        """Whether frame `query` looks at frame `key`; the shapes broadcast.

        Args:
            query: int64 frames, counted from the first frame of any block.
            key: int64 frames, counted from the same frame; earlier ones are negative.

        >>> t = torch.arange(4)
        >>> ChunkedMask(chunk=2, left_chunks=0).allows(t[:, None], t).int().tolist()
        [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
        """
        field = self.field
        offset = key - query // field.block * field.block
        allowed = torch.ones_like(offset, dtype=torch.bool)
        if math.isfinite(field.left):
            allowed = allowed & (offset >= -int(field.left))
        if math.isfinite(field.right):
            allowed = allowed & (offset < field.block + int(field.right))
        return allowed

    def _unstreamable(self) -> str | None:
        """Why attention with this mask cannot stream, and what can; None where it can."""
        field = self.field
        if math.isinf(field.right):
            return (
                "its first output needs the whole sequence. Use ChunkedMask or SlidingMask for a "
                "bounded look at the future, CausalMask for none, or forward() on a window that "
                "has been observed completely"
            )
        if math.isinf(field.left):
            return (
                "every frame of the past would have to be kept, and the state of a stream is "
                "bounded. Use SlidingMask(left=…) or ChunkedMask(left_chunks=…) with a past as "
                "long as is needed, or forward() on whole sequences"
            )
        return None


@dataclass(frozen=True, kw_only=True)
class FullMask(AttentionMask):
    """Every frame looks at every frame, as in BERT: for whole sequences only.

    >>> FullMask().field.right
    inf
    """

    @property
    def field(self) -> ReceptiveField:
        return ReceptiveField(left=math.inf, right=math.inf)


@dataclass(frozen=True, kw_only=True)
class CausalMask(AttentionMask):
    """A frame looks at itself and at all of its past, as in GPT: `s ≤ t`.

    Its past grows without bound, so it runs on whole sequences only; `SlidingMask` streams.

    >>> CausalMask().field.left, CausalMask().field.right
    (inf, 0)
    """

    @property
    def field(self) -> ReceptiveField:
        return ReceptiveField(left=math.inf)


@dataclass(frozen=True, kw_only=True)
class SlidingMask(AttentionMask):
    """A frame looks at a window around itself: `t - left ≤ s ≤ t + right`.

    Beltagy et al. 2020 (Longformer) §3.1. Each layer of a stack adds its `right` to the lookahead
    of the model; with `right=0` the window is causal.

    Args:
        left: frames of the past.
        right: frames of the future.

    Raises:
        NearfutureError: for a number below 0 or without bound.

    >>> SlidingMask(left=8).field.right, SlidingMask(left=8, right=2).field.right
    (0, 2)
    """

    left: int
    right: int = 0

    def __post_init__(self) -> None:
        _whole("left", self.left)
        _whole("right", self.right)

    @property
    def field(self) -> ReceptiveField:
        return ReceptiveField(left=self.left, right=self.right)


@dataclass(frozen=True, kw_only=True)
class ChunkedMask(AttentionMask):
    """Frames look at their own chunk, at chunks before it and a few frames after it.

    Zhang et al. 2020 (U2, arXiv 2012.05481) §2.3; with a right context, Shi et al. 2021 (Emformer,
    arXiv 2010.10759) §2. The outputs of a chunk exist together, when its last frame and `right`
    more have arrived: the first of them waits longest. In a stack without right context the
    lookahead does not add up.

    Args:
        chunk: c, frames of a chunk; the last of a sequence may be shorter.
        left_chunks: how many chunks before its own a frame sees; `inf` for all of them, which
            runs on whole sequences only.
        right: frames after its own chunk.

    Raises:
        NearfutureError: for a chunk below 1, or for a context that is negative or no whole number.

    >>> mask = ChunkedMask(chunk=4, left_chunks=2, right=1)
    >>> [mask.field.emitted(n) for n in (4, 5, 8, 9)]
    [0, 4, 4, 8]
    """

    chunk: int
    left_chunks: float
    right: int = 0

    def __post_init__(self) -> None:
        _whole("chunk", self.chunk, least=1)
        if self.left_chunks != math.inf:
            _whole("left_chunks", self.left_chunks)
        _whole("right", self.right)

    @property
    def field(self) -> ReceptiveField:
        return ReceptiveField(
            left=self.left_chunks * self.chunk, right=self.right, block=self.chunk
        )


def _whole(name: str, value: float, *, least: int = 0) -> None:
    if not (isinstance(value, Integral) and value >= least):
        raise NearfutureError(
            f"`{name}` must be a whole number of {least} or more, not {value!r}; CausalMask has no "
            f"bound on the past and FullMask none at all",
            code="out_of_range",
            parameter=name,
        )
