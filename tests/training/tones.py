"""A language that can be learnt in seconds: letters are pairs of tones, as on a telephone."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from nearfuture.data import Batch, Utterance
from tests.recognizers import recognizer_config

LETTERS = {"a": (697, 1209), "b": (770, 1336), "c": (852, 1477), "d": (941, 1633)}
RATE = 8000
CONFIG = recognizer_config(
    symbols=tuple(LETTERS), hidden=8, layers=1, heads=(0, 2), dropout=0.1, mel_bins=20
)


def spoken(text: str, seed: int = 0, *, name: str | None = None) -> Utterance:
    """Each letter for 0.16 s, with 0.08 s of quiet around, in a little noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(0.16 * RATE)) / RATE
    gap = np.zeros(int(0.08 * RATE))
    pieces = [gap]
    for letter in text:
        tones = sum(np.sin(2 * np.pi * hertz * time) for hertz in LETTERS.get(letter, (300,)))
        pieces += [0.1 * tones, gap]
    samples = np.concatenate(pieces)
    samples = samples + 0.001 * rng.standard_normal(samples.size)
    return Utterance(name=name or text, samples=samples.astype(np.float32), text=text)


def sentences(count: int = 10, *, seed: int = 0, letters: int = 6) -> list[Utterance]:
    rng = np.random.default_rng(seed)
    texts = ["".join(rng.choice(list(LETTERS), rng.integers(2, letters))) for _ in range(count)]
    return [spoken(text, number, name=f"{number} {text}") for number, text in enumerate(texts)]


@dataclass
class Listed:
    """Batches that are written down: the same ones over and over, but for some steps."""

    utterances: list[Utterance]
    special: dict[int, list[Utterance]] | None = None

    def batch(self, step: int, *, rank: int = 0, world_size: int = 1) -> Batch:
        batch = (self.special or {}).get(step, self.utterances)
        return Batch(utterances=batch[rank::world_size])


@dataclass
class Drawn:
    """Batches that differ from step to step, ten of them an epoch."""

    size: int = 3

    def batch(self, step: int, *, rank: int = 0, world_size: int = 1) -> Batch:
        batch = sentences(self.size, seed=step, letters=5)
        return Batch(utterances=batch[rank::world_size], epoch=step // 10)


def poisoned() -> list[Utterance]:
    """Two that can be trained on, and three that cannot."""
    good = sentences(2, seed=5)
    broken = spoken("abc", name="nan.wav")
    broken.samples[500] = np.nan
    hurried = spoken("abcdabcd", name="hurried.wav")
    hurried = dataclasses.replace(hurried, samples=hurried.samples[:2000])
    return [good[0], broken, hurried, spoken("xyz", name="odd.wav"), good[1]]


def noisy(one: Utterance) -> Utterance:
    """In so much noise that no mel bin is silent.

    One that always is has nothing but rounding errors for a gradient, which AdamW makes as large
    as any other.
    """
    noise = np.random.default_rng(0).standard_normal(one.samples.size)
    return dataclasses.replace(one, samples=one.samples + (0.05 * noise).astype(np.float32))
