"""A transcript in the formats that OpenAI's `/v1/audio/transcriptions` answers with."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from nearfuture.decoding import Word
from nearfuture.text import Cue, cues, srt, vtt

_MEDIA_TYPES = {"json": "application/json", "verbose_json": "application/json", "vtt": "text/vtt"}


@dataclass(frozen=True)
class TranscriptionResult:
    """A recording as text.

    Attributes:
        text: all of it.
        words: of it, with times.
        duration_s: of the recording.
        language: as the client named it; `unknown` where it did not.
    """

    text: str
    words: tuple[Word, ...]
    duration_s: float
    language: str


def render(
    result: TranscriptionResult, form: str, granularities: Collection[str]
) -> tuple[str, str]:
    r"""Return the body of the reply, and its media type.

    >>> render(TranscriptionResult("two", (Word("two", 40.0, 300.0, 0.9),), 0.5, "en"), "srt", ())
    ('1\n00:00:00,040 --> 00:00:00,300\ntwo\n\n', 'text/plain; charset=utf-8')
    """
    media_type = f"{_MEDIA_TYPES.get(form, 'text/plain')}; charset=utf-8"
    match form:
        case "text":
            return f"{result.text}\n", media_type
        case "srt":
            return "".join(srt(result.words)), media_type
        case "vtt":
            return "".join(vtt(result.words)), media_type
        case "verbose_json":
            return _json(_verbose(result, granularities)), media_type
    return _json({"text": result.text, "usage": _usage(result)}), media_type


def _verbose(result: TranscriptionResult, granularities: Collection[str]) -> dict[str, Any]:
    """Return `verbose_json`, with words or segments as requested.

    What a CTC model does not have stands for nothing: `tokens` is empty, and `temperature`, `seek`
    and `no_speech_prob` are 0.
    """
    fields: dict[str, Any] = {
        "task": "transcribe",
        "language": result.language,
        "duration": result.duration_s,
        "text": result.text,
        "usage": _usage(result),
    }
    if "segment" in granularities:
        fields["segments"] = [_segment(i, cue) for i, cue in enumerate(cues(result.words))]
    if "word" in granularities:
        fields["words"] = [
            {"word": word.text, "start": _s(word.start_ms), "end": _s(word.end_ms)}
            for word in result.words
        ]
    return fields


def server_sent_event(fields: dict[str, Any]) -> str:
    r"""Return one server-sent event.

    >>> server_sent_event({"type": "transcript.text.delta", "delta": "two"})
    'data: {"type": "transcript.text.delta", "delta": "two"}\n\n'
    """
    return f"data: {_json(fields)}\n\n"


def _segment(number: int, cue: Cue) -> dict[str, Any]:
    text = cue.text.encode()
    confidences = [max(word.confidence, 1e-30) for word in cue.words]
    return {
        "id": number,
        "seek": 0,
        "start": _s(cue.start_ms),
        "end": _s(cue.end_ms),
        "text": cue.text,
        "tokens": [],
        "temperature": 0.0,
        "avg_logprob": math.fsum(map(math.log, confidences)) / len(confidences),
        "compression_ratio": len(text) / len(zlib.compress(text)),
        "no_speech_prob": 0.0,
    }


def _usage(result: TranscriptionResult) -> dict[str, Any]:
    return {"type": "duration", "seconds": result.duration_s}


def _s(ms: float) -> float:
    return round(ms / 1000, 3)


def _json(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False)
