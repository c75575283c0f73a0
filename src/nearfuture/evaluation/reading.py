"""What was written for one recording: by every head of a streaming model, and by its twin."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nearfuture.decoding import Word
from nearfuture.text import ErrorRate, character_errors, word_errors


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What one head, or the twin, wrote for one recording.

    Attributes:
        text: the final text.
        words: the words of it, with times as in `nearfuture.decoding.words`.
        word_errors, character_errors: against the reference.
        revisions: how often text on show (committed + provisional) was changed, not extended.
        retracted: characters that such changes took back.
    """

    text: str
    words: tuple[Word, ...]
    word_errors: ErrorRate
    character_errors: ErrorRate
    revisions: int = 0
    retracted: int = 0

    @classmethod
    def of(
        cls,
        reference: str,
        text: str,
        words: tuple[Word, ...],
        *,
        revisions: int = 0,
        retracted: int = 0,
    ) -> Reading:
        """A text beside what was said.

        >>> Reading.of("one two", "one too", ()).word_errors.rate
        0.5
        """
        return cls(
            text=text,
            words=words,
            word_errors=word_errors(reference, text),
            character_errors=character_errors(reference, text),
            revisions=revisions,
            retracted=retracted,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "text": self.text,
            "words": _words_to_json(self.words),
            "word_errors": dataclasses.asdict(self.word_errors),
            "character_errors": dataclasses.asdict(self.character_errors),
            "revisions": self.revisions,
            "retracted": self.retracted,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Reading:
        """The inverse of `to_json`."""
        return cls(
            text=values["text"],
            words=_words_from_json(values["words"]),
            word_errors=ErrorRate(**values["word_errors"]),
            character_errors=ErrorRate(**values["character_errors"]),
            revisions=values["revisions"],
            retracted=values["retracted"],
        )


@dataclass(frozen=True, kw_only=True)
class Result:
    """One recording and everything that was written for it.

    Attributes:
        name: of the recording.
        reference: what was said.
        seconds: its duration.
        resampler_ms: right context of the live resampler from its rate to the model's, in ms.
        heads: what each head τ wrote.
        compute_ms: all computing of the stream, its end included, one decoder counted.
        finish_ms: the part of it that begins when the recording has ended.
        twin: what the twin wrote; None without a twin.
        twin_ms: all computing of the twin, which begins when the recording has ended.
        aligned: the words of the reference where the twin hears them (forced alignment); empty
            without a twin, and where that is impossible.
        speaker: who speaks; empty where nobody knows.
    """

    name: str
    reference: str
    seconds: float
    resampler_ms: float
    heads: Mapping[int, Reading]
    compute_ms: float
    finish_ms: float
    twin: Reading | None = None
    twin_ms: float | None = None
    aligned: tuple[Word, ...] = ()
    speaker: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "speaker": self.speaker,
            "reference": self.reference,
            "seconds": self.seconds,
            "resampler_ms": self.resampler_ms,
            "compute_ms": self.compute_ms,
            "finish_ms": self.finish_ms,
            "heads": {str(frames): one.to_json() for frames, one in self.heads.items()},
            "twin": None if self.twin is None else self.twin.to_json(),
            "twin_ms": self.twin_ms,
            "aligned": _words_to_json(self.aligned),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Result:
        """The inverse of `to_json`."""
        return cls(
            name=values["name"],
            speaker=values["speaker"],
            reference=values["reference"],
            seconds=values["seconds"],
            resampler_ms=values["resampler_ms"],
            compute_ms=values["compute_ms"],
            finish_ms=values["finish_ms"],
            heads={int(frames): Reading.from_json(one) for frames, one in values["heads"].items()},
            twin=None if values["twin"] is None else Reading.from_json(values["twin"]),
            twin_ms=values["twin_ms"],
            aligned=_words_from_json(values["aligned"]),
        )


def _words_to_json(words: tuple[Word, ...]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(word) for word in words]


def _words_from_json(values: list[dict[str, Any]]) -> tuple[Word, ...]:
    return tuple(Word(**word) for word in values)
