"""Processes that share a training: each has its share of every batch, all have the same weights.

What they exchange are sums: of losses, of counts and of gradients. Nothing is a mean of means, so
that shares of any size, empty ones included, together are the whole. That is why gradients are
summed by hand instead of by `DistributedDataParallel`, which averages over processes.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, distributed

_TIMEOUT = datetime.timedelta(hours=12)
"""Others wait while the main process validates and exports; a process that dies is noticed at once
all the same."""


@dataclass(frozen=True)
class Group:
    """One process of a distributed training: its rank, the world size, its device.

    Attributes:
        rank: The number of this process; the main one, 0, saves and reports.
        world_size: The number of processes.
        device: The device of this process.

    >>> Group().sum(torch.tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """

    rank: int = 0
    world_size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_main(self) -> bool:
        """Whether this is the process that saves and reports."""
        return self.rank == 0

    def sum(self, value: Tensor) -> Tensor:
        """Replace a value by its sum over all processes, the same in each, and return it."""
        if self.world_size > 1:
            distributed.all_reduce(value)
        return value

    def any(self, flag: bool) -> bool:
        """Whether a flag is set in any process."""
        if self.world_size == 1:
            return flag
        return bool(self.sum(torch.tensor([float(flag)], device=self.device)).item())

    def sum_gradients(self, parameters: Iterable[Tensor], others: Tensor) -> Tensor:
        """Replace every gradient by its sum over all processes; return the sum of other values.

        A gradient that is missing counts as 0.
        """
        if self.world_size == 1:
            return others
        learnt = list(parameters)
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in learnt]
        pieces = [gradient.flatten() for gradient in gradients]
        flat = self.sum(torch.cat([*pieces, others.to(pieces[0].dtype)]))
        *summed, others = torch.split(flat, [*(len(piece) for piece in pieces), len(others)])
        for parameter, piece in zip(learnt, summed, strict=True):
            parameter.grad = piece.view_as(parameter)
        return others

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite tensors with those of the main process."""
        if self.world_size > 1:
            for tensor in tensors:
                distributed.broadcast(tensor, 0)

    def gather(self, lines: tuple[str, ...]) -> tuple[str, ...]:
        """Collect the lines of all processes, in the order of their ranks."""
        if self.world_size == 1:
            return lines
        own = "\n".join(line.replace("\n", " ") for line in lines).encode()
        sizes = torch.zeros(self.world_size, dtype=torch.int64, device=self.device)
        sizes[self.rank] = len(own)
        longest = int(self.sum(sizes).max())
        text = torch.zeros(self.world_size, longest, dtype=torch.uint8, device=self.device)
        text[self.rank, : len(own)] = torch.tensor(list(own), dtype=torch.uint8)
        self.sum(text)
        parts = [bytes(text[rank, :size].tolist()) for rank, size in enumerate(sizes.tolist())]
        return tuple(line for part in parts for line in part.decode().split("\n") if line)

    def barrier(self) -> None:
        """Wait until every process is here."""
        self.any(False)


def started_by_torchrun() -> bool:
    """Whether torchrun started this process."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


@contextlib.contextmanager
def init_group(
    *, rank: int = 0, world_size: int = 1, rendezvous: Path | None = None
) -> Iterator[Group]:
    """Join a process group: that of torchrun, or one whose processes meet at a file.

    On machines with GPUs each process takes one and NCCL connects them, elsewhere gloo.

    Args:
        rank: The number of this process; torchrun's overrides it.
        world_size: The number of processes; torchrun's overrides it.
        rendezvous: A file that does not exist yet, the same one for all; where there are several.
    """
    cuda = torch.cuda.is_available()
    local = rank
    if started_by_torchrun():
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        local = int(os.environ.get("LOCAL_RANK", rank))
    device = (
        torch.device("cuda", local % torch.cuda.device_count()) if cuda else torch.device("cpu")
    )
    if cuda:
        torch.cuda.set_device(device)
    if world_size == 1:
        yield Group(device=device)
        return
    by_file = None if rendezvous is None else f"file://{rendezvous.absolute()}"
    distributed.init_process_group(
        "nccl" if cuda else "gloo",
        init_method=None if started_by_torchrun() else by_file,
        rank=rank,
        world_size=world_size,
        timeout=_TIMEOUT,
    )
    try:
        yield Group(rank=rank, world_size=world_size, device=device)
    finally:
        distributed.destroy_process_group()


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether a device has instructions for products in bfloat16.

    Any GPU counts; a processor does where torch finds AVX-512's or AMX's, or oneDNN those of Arm.
    """
    if device.type != "cpu":
        return True
    if platform.machine().lower() in ("aarch64", "arm64"):
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
