"""Recall: one marked symbol among others, which is asked for at the end of the sequence.

The task of Bengio, Simard and Frasconi ("Learning long-term dependencies with gradient descent is
difficult", 1994): to keep one piece of information for as long as is asked, past inputs that do not
matter. Chance is one in as many symbols as there are.

Shapes: `B` sequences, `T` frames, `S` symbols.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from nearfuture import NearfutureError


@dataclass(frozen=True, kw_only=True, eq=False)
class RecallBatch:
    """Sequences of symbols, each with one that is marked.

    Attributes:
        x: (B, T, S + 1): which symbol a frame has, one-hot, and whether it is the marked one.
        lengths: (B,) frames of each sequence.
        marked: (B,) the frame that is marked.
        answers: (B,) its symbol.
    """

    x: Tensor
    lengths: Tensor
    marked: Tensor
    answers: Tensor


@dataclass(frozen=True, kw_only=True)
class RecallTask:
    """How many frames stand before the marked one, and how many after it.

    Args:
        before: the fewest and the most frames before it; drawn uniformly.
        after: the same behind it: how long the symbol has to be kept. None: as many as before it,
            so that it stands in the middle.
        symbols: S.

    Raises:
        NearfutureError: for a range that is negative or the wrong way round, or fewer than 2
            symbols.

    >>> task = RecallTask(before=(0, 0), after=(2, 2))
    >>> batch = task.batch(1, torch.Generator().manual_seed(0))
    >>> tuple(batch.x.shape), batch.x[0, :, -1].tolist()
    ((1, 3, 5), [1.0, 0.0, 0.0])
    """

    before: tuple[int, int]
    after: tuple[int, int] | None
    symbols: int = 4

    def __post_init__(self) -> None:
        ranges = {"before": self.before, "after": self.after or self.before}
        for name, (low, high) in ranges.items():
            if not 0 <= low <= high:
                raise NearfutureError(
                    f"`{name}` must be a range of frames from 0 on, not {low} to {high}",
                    code="out_of_range",
                    parameter=name,
                )
        if self.symbols < 2:
            raise NearfutureError(
                f"`symbols` must be 2 or more, so that there is something to tell apart, not "
                f"{self.symbols}",
                code="out_of_range",
                parameter="symbols",
            )

    @property
    def input_size(self) -> int:
        """Features of a frame: one for each symbol, and one for the mark."""
        return self.symbols + 1

    def batch(self, rows: int, generator: torch.Generator) -> RecallBatch:
        """Draw so many sequences."""
        marked = _uniform(self.before, rows, generator)
        after = marked if self.after is None else _uniform(self.after, rows, generator)
        lengths = marked + 1 + after
        frames = int(lengths.max())
        symbols = torch.randint(self.symbols, (rows, frames), generator=generator)
        mark = F.one_hot(marked, frames)[..., None]
        x = torch.cat([F.one_hot(symbols, self.symbols), mark], dim=-1)
        row = torch.arange(rows)
        return RecallBatch(
            x=x.float(), lengths=lengths, marked=marked, answers=symbols[row, marked]
        )


def with_another_symbol(x: Tensor, frame: int) -> Tensor:
    """Give one frame of every sequence the next symbol, in a circle; its mark stays.

    >>> x = torch.tensor([[[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]])
    >>> with_another_symbol(x, 0)
    tensor([[[0., 1., 1.],
             [0., 1., 0.]]])
    """
    changed = x.clone()
    changed[:, frame, :-1] = x[:, frame, :-1].roll(1, dims=-1)
    return changed


def _uniform(limits: tuple[int, int], rows: int, generator: torch.Generator) -> Tensor:
    low, high = limits
    return torch.randint(low, high + 1, (rows,), generator=generator)
