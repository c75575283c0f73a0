"""Connected digits: strings of spoken digits, made from recordings of single ones.

A string takes one speaker of the Free Spoken Digit Dataset, with gaps of 0 to 250 ms, a level and a
noise of its own; everything follows from a seed. The corpus's own split holds: recordings 0 to 4
of each speaker and digit are for testing only; recording 5 is for validation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nearfuture import NearfutureError
from nearfuture.data import (
    AcousticEnvironment,
    Augmentation,
    Batch,
    CutFilter,
    Prefetcher,
    Utterance,
    add_noise,
    at_level,
    corpus_folder,
    read_source,
    shard,
)
from nearfuture.text import Vocabulary

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
HELD_OUT = "theo"
"""The speaker who is in no training batch."""

Split = Literal["train", "dev", "test"]
_DEV_RECORDING = 5
_SHORT = 0.15  # of the batches are of one or two digits
_AUGMENTATION = Augmentation(speed=0.15)  # more than usual, for five speakers


def symbols() -> tuple[str, ...]:
    """The characters that digit strings are written with.

    >>> "".join(symbols())
    ' efghinorstuvwxz'
    """
    return Vocabulary.from_texts([" ".join(WORDS)]).symbols


@dataclass(frozen=True, kw_only=True, eq=False)
class DigitRecordings:
    """Single digits by speaker and split: `takes[speaker, split][digit]` is a list of samples."""

    rate: int
    takes: dict[tuple[str, str], tuple[list[NDArray[np.float32]], ...]]

    @classmethod
    def load(cls, folder: Path | None = None, *, rate: int = 8000) -> DigitRecordings:
        """Read the Free Spoken Digit Dataset from its folder, or from among the corpora.

        Raises:
            NearfutureError: where it is not there, or is something else.
        """
        folder = folder or corpus_folder("fsdd")
        if folder is None:
            raise NearfutureError(
                "the Free Spoken Digit Dataset is not among the corpora; let NEARFUTURE_CORPORA "
                "name a folder and run: nearfuture data fetch fsdd (which needs "
                "pip install 'nearfuture[train]')",
                code="not_found",
            )
        takes: dict[tuple[str, str], tuple[list[NDArray[np.float32]], ...]] = {}
        source = read_source(folder / "manifest.tsv")
        if source.skipped:
            raise NearfutureError(f"{folder} is not complete: {source.skipped[0]}")
        for cut in source.cuts:
            if cut.text not in WORDS or not (cut.speaker and cut.split):
                raise NearfutureError(
                    f"{cut.path}: the Free Spoken Digit Dataset has single digits from zero to "
                    f"nine, with a speaker and a split each, not {cut.text!r} with speaker "
                    f"{cut.speaker!r} and split {cut.split!r}"
                )
            split = cut.split
            if split == "train" and cut.path.stem.endswith(f"_{_DEV_RECORDING}"):
                split = "dev"
            digits = takes.setdefault((cut.speaker, split), tuple([] for _ in WORDS))
            digits[WORDS.index(cut.text)].append(cut.load(rate).samples)
        return cls(rate=rate, takes=takes)

    @property
    def seen(self) -> tuple[str, ...]:
        """The speakers who are trained on."""
        return tuple(sorted({speaker for speaker, _ in self.takes} - {HELD_OUT}))

    def string(
        self, speaker: str, split: Split, digits: int, rng: np.random.Generator
    ) -> Utterance:
        """One string of so many digits by one speaker, as the random generator has it.

        It has a level of −35 to −15 dBFS and a synthetic noise 15 to 40 dB below. Figures of
        evaluations rest on these very strings: they must not change.
        """
        clean = self.clean_string(speaker, split, digits, rng)
        samples = at_level(clean.samples, rng.uniform(-35.0, -15.0))
        samples = add_noise(samples, rng.uniform(15.0, 40.0), rng.uniform(0.0, 1.5), rng)
        return dataclasses.replace(clean, samples=samples)

    def clean_string(
        self, speaker: str, split: Split, digits: int, rng: np.random.Generator
    ) -> Utterance:
        """A string as it was recorded, with pauses of up to 250 ms at its ends and in between."""
        takes = self.takes[speaker, split]
        chosen = rng.integers(0, 10, digits)
        pieces = [self._gap(rng)]
        for digit in chosen:
            choices = takes[digit]
            pieces += [choices[rng.integers(len(choices))], self._gap(rng)]
        words = " ".join(WORDS[digit] for digit in chosen)
        return Utterance(
            name=f"{speaker}: {words}",
            samples=np.concatenate(pieces),
            text=words,
            speaker=speaker,
        )

    def strings(
        self, speakers: Sequence[str], split: Split, count: int, *, seed: int
    ) -> list[Utterance]:
        """So many strings of each speaker, the same ones for the same seed."""
        return [
            self.string(speaker, split, int(rng.integers(3, 8)), rng)
            for number, speaker in enumerate(speakers)
            for rng in [np.random.default_rng([seed, number])]
            for _ in range(count)
        ]

    def _gap(self, rng: np.random.Generator) -> NDArray[np.float32]:
        return np.zeros(int(rng.uniform(0.0, 0.25) * self.rate), np.float32)


@dataclass(frozen=True, kw_only=True)
class ConnectedDigits:
    """Training batches of connected digits: a pure function of the seed and the step.

    A batch has strings of one number of digits, so that little of it is padding, and about
    `digits_per_batch` digits in all: 3 to 7 a string, or 1 to 2 in 15 % of the batches, since
    people also say a single digit. Strings differ in speed, level, noise, room and ends.

    Attributes:
        recordings: single digits.
        others: whole strings of other voices (synthetic ones), mixed in by `others_share`.
        augmentation: what is done to each string.
        environment: the noises and rooms that it is done with.
        cut_filter: augmentation makes no string too short for its text.
    """

    recordings: DigitRecordings
    others: Sequence[Utterance] = ()
    others_share: float = 0.25
    digits_per_batch: int = 80
    augmentation: Augmentation = _AUGMENTATION
    environment: AcousticEnvironment = field(default_factory=AcousticEnvironment)
    cut_filter: CutFilter = field(default_factory=CutFilter)
    seed: int = 0
    _prefetcher: Prefetcher = field(
        default_factory=Prefetcher, init=False, repr=False, compare=False
    )

    def batch(self, step: int, *, rank: int = 0, world_size: int = 1) -> Batch:
        """The utterances of one training step: those of one rank among so many."""
        return self._prefetcher.batch(self._make, step, rank, world_size)

    def _make(self, step: int, rank: int, world_size: int) -> Batch:
        rng = np.random.default_rng([self.seed, step])
        short = rng.random() < _SHORT
        digits = int(rng.integers(1, 3) if short else rng.integers(3, 8))
        others = [other for other in self.others if len(other.text.split()) == digits]
        places = shard(range(round(self.digits_per_batch / digits)), rank, world_size)
        return Batch(
            utterances=[self._utterance(step, place, digits, others) for place, _ in places]
        )

    def _utterance(
        self, step: int, place: int, digits: int, others: Sequence[Utterance]
    ) -> Utterance:
        rng = np.random.default_rng([self.seed, step, place])
        if others and rng.random() < self.others_share:
            string = others[int(rng.integers(len(others)))]
        else:
            seen = self.recordings.seen
            speaker = seen[rng.integers(len(seen))]
            string = self.recordings.clean_string(speaker, "train", digits, rng)
        rate = self.recordings.rate
        samples = self.augmentation.apply(
            string.samples,
            rate,
            rng,
            environment=self.environment,
            fits=lambda size: self.cut_filter.fits(string.text, size / rate),
        )
        return dataclasses.replace(string, samples=samples)
