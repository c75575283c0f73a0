"""Any number of recordings as training batches: bucketed by length, loaded when needed."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from nearfuture.data.augmentation import AcousticEnvironment, Augmentation
from nearfuture.data.batching.batch import Batch, shard
from nearfuture.data.batching.cache import AudioCache
from nearfuture.data.batching.prefetcher import Prefetcher
from nearfuture.data.cut import Cut, CutError, Skipped, Utterance
from nearfuture.data.filter import CutFilter
from nearfuture.error import NearfutureError

_PLANS = 3  # epochs whose plans are kept: memory stays the same over a long training


@dataclass(frozen=True, kw_only=True)
class BatchingOptions:
    """Options for batching recordings.

    Attributes:
        batch_seconds: the most audio in a batch, padding included, before augmentation, unless one
            recording alone is longer.
        sorta_grad: whether the first epoch goes from short to long (Deep Speech 2, §3.3).
        cache_mb: megabytes of decoded audio that are kept.
        prefetch: whether a thread makes the next batch.
        seed: of the order of batches and of the augmentation.

    Raises:
        NearfutureError: for a limit out of its range.
    """

    batch_seconds: float = 120.0
    sorta_grad: bool = True
    cache_mb: float = 1500.0
    prefetch: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.batch_seconds > 0:
            raise NearfutureError(
                f"`batch_seconds` is {self.batch_seconds}: more than 0 seconds are expected",
                code="out_of_range",
                parameter="batch_seconds",
            )
        if not self.cache_mb >= 0:
            raise NearfutureError(
                f"`cache_mb` is {self.cache_mb}: 0 or more megabytes are expected",
                code="out_of_range",
                parameter="cache_mb",
            )


class BucketingBatches:
    """Batches of recordings of similar length; a pure function of the seed and the step.

    Every recording comes once an epoch. A batch takes neighbours in length, so that little of it
    is padding; they are not the same neighbours every epoch, and batches come in random order, but
    for the first epoch, which goes from short to long.

    Audio is decoded when its batch is made, then kept in memory with 16 bits a sample until
    `cache_mb` are full; the rest is decoded again every epoch. While the model trains on a step, a
    thread makes the batch of the next one. Neither changes what a batch holds. Request batches from
    one thread at a time.

    Args:
        cuts: of a source; see `read_source`.
        rate: of the model; audio of other rates is resampled.
        options: how batches are made.
        cut_filter: which cuts are skipped.
        augmentation: what is done to each recording.
        environment: the noises and rooms that it is done with.

    Attributes:
        cuts: those that are trained on, with their durations.
        skipped: each of the others, with the reason.

    Raises:
        NearfutureError: where nothing is left to train on.

    >>> from pathlib import Path
    >>> cuts = [
    ...     Cut(name=f"{n}.wav", path=Path(f"{n}.wav"), text="hello", duration_s=float(n))
    ...     for n in (3, 1, 60, 2, 4)
    ... ]
    >>> batches = BucketingBatches(cuts, rate=16000, options=BatchingOptions(batch_seconds=8.0))
    >>> print(batches.skipped[0])
    60.wav: it is 60.0 s long, over the limit of 40 s: cut it into shorter ones, or raise the
    limit
    >>> batches.epoch(0)
    [[1, 2], [0, 3]]
    """

    def __init__(
        self,
        cuts: Sequence[Cut],
        *,
        rate: int,
        options: BatchingOptions | None = None,
        cut_filter: CutFilter | None = None,
        augmentation: Augmentation | None = None,
        environment: AcousticEnvironment | None = None,
    ) -> None:
        self.rate = rate
        self.options = options or BatchingOptions()
        self.cut_filter = cut_filter or CutFilter()
        self.augmentation = augmentation or Augmentation()
        self.environment = environment or AcousticEnvironment()
        self.cuts, self.skipped = _accepted(cuts, self.cut_filter)
        if not self.cuts:
            reasons = "; ".join(map(str, self.skipped[:3])) or "there are no recordings"
            raise NearfutureError(
                f"there is nothing to train on: {reasons}", code="not_found", parameter="cuts"
            )
        self._seconds = np.array([cut.duration_s for cut in self.cuts], np.float64)
        self._cache = AudioCache(self.options.cache_mb)
        self._plans: dict[int, list[list[int]]] = {}
        self._steps = [0]  # before each epoch
        self._planning = threading.RLock()  # the next batch is made in a thread of its own
        self._prefetcher = Prefetcher()

    @property
    def hours(self) -> float:
        """The audio of all recordings that are trained on, in hours."""
        return float(self._seconds.sum()) / 3600

    def steps(self, epochs: int) -> int:
        """The number of steps in the first so many epochs."""
        with self._planning:
            while len(self._steps) <= epochs:
                done = len(self._steps) - 1
                self._steps.append(self._steps[-1] + len(self.epoch(done)))
            return self._steps[epochs]

    def epoch(self, number: int) -> list[list[int]]:
        """The batches of an epoch, as indices of `cuts`; each index comes exactly once."""
        with self._planning:
            if number not in self._plans:
                while len(self._plans) >= _PLANS:
                    del self._plans[next(iter(self._plans))]
                self._plans[number] = self._planned(number)
            return self._plans[number]

    def batch(self, step: int, *, rank: int = 0, world_size: int = 1) -> Batch:
        """The utterances of one training step, augmented: those of one rank among so many."""
        if self.options.prefetch:
            return self._prefetcher.batch(self._make, step, rank, world_size)
        return self._make(step, rank, world_size)

    def _make(self, step: int, rank: int, world_size: int) -> Batch:
        epoch, indices = self._epoch_and_indices(step)
        utterances, skipped = [], []
        for position, index in shard(indices, rank, world_size):
            try:
                utterance = self._loaded(index)
            except CutError as error:
                skipped.append(error.skipped)
                continue
            samples = self.augmentation.apply(
                utterance.samples,
                self.rate,
                np.random.default_rng([self.options.seed, 1, step, position]),
                environment=self.environment,
                fits=partial(self._fits, utterance.text),
            )
            utterances.append(replace(utterance, samples=samples))
        return Batch(utterances=utterances, skipped=tuple(skipped), epoch=epoch)

    def _epoch_and_indices(self, step: int) -> tuple[int, list[int]]:
        """The epoch of a step, and the cuts of its global batch."""
        with self._planning:
            while step >= self._steps[-1]:
                self.steps(len(self._steps))
            number = bisect.bisect_right(self._steps, step) - 1
            return number, self.epoch(number)[step - self._steps[number]]

    def _fits(self, text: str, samples: int) -> bool:
        return self.cut_filter.fits(text, samples / self.rate)

    def _planned(self, number: int) -> list[list[int]]:
        rng = np.random.default_rng([self.options.seed, number])
        by_length = self.options.sorta_grad and number == 0
        # Not the same neighbours every epoch: lengths are compared after a random stretch.
        stretch = 1.0 if by_length else rng.uniform(0.8, 1.25, self._seconds.size)
        order = np.argsort(self._seconds * stretch, kind="stable")
        batches: list[list[int]] = [[]]
        longest = 0.0
        for index in order.tolist():
            longest = max(longest, float(self._seconds[index]))
            if batches[-1] and longest * (len(batches[-1]) + 1) > self.options.batch_seconds:
                batches.append([])
                longest = float(self._seconds[index])
            batches[-1].append(index)
        return batches if by_length else [batches[i] for i in rng.permutation(len(batches))]

    def _loaded(self, index: int) -> Utterance:
        cut = self.cuts[index]
        samples: NDArray[np.float32] | None = self._cache.get(index)
        if samples is None:
            samples = self._cache.put(index, self.cut_filter.load(cut, self.rate).samples)
        return Utterance(name=cut.name, samples=samples, text=cut.text, speaker=cut.speaker)


def _accepted(
    cuts: Sequence[Cut], cut_filter: CutFilter
) -> tuple[tuple[Cut, ...], tuple[Skipped, ...]]:
    accepted, skipped = [], []
    for cut in cuts:
        try:
            accepted.append(cut_filter.accept(cut))
        except CutError as error:
            skipped.append(error.skipped)
    return tuple(accepted), tuple(skipped)
