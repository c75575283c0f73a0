"""Processes that share a training: each has its part of every batch, all have the same weights.

What they exchange are sums: of losses, of counts and of gradients. Nothing is a mean of means, so
that parts of any size, empty ones included, together are the whole. That is why gradients are
summed by hand instead of by `DistributedDataParallel`, which averages over processes.
"""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, distributed

_PATIENCE = datetime.timedelta(hours=12)
"""Others wait while the first evaluates and exports; who dies is noticed at once all the same."""


@dataclass(frozen=True)
class Group:
    """One process among those that train together.

    Attributes:
        rank: which one this is; the first, 0, saves and reports.
        ranks: how many there are.
        device: where this one computes.

    >>> Group().sum(torch.tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """

    rank: int = 0
    ranks: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def first(self) -> bool:
        """Whether this is the process that saves and reports."""
        return self.rank == 0

    def sum(self, value: Tensor) -> Tensor:
        """The sum over all processes, the same in each, in the place of the value."""
        if self.ranks > 1:
            distributed.all_reduce(value)
        return value

    def any(self, flag: bool) -> bool:
        """Whether it holds in any of them."""
        if self.ranks == 1:
            return flag
        return bool(self.sum(torch.tensor([float(flag)], device=self.device)).item())

    def sum_gradients(self, parameters: Iterable[Tensor], beside: Tensor) -> Tensor:
        """Replace every gradient by its sum over all processes, and sum what goes beside them.

        A gradient that is missing counts as 0.
        """
        if self.ranks == 1:
            return beside
        learnt = list(parameters)
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in learnt]
        pieces = [gradient.flatten() for gradient in gradients]
        flat = self.sum(torch.cat([*pieces, beside.to(pieces[0].dtype)]))
        *summed, beside = torch.split(flat, [*(len(piece) for piece in pieces), len(beside)])
        for parameter, piece in zip(learnt, summed, strict=True):
            parameter.grad = piece.view_as(parameter)
        return beside

    def spread(self, tensors: Iterable[Tensor]) -> None:
        """Give everyone the values of the first."""
        if self.ranks > 1:
            for tensor in tensors:
                distributed.broadcast(tensor, 0)

    def gather(self, lines: tuple[str, ...]) -> tuple[str, ...]:
        """The lines of all processes, in order."""
        if self.ranks == 1:
            return lines
        mine = "\n".join(line.replace("\n", " ") for line in lines).encode()
        sizes = torch.zeros(self.ranks, dtype=torch.int64, device=self.device)
        sizes[self.rank] = len(mine)
        longest = int(self.sum(sizes).max())
        text = torch.zeros(self.ranks, longest, dtype=torch.uint8, device=self.device)
        text[self.rank, : len(mine)] = torch.tensor(list(mine), dtype=torch.uint8)
        self.sum(text)
        parts = [bytes(text[rank, :size].tolist()) for rank, size in enumerate(sizes.tolist())]
        return tuple(line for part in parts for line in part.decode().split("\n") if line)

    def wait(self) -> None:
        """Until everyone is here."""
        self.any(False)


def joined() -> bool:
    """Whether torchrun started this process."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


@contextlib.contextmanager
def join(*, rank: int = 0, ranks: int = 1, meeting: Path | None = None) -> Iterator[Group]:
    """Meet the other processes: those that torchrun started, or so many at a file of their own.

    On machines with GPUs each takes one and they talk through NCCL, elsewhere through gloo.

    Args:
        rank: which process this is; torchrun knows better.
        ranks: how many there are; torchrun knows better.
        meeting: a file that does not exist yet, the same one for all; where there are several.
    """
    cuda = torch.cuda.is_available()
    local = rank
    if joined():
        rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        local = int(os.environ.get("LOCAL_RANK", rank))
    device = (
        torch.device("cuda", local % torch.cuda.device_count()) if cuda else torch.device("cpu")
    )
    if cuda:
        torch.cuda.set_device(device)
    if ranks == 1:
        yield Group(device=device)
        return
    where = None if joined() or meeting is None else f"file://{meeting.absolute()}"
    distributed.init_process_group(
        "nccl" if cuda else "gloo",
        init_method=where,
        rank=rank,
        world_size=ranks,
        timeout=_PATIENCE,
    )
    try:
        yield Group(rank=rank, ranks=ranks, device=device)
    finally:
        distributed.destroy_process_group()
