"""What a client of OpenAI's Realtime protocol may choose for a session, in its two dialects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from nearfuture.serving.limits import shown
from nearfuture.serving.protocols.openai_error import OpenAIError
from nearfuture.serving.protocols.openai_option import as_language, refuse_options

Dialect: TypeAlias = Literal["ga", "beta"]
"""`ga` says `session.update`, `beta` (2024 and 2025) says `transcription_session.update`."""

DEFAULT_SILENCE_MS = 500
SHORTEST_SILENCE_MS, LONGEST_SILENCE_MS = 100, 10_000
RATES = {"int16": 24_000, "mulaw": 8000, "alaw": 8000}
_GA = {"int16": "audio/pcm", "mulaw": "audio/pcmu", "alaw": "audio/pcma"}
_BETA = {"int16": "pcm16", "mulaw": "g711_ulaw", "alaw": "g711_alaw"}

_OF_SESSION = ("id", "object", "type", "audio")
_OF_INPUT = ("format", "transcription", "turn_detection")
_OF_SESSION_BETA = (
    "id",
    "object",
    "input_audio_format",
    "input_audio_transcription",
    "turn_detection",
)
_USUAL_BETA = {
    "modalities": (["text"],),
    "input_audio_noise_reduction": (),
    "include": ([],),
    "client_secret": (),
}
_USUAL_HINTS = {"prompt": ("",), "keywords": ([],), "languages": ([],), "delay": ()}
_USUAL_TURNS = {  # OpenAI's own defaults, which its clients send without meaning anything by them
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
        silence_ms: pause that ends an utterance; None where the client commits by itself.
        language: as the client names it; it is told back and changes nothing.
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
        """These settings with what a client's `session` changes; fields not named stay.

        What `described` tells is accepted as it is.

        Raises:
            OpenAIError: for a field of the wrong type or one that means nothing, for a value that
                is not offered, and for a session that is to do anything but transcribe.

        >>> told = {"type": "transcription", "audio": {"input": {"turn_detection": None}}}
        >>> RealtimeSettings().updated(told, "ga").silence_ms is None
        True
        """
        fields = _object(session, "session")
        if dialect == "beta":
            refuse_options(fields, read=_OF_SESSION_BETA, usual=_USUAL_BETA, where="session")
            return self._with(
                fields,
                _encoding_beta(fields.get("input_audio_format")),
                transcription="input_audio_transcription",
                where="session",
            )
        kind = fields.get("type", "transcription")
        if kind != "transcription":
            raise OpenAIError(
                f"a session of type {shown(kind)} is not offered: this server transcribes, and "
                f"speaks to nobody; say type: 'transcription'",
                param="session.type",
            )
        refuse_options(fields, read=_OF_SESSION, usual={"include": ([],)}, where="session")
        audio = _object(fields.get("audio"), "session.audio")
        refuse_options(audio, read=("input",), usual={"output": ()}, where="session.audio")
        heard = _object(audio.get("input"), "session.audio.input")
        refuse_options(
            heard, read=_OF_INPUT, usual={"noise_reduction": ()}, where="session.audio.input"
        )
        return self._with(
            heard,
            _encoding_ga(heard.get("format")),
            transcription="transcription",
            where="session.audio.input",
        )

    def described(self, identifier: str, model: str, dialect: Dialect) -> dict[str, Any]:
        """The settings in force as the client's dialect tells them; `model` is what really runs.

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
        self,
        fields: Mapping[str, Any],
        encoding: str | None,
        *,
        transcription: str,
        where: str,
    ) -> RealtimeSettings:
        after = self if encoding is None else replace(self, encoding=encoding)
        place = f"{where}.{transcription}"
        asked = _object(fields.get(transcription), place)
        refuse_options(asked, read=("model", "language"), usual=_USUAL_HINTS, where=place)
        if "language" in asked:
            language = as_language(asked["language"], f"{place}.language")
            after = replace(after, language=language)
        if (model := asked.get("model")) is not None:
            after = replace(after, model=_text(model, f"{place}.model"))
        if "turn_detection" in fields:
            silence_ms = _silence_ms(fields["turn_detection"], f"{where}.turn_detection")
            after = replace(after, silence_ms=silence_ms)
        return after


def _encoding_ga(value: object) -> str | None:
    where = "session.audio.input.format"
    told = _object(value, where)
    if not told:
        return None
    refuse_options(told, read=("type", "rate"), usual={}, where=where)
    encoding = _one_of(told.get("type"), _GA, f"{where}.type")
    rate = told.get("rate")
    if rate not in (None, RATES[encoding]):
        raise OpenAIError(
            f"{shown(rate)} samples per second of {_GA[encoding]} are not offered: this protocol "
            f"has {RATES[encoding]} only; /stream takes any rate",
            param=f"{where}.rate",
        )
    return encoding


def _encoding_beta(value: object) -> str | None:
    return None if value is None else _one_of(value, _BETA, "session.input_audio_format")


def _one_of(value: object, names: Mapping[str, str], where: str) -> str:
    for encoding, name in names.items():
        if value == name:
            return encoding
    raise OpenAIError(
        f"{shown(value)} is no audio format of this protocol: use {', '.join(names.values())}",
        param=where,
        code="invalid_value",
    )


def _silence_ms(value: object, where: str) -> int | None:
    if value is None:
        return None
    told = _object(value, where)
    kind = told.get("type", "server_vad")
    if kind != "server_vad":
        raise OpenAIError(
            f"turn detection of type {shown(kind)} is not offered: use 'server_vad', which waits "
            f"for a pause of silence_duration_ms, or null and commit by yourself",
            param=f"{where}.type",
            code="invalid_value",
        )
    refuse_options(told, read=("type", "silence_duration_ms"), usual=_USUAL_TURNS, where=where)
    silence = told.get("silence_duration_ms")
    if silence is None:
        return DEFAULT_SILENCE_MS
    whole = isinstance(silence, int | float) and not isinstance(silence, bool)
    if not whole or not SHORTEST_SILENCE_MS <= silence <= LONGEST_SILENCE_MS:
        raise OpenAIError(
            f"silence_duration_ms {shown(silence)}: it must be a number of milliseconds from "
            f"{SHORTEST_SILENCE_MS} to {LONGEST_SILENCE_MS}",
            param=f"{where}.silence_duration_ms",
        )
    return int(silence)


def _object(value: object, where: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise OpenAIError(
            f"{where} is {type(value).__name__}, but an object is wanted", param=where
        )
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise OpenAIError(f"{where} is {type(value).__name__}, but text is wanted", param=where)
    return value
