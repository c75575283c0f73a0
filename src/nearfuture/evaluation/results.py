"""What a streaming model and its twin wrote for one recording, beside its reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nearfuture.decoding import Word
from nearfuture.text import ErrorRate, character_errors, word_errors


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """The hypothesis of one head, or of the twin, for one recording.

    Attributes:
        text: the final text.
        words: its words, with times as in `nearfuture.decoding.words`.
        word_errors, character_errors: against the reference.
        revisions: how often the partial result (committed + provisional) was changed, not extended.
        retracted: characters that such changes took back.
    """

    text: str
    words: tuple[Word, ...]
    word_errors: ErrorRate
    character_errors: ErrorRate
    revisions: int = 0
    retracted: int = 0

    @classmethod
    def scored(
        cls,
        reference: str,
        text: str,
        words: tuple[Word, ...] = (),
        *,
        revisions: int = 0,
        retracted: int = 0,
    ) -> Hypothesis:
        """Count the errors of a text against its reference.

        >>> Hypothesis.scored("one two", "one too").word_errors.rate
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

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Hypothesis:
        """Rebuild what `dataclasses.asdict` took apart."""
        parsed = {
            "words": _words(values["words"]),
            "word_errors": ErrorRate(**values["word_errors"]),
            "character_errors": ErrorRate(**values["character_errors"]),
        }
        return cls(**{**values, **parsed})


@dataclass(frozen=True, kw_only=True)
class Result:
    """One recording with its hypotheses and compute times.

    Attributes:
        name: the name of the recording.
        reference: the text that is spoken in it.
        seconds: its duration.
        resampler_ms: right context of the live resampler from its rate to the model's, in ms.
        heads: the hypothesis of each head, by lookahead.
        compute_ms: all computing of the stream, its end included, one decoder counted.
        finish_ms: the part of it that begins when the recording has ended.
        twin: the hypothesis of the twin; None without a twin.
        twin_ms: all computing of the twin, which begins when the recording has ended.
        aligned: the words of the reference where the twin aligns them; empty without a twin, and
            where the alignment is impossible.
        speaker: who speaks; empty where the data does not name the speaker.
    """

    name: str
    reference: str
    seconds: float
    resampler_ms: float
    heads: Mapping[int, Hypothesis]
    compute_ms: float
    finish_ms: float
    twin: Hypothesis | None = None
    twin_ms: float | None = None
    aligned: tuple[Word, ...] = ()
    speaker: str = ""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Result:
        """Rebuild what `dataclasses.asdict` took apart; JSON has the lookaheads as text."""
        heads, twin = values["heads"].items(), values["twin"]
        parsed = {
            "heads": {int(frames): Hypothesis.from_json(head) for frames, head in heads},
            "twin": None if twin is None else Hypothesis.from_json(twin),
            "aligned": _words(values["aligned"]),
        }
        return cls(**{**values, **parsed})


def _words(values: Iterable[Mapping[str, Any]]) -> tuple[Word, ...]:
    return tuple(Word(**word) for word in values)
