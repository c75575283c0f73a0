"""What a Realtime client may choose; what is not offered is refused by name."""

from typing import Any

import pytest
from openai.types.realtime import RealtimeTranscriptionSessionCreateResponse

from nearfuture.serving.errors import RequestError
from nearfuture.serving.protocols.realtime_settings import (
    DEFAULT_SILENCE_MS,
    Dialect,
    RealtimeSettings,
)


def ga(**heard: Any) -> dict[str, Any]:
    return {"type": "transcription", "audio": {"input": heard}}


@pytest.mark.parametrize(
    ("kind", "encoding", "rate"),
    [
        ({"type": "audio/pcm", "rate": 24000}, "int16", 24000),
        ({"type": "audio/pcm"}, "int16", 24000),
        ({"type": "audio/pcmu"}, "mulaw", 8000),
        ({"type": "audio/pcma"}, "alaw", 8000),
    ],
)
def test_formats_of_the_current_protocol(kind: Any, encoding: str, rate: int) -> None:
    settings = RealtimeSettings().updated(ga(format=kind), "ga")
    assert (settings.encoding, settings.rate) == (encoding, rate)
    told = settings.described("sess_1", "digits", "ga")["audio"]["input"]["format"]
    assert told == ({"type": "audio/pcm", "rate": 24000} if rate == 24000 else kind)


@pytest.mark.parametrize(
    ("name", "encoding"), [("pcm16", "int16"), ("g711_ulaw", "mulaw"), ("g711_alaw", "alaw")]
)
def test_formats_of_the_older_protocol(name: str, encoding: str) -> None:
    settings = RealtimeSettings().updated({"input_audio_format": name}, "beta")
    assert settings.encoding == encoding
    assert settings.described("sess_1", "digits", "beta")["input_audio_format"] == name


def test_the_official_types_read_the_description() -> None:
    told = RealtimeSettings(silence_ms=700).described("sess_1", "digits", "ga")
    read = RealtimeTranscriptionSessionCreateResponse.model_validate(told, strict=True)
    assert read.audio is not None
    assert read.audio.input is not None
    assert read.audio.input.turn_detection is not None
    assert read.audio.input.turn_detection.silence_duration_ms == 700
    assert read.audio.input.transcription is not None
    assert read.audio.input.transcription.model == "digits"


def test_fields_that_are_not_named_stay() -> None:
    settings = RealtimeSettings(model="digits", encoding="mulaw", silence_ms=900)
    assert settings.updated({"type": "transcription"}, "ga") == settings
    assert settings.updated({}, "beta") == settings
    assert settings.updated(ga(turn_detection=None), "ga").encoding == "mulaw"
    assert settings.updated(ga(format={"type": "audio/pcma"}), "ga").silence_ms == 900


def test_turn_detection() -> None:
    on = {"type": "server_vad", "silence_duration_ms": 800, "threshold": 0.5}
    assert RealtimeSettings().updated(ga(turn_detection=on), "ga").silence_ms == 800
    assert RealtimeSettings().updated(ga(turn_detection=None), "ga").silence_ms is None
    plain = {"type": "server_vad"}
    off = RealtimeSettings(silence_ms=None)
    assert off.updated({"turn_detection": plain}, "beta").silence_ms == DEFAULT_SILENCE_MS


def test_what_asks_for_nothing_is_accepted() -> None:
    turns = {
        "type": "server_vad",
        "threshold": 0.5,
        "prefix_padding_ms": 300.0,
        "create_response": False,
        "interrupt_response": None,
    }
    told = ga(
        transcription={"model": "whisper-1", "language": "en", "prompt": "", "keywords": []},
        noise_reduction=None,
        turn_detection=turns,
    ) | {"include": []}
    assert RealtimeSettings().updated(told, "ga") == RealtimeSettings(
        model="whisper-1", language="en"
    )


