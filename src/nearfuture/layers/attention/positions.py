"""Where a frame stands: positions that depend on the distance between two frames alone.

Nothing here counts from the beginning of a stream, so that a frame after an hour is as exact as the
first: distances are bounded by the window of a mask.

Shapes: `B` batch, `N` frames, `H` heads, `d` features of a head.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral

import torch
from torch import Tensor
from torch.nn import functional as F

from nearfuture.error import NearfutureError


@dataclass(frozen=True, kw_only=True)
class RotaryPositions:
    """Queries and keys turned by an angle that grows with their frame (Su et al. 2021, RoPE).

    Features `i` and `i + d/2` of a head are a point in the plane, turned by `t · base^(-2i/d)`. The
    product of a query at `t` and a key at `s` then depends on `t - s` only.

    Args:
        base: of the wavelengths, which go from 2π frames to 2π · base.

    Raises:
        NearfutureError: for a base of 1 or less, or without bound.
    """

    base: float = 10_000.0

    def __post_init__(self) -> None:
        if not 1 < self.base < math.inf:
            raise NearfutureError(
                f"`base` must be above 1, so that wavelengths grow, and finite, not {self.base}",
                code="out_of_range",
                parameter="base",
            )

    def angles(self, first: int, count: int, width: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines of frames `first … first + count - 1`: twice (count, d/2).

        Args:
            first: the first frame.
            count: how many.
            width: d.
            like: whose dtype and device they have; they are computed in float64.
        """
        half = width // 2
        place, exact = like.device, torch.float64
        frequency = self.base ** (-torch.arange(half, device=place, dtype=exact) / half)
        frame = torch.arange(first, first + count, device=place, dtype=exact)
        angle = frame[:, None] * frequency
        return angle.cos().to(like.dtype), angle.sin().to(like.dtype)


def turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn the points (x_i, x_{i + d/2}) of the last dimension by angles that broadcast.

    >>> x = torch.tensor([[1.0, 0.0]])
    >>> turn(x, torch.tensor([[0.0]]), torch.tensor([[1.0]])).tolist()
    [[0.0, 1.0]]
    """
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


@dataclass(frozen=True, kw_only=True)
class RelativePositions:
    """A learned number for each distance and head, added to the scores.

    `score(t, s) += bias[h, clip(s - t)]`: Raffel et al. 2020 (T5, arXiv 1910.10683) §2.1, with one
    number a distance as Shaw et al. 2018 clip them (eq. 4) instead of buckets.

    Args:
        distance: the farthest with a number of its own; what lies farther shares the last one.

    Raises:
        NearfutureError: for a distance below 1, or no whole number.
    """

    distance: int = 64

    def __post_init__(self) -> None:
        if not (isinstance(self.distance, Integral) and self.distance >= 1):
            raise NearfutureError(
                f"`distance` must be a whole number of 1 or more, not {self.distance!r}; None adds "
                f"no positions",
                code="out_of_range",
                parameter="distance",
            )


def relative_bias(table: Tensor, distance: Tensor) -> Tensor:
    """The numbers of distances: (2·farthest + 1, H) at (B, Q, N) → (B, H, Q, N).

    Args:
        table: of the distances `-farthest … farthest`.
        distance: key - query, in frames; what lies farther takes the last number.

    >>> table = torch.tensor([[-1.0], [0.0], [1.0]])
    >>> relative_bias(table, torch.tensor([[[-5, 0, 5]]])).flatten().tolist()
    [-1.0, 0.0, 1.0]
    """
    farthest = table.shape[0] // 2
    row = distance.clamp(min=-farthest, max=farthest) + farthest
    return F.embedding(row, table).movedim(-1, 1)
