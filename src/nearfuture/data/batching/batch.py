"""The interface of training data: the utterances of each step, always the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, runtime_checkable

from nearfuture.data.cut import Skipped, Utterance
from nearfuture.error import NearfutureError

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """The utterances of one training step, or one rank's share of them; it may be empty.

    Attributes:
        utterances: at the model's rate.
        skipped: each recording that should have been among them and could not be loaded.
        epoch: how many passes over all recordings were complete before; 0 where there are no
            epochs.

    >>> len(Batch().utterances)
    0
    """

    utterances: list[Utterance] = field(default_factory=list)
    skipped: tuple[Skipped, ...] = ()
    epoch: int = 0


@runtime_checkable
class Batches(Protocol):
    """A source of training batches: a pure function of a seed and the step.

    A step has one global batch, however many processes ("ranks") share the work. Rank r of n loads
    only every n-th utterance of it, from the r-th on; so n ranks together see what one rank alone
    would see, and every rank has every step, perhaps with nothing in it.
    """

    def batch(self, step: int, *, rank: int = 0, world_size: int = 1) -> Batch:
        """The utterances of a step: those of one rank among so many."""


def shard(batch: Sequence[T], rank: int, world_size: int) -> list[tuple[int, T]]:
    """Return one rank's shard of a global batch: its items with their positions in that batch.

    Whatever is random about an utterance has to follow from its position, not from its rank.

    Raises:
        NearfutureError: for a rank that does not exist.

    >>> shard("abcde", 1, 2)
    [(1, 'b'), (3, 'd')]
    >>> shard("a", 1, 2)
    []
    """
    if not 0 <= rank < world_size:
        raise NearfutureError(
            f"rank {rank} of {world_size}: ranks count from 0 to one less than there are",
            code="out_of_range",
            parameter="rank",
        )
    return list(enumerate(batch))[rank::world_size]
