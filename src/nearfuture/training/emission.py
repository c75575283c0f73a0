"""When a model emits its symbols: how many frames are blank, and how late symbols come.

Shapes: `B` batch, `T` frames, `V` symbols with the blank at 0.
"""

from __future__ import annotations

from torch import Tensor

_BLANK = 0


def blank_fraction(log_probs: Tensor, lengths: Tensor) -> float:
    """Compute the share of valid frames whose most likely symbol is the blank; NaN without any.

    Args:
        log_probs: (B, T, V).
        lengths: (B,).

    >>> import torch
    >>> p = torch.tensor([[[0.9, 0.1], [0.9, 0.1], [0.2, 0.8]]]).log()
    >>> blank_fraction(p, torch.tensor([3])), blank_fraction(p, torch.tensor([2]))
    (0.6666666666666666, 1.0)
    """
    blanks = frames = 0
    for path in _paths(log_probs, lengths):
        blanks += path.count(_BLANK)
        frames += len(path)
    return blanks / frames if frames else float("nan")


def emission_delay(log_probs: Tensor, reference: Tensor, lengths: Tensor) -> float:
    """Compute by how many frames symbols come later than in a reference, on average.

    Both are read greedily: a symbol comes with the frame where its run begins. Only rows in which
    both read the same symbols count, matched in order; NaN without any.

    Args:
        log_probs: (B, T, V).
        reference: (B, T, V), of another model or head over the same frames.
        lengths: (B,).

    >>> import torch
    >>> early = torch.tensor([[[0.1, 0.9], [0.9, 0.1], [0.9, 0.1]]]).log()
    >>> late = torch.tensor([[[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]]).log()
    >>> emission_delay(late, early, torch.tensor([3]))
    2.0
    """
    delays: list[int] = []
    for path, other in zip(_paths(log_probs, lengths), _paths(reference, lengths), strict=True):
        mine, theirs = _spikes(path), _spikes(other)
        if [symbol for symbol, _ in mine] == [symbol for symbol, _ in theirs]:
            delays += [a - b for (_, a), (_, b) in zip(mine, theirs, strict=True)]
    return sum(delays) / len(delays) if delays else float("nan")


def _paths(log_probs: Tensor, lengths: Tensor) -> list[list[int]]:
    best = log_probs.detach().argmax(dim=-1).tolist()
    return [row[:count] for row, count in zip(best, lengths.tolist(), strict=True)]


def _spikes(path: list[int]) -> list[tuple[int, int]]:
    """List each symbol with the frame where its run begins, in order."""
    before = [_BLANK, *path[:-1]]
    return [
        (symbol, frame)
        for frame, (symbol, last) in enumerate(zip(path, before, strict=True))
        if symbol not in (_BLANK, last)
    ]
