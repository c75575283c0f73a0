"""Ragged frames: rows that hold, add and forget different numbers of frames. All of it exports.

Sequences are left-aligned. So is the buffer of `join` and `drop`, `frames (B, M, D)` with `count
(B,)`, which forgets what was read. Everything with a window keeps the last M frames instead, with
zeros before the first, so that a chunk stands behind the frames of every row as it is: `align`
finds each row's first window, `newest` is what the buffer holds next. A row's phase, warm-up and
tail follow from its count.

Shapes: `B` batch, `M` capacity of the buffer, `C` frames of a chunk, `D` features.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def mask(x: Tensor, lengths: Tensor) -> Tensor:
    """Zero every frame at or past its row's length, whatever it held (NaN included).

    `y[b, t] = x[b, t] if t < lengths[b] else 0`.

    Args:
        x: (B, T, D).
        lengths: (B,) int64.

    >>> mask(torch.tensor([[[1.0], [float("nan")]]]), torch.tensor([1])).flatten().tolist()
    [1.0, 0.0]
    """
    inside = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
    return torch.where(inside[..., None], x, torch.zeros((), dtype=x.dtype, device=x.device))


def _take(frames: Tensor, index: Tensor) -> Tensor:
    """`y[b, j] = frames[b, index[b, j]]` by whole rows, which is one gather without expansion."""
    batch, width, dim = frames.shape
    row = torch.arange(batch, device=frames.device)[:, None] * width
    return F.embedding(index + row, frames.reshape(batch * width, dim))


def join(frames: Tensor, count: Tensor, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Put each row's new frames behind the frames it already holds.

    Args:
        frames: (B, M, D), the old frames.
        count: (B,) int64, how many of them are valid.
        x: (B, C, D), the new frames.
        lengths: (B,) int64, how many of them are valid; what lies past is ignored.

    Returns:
        (B, M + C, D) and the counts `count + lengths`; zero past the counts.

    >>> old, new = torch.tensor([[[1.0], [0.0]]]), torch.tensor([[[2.0], [3.0]]])
    >>> y, n = join(old, torch.tensor([1]), new, torch.tensor([2]))
    >>> y.flatten().tolist(), n.tolist()
    ([1.0, 2.0, 3.0, 0.0], [3])
    """
    if frames.shape[1] == 0:
        return mask(x, lengths), lengths
    if x.shape[1] == 0:
        return frames, count
    capacity = frames.shape[1]
    slot = torch.arange(capacity + x.shape[1], device=x.device)[None]
    total = count + lengths
    source = torch.where(slot < count[:, None], slot, slot + (capacity - count[:, None]))
    source = torch.where(slot < total[:, None], source, torch.zeros_like(source))
    return mask(_take(torch.cat([frames, x], dim=1), source), total), total


def drop(frames: Tensor, count: Tensor, consumed: Tensor, keep: int) -> tuple[Tensor, Tensor]:
    """Forget each row's first `consumed` frames and keep a buffer of `keep` slots.

    Args:
        frames: (B, N, D).
        count: (B,) int64, how many of them are valid.
        consumed: (B,) int64, at most `count`.
        keep: capacity of the buffer that remains, at least `count - consumed`.

    Returns:
        (B, keep, D) and the counts `count - consumed`; zero past the counts.

    >>> y, n = drop(torch.tensor([[[1.0], [2.0], [3.0]]]), torch.tensor([3]), torch.tensor([2]), 2)
    >>> y.flatten().tolist(), n.tolist()
    ([3.0, 0.0], [1])
    """
    rest = count - consumed
    if keep == 0:
        return frames[:, :0], rest
    slot = torch.arange(keep, device=frames.device)[None]
    source = torch.where(slot < rest[:, None], slot + consumed[:, None], torch.zeros_like(slot))
    return mask(_take(frames, source), rest), rest


def align(frames: Tensor, first: Tensor) -> Tensor:
    """Begin each row at its own frame: `y[b, t] = frames[b, first[b] + t]`.

    Args:
        frames: (B, N, D).
        first: (B,) int64, at most N.

    Returns:
        (B, N, D); where a row has no frames left, some of its frames again.

    >>> align(torch.tensor([[[1.0], [2.0], [3.0]]]), torch.tensor([1])).flatten().tolist()
    [2.0, 3.0, 3.0]
    """
    slot = torch.arange(frames.shape[1], device=frames.device)[None]
    return _take(frames, (slot + first[:, None]).clamp(max=frames.shape[1] - 1))


def newest(frames: Tensor, lengths: Tensor, keep: int) -> Tensor:
    """The last `keep` frames of each row: `y[b, t] = frames[b, lengths[b] + t]`.

    Args:
        frames: (B, keep + C, D), a buffer and a chunk behind it.
        lengths: (B,) int64, how many frames of the chunk are valid.
        keep: M, the capacity of the buffer.

    >>> frames = torch.tensor([[[1.0], [2.0], [3.0], [0.0]]])
    >>> newest(frames, torch.tensor([1]), 2).flatten().tolist()
    [2.0, 3.0]
    """
    slot = torch.arange(keep, device=frames.device)[None]
    return _take(frames, slot + lengths[:, None])


def reverse(x: Tensor, lengths: Tensor) -> Tensor:
    """Reverse each row by its own length: `y[b, t] = x[b, lengths[b] - 1 - t]`, zero past it.

    >>> reverse(torch.tensor([[[1.0], [2.0], [9.0]]]), torch.tensor([2])).flatten().tolist()
    [2.0, 1.0, 0.0]
    """
    slot = torch.arange(x.shape[1], device=x.device)[None]
    source = torch.where(slot < lengths[:, None], lengths[:, None] - 1 - slot, slot)
    return mask(_take(x, source), lengths)
