"""A cut: a recording with its text, or a part of one; what it is in memory; why one is skipped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio import Audio, AudioError, TruncatedAudioError, resample
from nearfuture.audio.probe import SHORT_S, Probe, probe, read_part
from nearfuture.error import NearfutureError

SkipCode = Literal[
    "no such file",
    "no transcript",
    "empty transcript",
    "text without audio",
    "not UTF-8",
    "Git LFS pointer",
    "listed twice",
    "not usable",
    "cannot be read",
    "cut off",
    "not in its file",
    "no samples",
    "silent",
    "not finite",
    "too long",
    "too short for its text",
    "outside the vocabulary",
    "empty batch",
]

SPLITS = ("train", "dev", "test")
"""The splits that trainings and evaluations use: to learn from, to validate with, to test with."""

_SPLITS = {"train": "train", "training": "train", "dev": "dev", "test": "test", "testing": "test"}
_SPLITS |= {"valid": "dev", "validation": "dev", "val": "dev", "devel": "dev", "eval": "test"}


def split_named(name: str) -> str:
    """The split that a name means: one of "train", "dev", "test", or the name itself.

    >>> [split_named(name) for name in ("train-clean-100", "Validation", "test_other", "extra")]
    ['train', 'dev', 'test', 'extra']
    """
    first = name.lower().replace("_", "-").split("-")[0]
    return _SPLITS.get(first, name)


@dataclass(frozen=True)
class Skipped:
    """A recording or a row of a source that is not used; why, as a code and in words.

    >>> str(Skipped("a.wav", "no samples", "it holds no samples"))
    'a.wav: it holds no samples'
    """

    name: str
    code: SkipCode
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


class CutError(NearfutureError):
    """An error for a cut that cannot be used.

    Attributes:
        skipped: names the cut and the reason.
    """

    code = "out_of_range"

    def __init__(self, skipped: Skipped) -> None:
        super().__init__(str(skipped))
        self.skipped = skipped


@dataclass(frozen=True, kw_only=True, eq=False)
class Utterance:
    """A cut in memory: mono float32 `samples` (n,) at the model's rate, and its text.

    `speaker` is "" where it is not known.
    """

    name: str
    samples: NDArray[np.float32]
    text: str
    speaker: str = ""


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A recording with its text, or a part of one; a row of a source, whose audio is not loaded.

    Lhotse's cut is the same with several supervisions, and needs lhotse.

    Attributes:
        name: unique in its source: the path, followed by the part if it is one.
        path: the audio file.
        text: the transcript, as `nearfuture.text.normalise` spells it.
        start_s: where the part begins in the file, in seconds.
        duration_s: how long the part is, in seconds; None: to the end of the file.
        rate: samples per second of the file, where the source states it.
        channel: the channel to use, from 0; None: the mean of all.
        speaker: who speaks; "" where the source does not state it.
        split: "train", "dev" or "test"; "" where the source does not state it.
        fields: all other columns of the source, by name.
    """

    name: str
    path: Path
    text: str
    start_s: float = 0.0
    duration_s: float | None = None
    rate: int | None = None
    channel: int | None = None
    speaker: str = ""
    split: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    def read(self) -> Audio:
        """The samples at the file's own rate: the part of the file, the channel or the mean of all.

        Raises:
            CutError: where the file cannot be read, was cut off (where the kind of file can tell,
                see `nearfuture.audio.members`), is shorter than the part, or holds no samples.
        """
        try:
            audio = read_part(
                self.path, start_s=self.start_s, duration_s=self.duration_s, channel=self.channel
            )
        except AudioError as error:
            raise self.unreadable(error) from error
        if audio.samples.size == 0:
            raise self._error("no samples", "it holds no samples")
        return audio

    def load(self, rate: int) -> Utterance:
        """The cut in memory at `rate`.

        Raises:
            CutError: as `read`.
        """
        audio = self.read()
        samples = resample(audio.samples, audio.rate, rate)
        return Utterance(name=self.name, samples=samples, text=self.text, speaker=self.speaker)

    def probed(self, header: Probe | None = None) -> Cut:
        """The cut with its rate and its true duration, from the header of its file.

        Args:
            header: of the file, if it was read already.

        Raises:
            CutError: where the file cannot be read or was cut off, or the part is not in it.
        """
        try:
            header = header or probe(self.path)
        except AudioError as error:
            raise self.unreadable(error) from error
        if header.frames == 0:
            raise self._error("no samples", "it holds no samples")
        available_s = header.seconds - self.start_s
        duration_s = available_s if self.duration_s is None else self.duration_s
        if duration_s <= 0 or duration_s > available_s + SHORT_S:
            raise self._error(
                "not in its file",
                f"{self.path} lasts {header.seconds:.3f} s, so that there are no "
                f"{duration_s:.3f} s from {self.start_s:.3f} s on",
            )
        if self.channel is not None and self.channel >= header.channels:
            raise self._error(
                "not in its file",
                f"{self.path} has {header.channels} channels, numbered from 0: there is no "
                f"channel {self.channel}",
            )
        return replace(self, rate=header.rate, duration_s=min(duration_s, available_s))

    def unreadable(self, error: AudioError) -> CutError:
        """Convert an error about the file to one about this cut, without repeating its name."""
        skip_code: SkipCode = "cannot be read"
        if isinstance(error, TruncatedAudioError):
            skip_code = "cut off"
        elif error.code == "not_found":
            skip_code = "no such file"
        elif error.parameter in ("start_s", "channel"):
            skip_code = "not in its file"
        reason = str(error)
        if str(self.path) in self.name:
            reason = reason.removeprefix(f"{self.path} ")
        unreadable = self._error(skip_code, reason)
        unreadable.code = error.code
        return unreadable

    def _error(self, code: SkipCode, reason: str) -> CutError:
        return CutError(Skipped(self.name, code, reason))
