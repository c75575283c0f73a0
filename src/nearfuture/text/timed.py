"""Words with times in the formats of other programs: CTM, Praat's TextGrid, JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TimedText:
    """Text with a place in the audio: a word, a character.

    Args:
        text: the text itself.
        start_ms: where it begins.
        end_ms: where it ends.
        confidence: how sure the model is of it, in [0, 1].
    """

    text: str
    start_ms: float
    end_ms: float
    confidence: float


def timed_json(timed: TimedText) -> dict[str, Any]:
    """Return text with its times as plain values for JSON.

    >>> timed_json(TimedText(text="zero", start_ms=347.54, end_ms=527.5, confidence=0.98765))
    {'text': 'zero', 'start_ms': 347.5, 'end_ms': 527.5, 'confidence': 0.9877}
    """
    return {
        "text": timed.text,
        "start_ms": round(timed.start_ms, 1),
        "end_ms": round(timed.end_ms, 1),
        "confidence": round(timed.confidence, 4),
    }


def ctm(words: Iterable[TimedText], *, name: str, channel: str = "1") -> Iterator[str]:
    r"""Yield the words in NIST's form: `file channel start duration word confidence`.

    White space separates the fields, so that in the name it becomes an underscore.

    Args:
        words: in the order of their times.
        name: of the recording.
        channel: of the recording.

    Source: NIST SCTK, ctm format; seconds.

    >>> word = TimedText(text="zero", start_ms=347.5, end_ms=527.5, confidence=0.98)
    >>> next(ctm([word], name="call 7"))
    'call_7 1 0.3475 0.1800 zero 0.9800\n'
    """
    name = "_".join(name.split())
    for word in words:
        yield (
            f"{name} {channel} {word.start_ms / 1000:.4f} "
            f"{(word.end_ms - word.start_ms) / 1000:.4f} {word.text} {word.confidence:.4f}\n"
        )


def textgrid(tiers: Mapping[str, Sequence[TimedText]], *, duration_ms: float) -> str:
    """Return interval tiers in Praat's long text form.

    An interval tier has no holes: between the words lie intervals without text.

    Args:
        tiers: name → words or characters, in the order of their times, without overlap.
        duration_ms: of the recording.

    Source: Praat manual, "TextGrid file formats"; seconds.

    >>> word = TimedText(text="zero", start_ms=347.5, end_ms=527.5, confidence=0.98)
    >>> print(textgrid({"words": [word]}, duration_ms=800.0))  # doctest: +ELLIPSIS
    File type = "ooTextFile"
    Object class = "TextGrid"
    ...
            intervals [2]:
                xmin = 0.3475
                xmax = 0.5275
                text = "zero"
            intervals [3]:
                xmin = 0.5275
                xmax = 0.8000
                text = ""
    <BLANKLINE>
    """
    ends = [words[-1].end_ms for words in tiers.values() if words]
    end_ms = max([duration_ms, *ends])  # the last frame may stand for more than there is
    lines = [
        'File type = "ooTextFile"',
        'Object class = "TextGrid"',
        "",
        *_times("", 0.0, end_ms),
        "tiers? <exists>",
        f"size = {len(tiers)}",
        "item []:",
    ]
    for number, (name, words) in enumerate(tiers.items(), start=1):
        intervals = list(_intervals(words, end_ms))
        lines += [
            f"    item [{number}]:",
            '        class = "IntervalTier"',
            f"        name = {_quoted(name)}",
            *_times("        ", 0.0, end_ms),
            f"        intervals: size = {len(intervals)}",
        ]
        for place, (start, end, text) in enumerate(intervals, start=1):
            lines += [
                f"        intervals [{place}]:",
                *_times("            ", start, end),
                f"            text = {_quoted(text)}",
            ]
    return "\n".join(lines) + "\n"


def _intervals(words: Sequence[TimedText], end_ms: float) -> Iterator[tuple[float, float, str]]:
    at = 0.0
    for word in words:
        if word.start_ms > at:
            yield at, word.start_ms, ""
        yield word.start_ms, word.end_ms, word.text
        at = word.end_ms
    if at < end_ms:
        yield at, end_ms, ""


def _times(indent: str, start_ms: float, end_ms: float) -> list[str]:
    return [f"{indent}xmin = {start_ms / 1000:.4f}", f"{indent}xmax = {end_ms / 1000:.4f}"]


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'
