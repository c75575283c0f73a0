"""A user's own recordings as training batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nearfuture.data.corpus import Utterance, load_audio, read_manifest
from nearfuture.data.sound import add_noise, at_level, at_speed
from nearfuture.error import NearfutureError
from nearfuture.text import normalise

__all__ = ["Recordings"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Recordings:
    """Recordings with transcripts, held in memory; batches follow from the seed and the step.

    Every recording comes once an epoch. A batch takes neighbours in length from a shuffled stretch
    of the epoch, so that little of it is padding.

    Attributes:
        utterances: all of them, at the model's rate.
        seconds_per_batch: audio in a batch with its padding, before its speed is varied, at most,
            unless one recording alone is longer.
        speed: played up to so much faster or slower.
        skipped: a line for each row that was left out, with its path and the reason.
    """

    utterances: Sequence[Utterance]
    rate: int
    seconds_per_batch: float = 120.0
    speed: float = 0.1
    seed: int = 0
    skipped: tuple[str, ...] = ()
    # No argument, so that `replace` starts it afresh: it follows from the others.
    _epochs: list[list[list[int]]] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def load(
        cls,
        manifest: Path,
        *,
        rate: int,
        seed: int = 0,
        split: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Recordings:
        """Read every row of a manifest; what cannot be read is named in `skipped`, not fatal.

        Args:
            manifest: tab-separated, with the columns `path` and `transcript`.
            rate: rate of the model.
            seed: of the batches.
            split: only the rows whose `split` column says so, if there is one.
            progress: called with the rows done and the rows in all.

        Raises:
            NearfutureError: where nothing is left.
        """
        entries = [
            entry
            for entry in read_manifest(manifest)
            if split is None or entry.fields.get("split", split) == split
        ]
        utterances, skipped = [], []
        for number, entry in enumerate(entries):
            if progress:
                progress(number, len(entries))
            name = str(entry.path)
            text = normalise(entry.transcript)
            try:
                if not text:
                    raise NearfutureError("its transcript is empty")
                samples = load_audio(entry.path, rate)
                if samples.size == 0:
                    raise NearfutureError("it holds no samples")
            except NearfutureError as error:
                message = str(error)
                skipped.append(message if name in message else f"{name}: {message}")
                continue
            utterances.append(Utterance(name=name, samples=samples, text=text))
        if progress:
            progress(len(entries), len(entries))
        if not utterances:
            reasons = "; ".join(skipped[:3]) or "it has no rows"
            raise NearfutureError(f"{manifest} holds nothing to train on: {reasons}")
        return cls(utterances=utterances, rate=rate, seed=seed, skipped=tuple(skipped))

    def epoch(self, number: int) -> list[list[int]]:
        """The batches of an epoch, as indices of utterances; each index comes exactly once."""
        while len(self._epochs) <= number:
            rng = np.random.default_rng([self.seed, len(self._epochs)])
            self._epochs.append(self._batches(rng))
        return self._epochs[number]

    def _batches(self, rng: np.random.Generator) -> list[list[int]]:
        # Neighbours in length, but not the same ones every epoch: lengths are compared after a
        # random stretch.
        seconds = np.array([one.samples.size / self.rate for one in self.utterances])
        order = np.argsort(seconds * rng.uniform(0.8, 1.25, seconds.size))
        batches: list[list[int]] = [[]]
        longest = 0.0
        for index in order.tolist():
            longest = max(longest, float(seconds[index]))
            if batches[-1] and longest * (len(batches[-1]) + 1) > self.seconds_per_batch:
                batches.append([])
                longest = float(seconds[index])
            batches[-1].append(index)
        return [batches[i] for i in rng.permutation(len(batches))]

    def batch(self, step: int) -> list[Utterance]:
        """The utterances of one training step, varied in speed, level and noise."""
        number, index = 0, step
        while index >= len(self.epoch(number)):  # epochs differ a little in their batches
            index -= len(self.epoch(number))
            number += 1
        rng = np.random.default_rng([self.seed, 1, step])
        chosen = self.epoch(number)[index]
        return [self._varied(self.utterances[i], rng) for i in chosen]

    def _varied(self, one: Utterance, rng: np.random.Generator) -> Utterance:
        samples = at_speed(one.samples, rng.uniform(1 - self.speed, 1 + self.speed))
        samples = at_level(samples, rng.uniform(-35.0, -15.0))
        samples = add_noise(samples, rng.uniform(15.0, 45.0), rng.uniform(0.0, 1.5), rng)
        return Utterance(name=one.name, samples=samples, text=one.text)
