"""Any number of recordings as training batches: planned by their lengths, loaded when needed."""

from __future__ import annotations

import bisect
import math
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio.mixdown import QUIETEST
from nearfuture.data.ahead import Ahead
from nearfuture.data.augmentation import Augmentation
from nearfuture.data.batches import Batch, Skipped, share
from nearfuture.data.cache import AudioCache
from nearfuture.data.corpus import Utterance
from nearfuture.data.item import Item, load_item, probed
from nearfuture.data.limits import Limits
from nearfuture.error import NearfutureError

Samples = NDArray[np.float32]

_PLANS = 3  # epochs whose plans are kept: memory stays the same over a long training
_LIMITS = Limits()
_SLACK_S = 0.1  # by which a file may be longer than its own header says


class Recordings:
    """Recordings with transcripts as batches of similar length; a pure function of seed and step.

    Every recording comes once an epoch. A batch takes neighbours in length, so that little of it
    is padding; they are not the same neighbours every epoch, and batches come in random order, but
    for the first epoch, which goes from short to long (SortaGrad: Deep Speech 2, §3.3).

    Audio is decoded when its batch is made, then kept in memory with 16 bits a sample until
    `cache_mb` are full; what is over that is decoded again every epoch. While a step is being
    trained on, a thread makes the batch of the next one. Neither changes what a batch holds. Ask
    from one thread at a time.

    Args:
        items: rows of a source; see `read_source`.
        rate: of the model; audio of other rates is resampled.
        seconds_per_batch: audio in a batch with its padding, before augmentation, at most, unless
            one recording alone is longer.
        limits: recordings that are too long, or too short for their text, are left out.
        sorta_grad: whether the first epoch goes from short to long.
        augmentation: what is done to each recording.
        noises, rooms: what it is done with; see `noises` and `room_responses`.
        seed: of all that is random.
        cache_mb: megabytes of decoded audio that are kept.
        prefetch: whether a thread makes the next batch.
        progress: called with the rows looked at and the rows in all.

    Attributes:
        items: those that are trained on.
        left_out: each of the others, with the reason.

    Raises:
        NearfutureError: where nothing is left, or for a limit that is none.

    >>> from pathlib import Path
    >>> items = [
    ...     Item(name=f"{n}.wav", path=Path(f"{n}.wav"), text="hello", duration_s=float(n))
    ...     for n in (3, 1, 60, 2, 4)
    ... ]
    >>> recordings = Recordings(items, rate=16000, seconds_per_batch=8.0)
    >>> print(recordings.left_out[0])
    60.wav: it is 60.0 s long, over the limit of 40 s: cut it into shorter ones, or raise the
    limit
    >>> recordings.epoch(0)
    [[1, 2], [0, 3]]
    """

    def __init__(
        self,
        items: Sequence[Item],
        *,
        rate: int,
        seconds_per_batch: float = 120.0,
        limits: Limits = _LIMITS,
        sorta_grad: bool = True,
        augmentation: Augmentation | None = None,
        noises: Sequence[NDArray[Any]] = (),
        rooms: Sequence[Samples] = (),
        seed: int = 0,
        cache_mb: float = 1500.0,
        prefetch: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        if not seconds_per_batch > 0:
            raise NearfutureError(
                f"seconds_per_batch is {seconds_per_batch}: more than 0 seconds are wanted"
            )
        if not cache_mb >= 0:
            raise NearfutureError(f"cache_mb is {cache_mb}: 0 or more megabytes are wanted")
        self.rate, self.limits, self.seed = rate, limits, seed
        self.seconds_per_batch, self.sorta_grad = seconds_per_batch, sorta_grad
        self.augmentation = Augmentation() if augmentation is None else augmentation
        self.noises, self.rooms, self.prefetch = noises, rooms, prefetch
        self._cache = AudioCache(cache_mb)
        kept: list[Item] = []
        seconds: list[float] = []
        left_out: list[Skipped] = []
        for number, item in enumerate(items):
            if progress:
                progress(number, len(items))
            try:
                length = self._usable_seconds(item)
            except NearfutureError as error:
                left_out.append(_skipped(item, error))
                continue
            kept.append(item)
            seconds.append(length)
        if progress:
            progress(len(items), len(items))
        if not kept:
            reasons = "; ".join(map(str, left_out[:3])) or "there are no recordings"
            raise NearfutureError(f"there is nothing to train on: {reasons}")
        self.items, self.left_out = tuple(kept), tuple(left_out)
        self._seconds = np.array(seconds)
        self._plans: dict[int, list[list[int]]] = {}
        self._steps = [0]  # before each epoch
        self._planning = threading.RLock()  # the next batch is made in a thread of its own
        self._ahead = Ahead()

    @property
    def hours(self) -> float:
        """Of all recordings that are trained on."""
        return float(self._seconds.sum()) / 3600

    def steps(self, epochs: int) -> int:
        """Steps in the first so many epochs, exactly."""
        with self._planning:
            while len(self._steps) <= epochs:
                done = len(self._steps) - 1
                self._steps.append(self._steps[-1] + len(self.epoch(done)))
            return self._steps[epochs]

    def epoch(self, number: int) -> list[list[int]]:
        """The batches of an epoch, as indices of `items`; each index comes exactly once."""
        with self._planning:
            if number not in self._plans:
                while len(self._plans) >= _PLANS:
                    del self._plans[next(iter(self._plans))]
                self._plans[number] = self._planned(number)
            return self._plans[number]

    def _chosen(self, step: int) -> tuple[int, list[int]]:
        """The epoch of a step, and the items of its global batch."""
        with self._planning:
            while step >= self._steps[-1]:
                self.steps(len(self._steps))
            number = bisect.bisect_right(self._steps, step) - 1
            return number, self.epoch(number)[step - self._steps[number]]

    def batch(self, step: int, *, rank: int = 0, ranks: int = 1) -> Batch:
        """The utterances of one training step, augmented: those of one rank among so many."""
        if self.prefetch:
            return self._ahead.batch(self._made, step, rank, ranks)
        return self._made(step, rank, ranks)

    def _made(self, step: int, rank: int, ranks: int) -> Batch:
        number, indices = self._chosen(step)
        utterances, skipped = [], []
        for place, index in share(indices, rank, ranks):
            item = self.items[index]
            try:
                samples = self._loaded(index)
            except NearfutureError as error:
                skipped.append(_skipped(item, error))
                continue
            samples = self.augmentation.apply(
                samples,
                self.rate,
                np.random.default_rng([self.seed, 1, step, place]),
                noises=self.noises,
                rooms=self.rooms,
                enough=partial(self._enough, item),
            )
            utterances.append(
                Utterance(name=item.name, samples=samples, text=item.text, speaker=item.speaker)
            )
        return Batch(utterances=utterances, skipped=tuple(skipped), epoch=number)

    def _enough(self, item: Item, samples: int) -> bool:
        return self.limits.fits(samples / self.rate, item.text)

    def _planned(self, number: int) -> list[list[int]]:
        rng = np.random.default_rng([self.seed, number])
        by_length = self.sorta_grad and number == 0
        # Not the same neighbours every epoch: lengths are compared after a random stretch.
        stretch = 1.0 if by_length else rng.uniform(0.8, 1.25, self._seconds.size)
        order = np.argsort(self._seconds * stretch, kind="stable")
        batches: list[list[int]] = [[]]
        longest = 0.0
        for index in order.tolist():
            longest = max(longest, float(self._seconds[index]))
            if batches[-1] and longest * (len(batches[-1]) + 1) > self.seconds_per_batch:
                batches.append([])
                longest = float(self._seconds[index])
            batches[-1].append(index)
        return batches if by_length else [batches[i] for i in rng.permutation(len(batches))]

    def _usable_seconds(self, item: Item) -> float:
        if not item.text:
            raise NearfutureError("its transcript is empty")
        seconds = item.duration_s if item.duration_s is not None else probed(item).duration_s
        if seconds is None or not 0 < seconds < math.inf:
            raise NearfutureError(f"it is {seconds} s long")
        if broken := self.limits.broken(seconds, item.text):
            raise NearfutureError(broken[1])
        return seconds

    def _loaded(self, index: int) -> Samples:
        samples = self._cache.get(index)
        if samples is None:
            item = self.items[index]
            samples = load_item(item, self.rate)
            if np.abs(samples).max(initial=0.0) <= QUIETEST:
                raise NearfutureError(
                    f"it is silent: no sample is beyond {QUIETEST:g} of full scale, but its text "
                    f"is {item.text!r}"
                )
            # A manifest may be wrong about a length, and memory has to last.
            seconds = samples.size / self.rate
            if seconds > self.limits.longest_s + _SLACK_S:
                _, reason = self.limits.broken(seconds, item.text) or ("", "")
                raise NearfutureError(reason)
            samples = self._cache.put(index, samples)
        return samples


def load_utterances(
    items: Sequence[Item], rate: int
) -> tuple[list[Utterance], tuple[Skipped, ...]]:
    """Recordings as they are, all in memory, and those that could not be loaded.

    For the few that a model is evaluated on.
    """
    utterances, skipped = [], []
    for item in items:
        try:
            samples = load_item(item, rate)
        except NearfutureError as error:
            skipped.append(_skipped(item, error))
            continue
        utterances.append(
            Utterance(name=item.name, samples=samples, text=item.text, speaker=item.speaker)
        )
    return utterances, tuple(skipped)


def _skipped(item: Item, error: NearfutureError) -> Skipped:
    message = str(error)
    for known in (f"{item.name}: ", f"{item.name} "):
        message = message.removeprefix(known)
    return Skipped(item.name, message)
