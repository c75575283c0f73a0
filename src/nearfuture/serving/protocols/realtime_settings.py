"""What a client of OpenAI's Realtime protocol may choose for a session, in its two dialects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from nearfuture.serving.errors import RequestError
from nearfuture.serving.json_fields import as_text, brief
from nearfuture.serving.protocols.openai_fields import as_language, not_offered, read_object

Dialect: TypeAlias = Literal["ga", "beta"]
"""`ga` sends `session.update`, `beta` (2024 and 2025) sends `transcription_session.update`."""

DEFAULT_SILENCE_MS = 500
SHORTEST_SILENCE_MS, LONGEST_SILENCE_MS = 100, 10_000
RATES = {"int16": 24_000, "mulaw": 8000, "alaw": 8000}
_GA = {"int16": "audio/pcm", "mulaw": "audio/pcmu", "alaw": "audio/pcma"}
_BETA = {"int16": "pcm16", "mulaw": "g711_ulaw", "alaw": "g711_alaw"}

_READ_SESSION = ("id", "object", "type", "audio")
_READ_INPUT = ("format", "transcription", "turn_detection")
_READ_SESSION_BETA = (
    "id",
    "object",
    "input_audio_format",
    "input_audio_transcription",
    "turn_detection",
)
_DEFAULT_BETA = {
    "modalities": (["text"],),
    "input_audio_noise_reduction": (),
    "include": ([],),
    "client_secret": (),
}
_DEFAULT_HINTS = {"prompt": ("",), "keywords": ([],), "languages": ([],), "delay": ()}
_DEFAULT_TURNS = {  # OpenAI's own defaults, which its clients send without meaning anything by them
    "threshold": (0.5,),
    "prefix_padding_ms": (300,),
    "create_response": (False,),
    "interrupt_response": (False,),
    "idle_timeout_ms": (),
}


@dataclass(frozen=True, kw_only=True)
class RealtimeSettings:
    """The settings in force; an update gives the next ones.

    Attributes:
        model: the model's name, as the client calls it; None for the server's default.
        encoding: `int16` (24 kHz), `mulaw` or `alaw` (8 kHz).
        silence_ms: pause that ends an utterance; None path the client commits by itself.
        language: as the client names it; it is repeated to the client and changes nothing.
    """

    model: str | None = None
    encoding: str = "int16"
    silence_ms: int | None = DEFAULT_SILENCE_MS
    language: str | None = None

    @property
    def rate(self) -> int:
        """Samples per second of what the client sends."""
        return RATES[self.encoding]

    def updated(self, session: object, dialect: Dialect) -> RealtimeSettings:
        """Return these settings with the changes of a client's `session`; other fields stay.

        The result of `described` is accepted as it is.

        Raises:
            RequestError: for a field of the wrong type or one that means nothing, for a value that
                is not offered, and for a session that is to do anything but transcribe.

        >>> fields = {"type": "transcription", "audio": {"input": {"turn_detection": None}}}
        >>> RealtimeSettings().updated(fields, "ga").silence_ms is None
        True
        """
        if dialect == "beta":
            path = "session"
            fields = read_object(session, path, read=_READ_SESSION_BETA, defaults=_DEFAULT_BETA)
            encoding = _encoding_beta(fields.get("input_audio_format"))
            return self._with(fields, encoding, path, "input_audio_transcription")
        if isinstance(session, dict) and session.get("type", "transcription") != "transcription":
            remedy = "this server transcribes, and speaks to nobody; say 'transcription'"
            raise not_offered("session.type", session["type"], remedy)
        defaults: dict[str, tuple[object, ...]] = {"include": ([],)}
        fields = read_object(session, "session", read=_READ_SESSION, defaults=defaults)
        audio = read_object(
            fields.get("audio"), "session.audio", read=("input",), defaults={"output": ()}
        )
        path = "session.audio.input"
        fields = read_object(
            audio.get("input"), path, read=_READ_INPUT, defaults={"noise_reduction": ()}
        )
        return self._with(fields, _encoding_ga(fields.get("format")), path, "transcription")

    def described(self, identifier: str, model: str, dialect: Dialect) -> dict[str, Any]:
        """Return the settings in force in the client's dialect; `model` is what really runs.

        >>> RealtimeSettings().described("sess_1", "digits", "beta")["input_audio_format"]
        'pcm16'
        """
        transcription = {"model": model}
        if self.language is not None:
            transcription["language"] = self.language
        turns: dict[str, Any] | None = None
        if self.silence_ms is not None:
            turns = {"type": "server_vad", "silence_duration_ms": self.silence_ms}
        if dialect == "beta":
            return {
                "id": identifier,
                "object": "realtime.transcription_session",
                "modalities": ["text"],
                "input_audio_format": _BETA[self.encoding],
                "input_audio_transcription": transcription,
                "turn_detection": turns,
            }
        kind: dict[str, Any] = {"type": _GA[self.encoding]}
        if self.encoding == "int16":
            kind["rate"] = self.rate
        return {
            "id": identifier,
            "object": "realtime.transcription_session",
            "type": "transcription",
            "audio": {
                "input": {
                    "format": kind,
                    "transcription": transcription,
                    "noise_reduction": None,
                    "turn_detection": turns,
                }
            },
            "include": None,
        }

    def _with(
        self, fields: Mapping[str, Any], encoding: str | None, path: str, transcription: str
    ) -> RealtimeSettings:
        changes: dict[str, Any] = {} if encoding is None else {"encoding": encoding}
        place = f"{path}.{transcription}"
        options = read_object(
            fields.get(transcription), place, read=("model", "language"), defaults=_DEFAULT_HINTS
        )
        if "language" in options:
            changes["language"] = as_language(options["language"], f"{place}.language")
        if (model := options.get("model")) is not None:
            changes["model"] = as_text(model, f"{place}.model")
        if "turn_detection" in fields:
            place = f"{path}.turn_detection"
            changes["silence_ms"] = _silence_ms(fields["turn_detection"], place)
        return replace(self, **changes)


def _encoding_ga(value: object) -> str | None:
    path = "session.audio.input.format"
    fields = read_object(value, path, read=("type", "rate"))
    if not fields:
        return None
    encoding = _one_of(fields.get("type"), _GA, f"{path}.type")
    rate = fields.get("rate")
    if rate not in (None, RATES[encoding]):
        remedy = f"{_GA[encoding]} has {RATES[encoding]} here; /stream takes any rate"
        raise not_offered(f"{path}.rate", rate, remedy)
    return encoding


def _encoding_beta(value: object) -> str | None:
    return None if value is None else _one_of(value, _BETA, "session.input_audio_format")


def _one_of(value: object, names: Mapping[str, str], path: str) -> str:
    for encoding, name in names.items():
        if value == name:
            return encoding
    raise not_offered(path, value, f"use {', '.join(names.values())}")


def _silence_ms(value: object, path: str) -> int | None:
    if value is None:
        return None
    kind = value.get("type", "server_vad") if isinstance(value, dict) else "server_vad"
    if kind != "server_vad":
        remedy = (
            "use 'server_vad', which waits for a pause of silence_duration_ms, or null and commit "
            "by yourself"
        )
        raise not_offered(f"{path}.type", kind, remedy)
    fields = read_object(value, path, read=("type", "silence_duration_ms"), defaults=_DEFAULT_TURNS)
    silence = fields.get("silence_duration_ms")
    if silence is None:
        return DEFAULT_SILENCE_MS
    whole = isinstance(silence, int | float) and not isinstance(silence, bool)
    if not whole or not SHORTEST_SILENCE_MS <= silence <= LONGEST_SILENCE_MS:
        raise RequestError(
            "invalid",
            f"silence_duration_ms {brief(silence)}: it must be a number of milliseconds from "
            f"{SHORTEST_SILENCE_MS} to {LONGEST_SILENCE_MS}",
            f"{path}.silence_duration_ms",
        )
    return int(silence)