@pytest.mark.parametrize("dialect", ["ga", "beta"])
@pytest.mark.parametrize("silence_ms", [None, 700])
@pytest.mark.parametrize("language", [None, "en"])
def test_what_is_described_is_accepted(
    dialect: Dialect, silence_ms: int | None, language: str | None
) -> None:
    settings = RealtimeSettings(
        model="digits", encoding="alaw", silence_ms=silence_ms, language=language
    )
    told = settings.described("sess_1", "digits", dialect)
    assert RealtimeSettings(model="other").updated(told, dialect) == settings


@pytest.mark.parametrize(
    ("session", "param"),
    [
        ([], "session"),
        ("transcription", "session"),
        ({"type": "realtime"}, "session.type"),
        ({"audio": 3}, "session.audio"),
        ({"audio": {"input": "x"}}, "session.audio.input"),
        (ga(format="pcm16"), "session.audio.input.format"),
        (ga(format={"type": "audio/opus"}), "session.audio.input.format.type"),
        (ga(format={"type": ["audio/pcm"]}), "session.audio.input.format.type"),
        (ga(format={"type": "audio/pcm", "rate": 16000}), "session.audio.input.format.rate"),
        (ga(format={"type": "audio/pcmu", "rate": "8k"}), "session.audio.input.format.rate"),
        (ga(turn_detection="server_vad"), "session.audio.input.turn_detection"),
        (ga(turn_detection={"type": "semantic_vad"}), "session.audio.input.turn_detection.type"),
        (ga(transcription={"model": 7}), "session.audio.input.transcription.model"),
        (ga(transcription={"prompt": "digits"}), "session.audio.input.transcription.prompt"),
        (ga(transcription={"language": "?"}), "session.audio.input.transcription.language"),
        (ga(transcription={"keywords": ["one"]}), "session.audio.input.transcription.keywords"),
        (ga(transcription={"delay": "low"}), "session.audio.input.transcription.delay"),
        (ga(noise_reduction={"type": "near_field"}), "session.audio.input.noise_reduction"),
        (ga(echo=True), "session.audio.input.echo"),
        ({"audio": {"output": {"voice": "alloy"}}}, "session.audio.output"),
        ({"include": ["item.input_audio_transcription.logprobs"]}, "session.include"),
        ({"instructions": "be brief"}, "session.instructions"),
        *(
            (
                ga(turn_detection={"type": "server_vad", name: value}),
                f"session.audio.input.turn_detection.{name}",
            )
            for name, value in (
                ("threshold", 0.3),
                ("threshold", True),
                ("prefix_padding_ms", 100),
                ("create_response", True),
                ("interrupt_response", 1),
                ("idle_timeout_ms", 5000),
                ("eagerness", "low"),
            )
        ),
        *(
            (
                ga(turn_detection={"type": "server_vad", "silence_duration_ms": silence}),
                "session.audio.input.turn_detection.silence_duration_ms",
            )
            for silence in (0, 99, 1e9, -5, "500", True, float("nan"), [500])
        ),
    ],
)
def test_what_is_not_offered_is_refused_by_name(session: object, param: str) -> None:
    with pytest.raises(RequestError) as refusal:
        RealtimeSettings().updated(session, "ga")
    assert refusal.value.parameter == param
    assert refusal.value.fields()["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("session", "param"),
    [
        ({"modalities": ["text", "audio"]}, "session.modalities"),
        ({"input_audio_noise_reduction": {"type": "far_field"}},
         "session.input_audio_noise_reduction"),
        ({"include": ["logprobs"]}, "session.include"),
        ({"voice": "alloy"}, "session.voice"),
        ({"input_audio_transcription": {"prompt": "x"}},
         "session.input_audio_transcription.prompt"),
        ({"turn_detection": {"threshold": 0.9}}, "session.turn_detection.threshold"),
    ],
)  # fmt: skip
def test_the_older_protocol_refuses_by_name(session: object, param: str) -> None:
    with pytest.raises(RequestError) as refusal:
        RealtimeSettings().updated(session, "beta")
    assert refusal.value.parameter == param


@pytest.mark.parametrize("name", ["audio/pcm", "g722", 24000, {}])
def test_the_older_protocol_refuses_too(name: object) -> None:
    with pytest.raises(RequestError, match="g711_alaw"):
        RealtimeSettings().updated({"input_audio_format": name}, "beta")
