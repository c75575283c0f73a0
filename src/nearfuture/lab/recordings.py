"""The bundled recordings, and what the bundled models hear in them.

Shapes: `T` frames, `V` vocabulary with the blank.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nearfuture.lab.page import PACKAGE
from nearfuture.text import edit_alignment

if TYPE_CHECKING:
    from nearfuture.audio import Audio
    from nearfuture.runtime import Manifest, Model

SAMPLES = PACKAGE / "assets" / "samples"
PEOPLE = SAMPLES / "people"
STREAMING, TWIN = "digits", "digits-bidirectional"

LogProbs = NDArray[np.float32]


@dataclass(frozen=True)
class Recording:
    """A recording with what is said in it, and who says it.

    Attributes:
        name: of its file, without its ending.
        path: of its file.
        text: what is said.
        voice: the person, or the synthetic voice.
        synthetic: whether a program speaks.
    """

    name: str
    path: Path
    text: str
    voice: str
    synthetic: bool


@cache
def recordings() -> tuple[Recording, ...]:
    """Return all bundled recordings: people first, then synthetic voices.

    >>> [sum(each.synthetic is kind for each in recordings()) for kind in (False, True)]
    [6, 8]
    """
    found = []
    for folder, column in ((PEOPLE, "speaker"), (SAMPLES, "voice")):
        with (folder / "manifest.tsv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                path = folder / row["path"]
                text, voice = row["transcript"], row[column]
                found.append(Recording(path.stem, path, text, voice, column == "voice"))
    return tuple(found)


@cache
def audio(recording: Recording) -> Audio:
    """Return the samples of a recording."""
    from nearfuture.audio import read

    return read(recording.path)


@cache
def samples(recording: Recording) -> NDArray[np.float32]:
    """Return a recording at the rate of the bundled models: (n,) samples.

    >>> sound = recordings()[7]
    >>> audio(sound).rate, len(audio(sound).samples), len(samples(sound))
    (16000, 31426, 15713)
    """
    from nearfuture.audio import resample_blocks

    sound = audio(recording)
    parts = resample_blocks([sound.samples], sound.rate, twin().rate)
    return np.concatenate(list(parts))


@cache
def streaming() -> Model:
    """The bundled model that streams, with all of its heads."""
    from nearfuture.runtime import load

    return load(STREAMING)


@cache
def twin() -> Model:
    """The bundled model that reads both ways."""
    from nearfuture.runtime import load

    return load(TWIN)


@cache
def log_probs_of_heads(recording: Recording) -> Mapping[int, LogProbs]:
    """Return what each head gives for a recording, by its lookahead: (T, V) each; one pass for all.

    >>> found = log_probs_of_heads(recordings()[1])
    >>> sorted(found), found[8].shape == found[19].shape
    ([0, 4, 8, 19], True)
    """
    heard: list[dict[int, LogProbs]] = []
    sound = audio(recording)
    stream = streaming().stream(sound.rate, on_log_probs=heard.append)
    stream.accept(sound.samples)
    stream.finish()
    return {tau: np.concatenate([step[tau] for step in heard]) for tau in streaming().budgets}


@cache
def log_probs_of_twin(recording: Recording) -> LogProbs:
    """Return what the model that reads both ways gives for a recording: (T, V)."""
    sound = audio(recording)
    return twin().log_probs(sound.samples, sound.rate)


def text_of(log_probs: LogProbs, manifest: Manifest) -> str:
    """Return the text that a model writes.

    >>> text_of(log_probs_of_heads(recordings()[1])[8], streaming().manifest)
    'zero nine two five six'
    """
    from nearfuture.decoding import greedy_text

    return greedy_text(log_probs, manifest.vocabulary, frame_ms=manifest.frame_ms)


def judged(said: str, written: str) -> list[dict[str, str | bool]]:
    """Return the words of both texts side by side, and which of them is wrong.

    A word that is missing is an empty text, and so is what was said where a word is too many.

    >>> judged("two six", "two")[1]
    {'said': 'six', 'written': '', 'wrong': True}
    >>> judged("one two three", "one too three")  # doctest: +NORMALIZE_WHITESPACE
    [{'said': 'one', 'written': 'one', 'wrong': False},
     {'said': 'two', 'written': 'too', 'wrong': True},
     {'said': 'three', 'written': 'three', 'wrong': False}]
    """
    pairs = edit_alignment(said.split(), written.split())
    return [
        {"said": word or "", "written": other or "", "wrong": word != other}
        for word, other in pairs
    ]
