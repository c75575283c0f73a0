"""OpenAI's HTTP interface, driven by OpenAI's own client as it is."""

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import openai
import pytest
import soundfile
from openai.types.audio import (
    Transcription,
    TranscriptionTextDeltaEvent,
    TranscriptionTextDoneEvent,
    TranscriptionVerbose,
)
from starlette.datastructures import FormData, UploadFile

from nearfuture.decoding import Word
from nearfuture.runtime import Dispatcher, Model, load
from nearfuture.serving.protocols.transcription_request import TranscriptionRequest
from nearfuture.serving.settings import ServerSettings
from nearfuture.text.subtitles import cues, srt, vtt
from tests.serving.live import CLIPS, Live, as_int16, clip, live, spoken, wav
from tests.serving.served import SAMPLES, soon

FLAC = (SAMPLES / f"{CLIPS[0]}.flac").read_bytes()


@pytest.fixture(scope="module")
def server(engine: Dispatcher) -> Iterator[Live]:
    with live(engine) as server:
        yield server


@pytest.fixture(scope="module")
def digits() -> Model:
    return load("digits")


@pytest.fixture
def client(server: Live) -> Iterator[openai.OpenAI]:
    base_url = f"http://{server.address}/v1"
    with openai.OpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
        yield client
    server.wait_until_free()


def post(server: Live, **fields: Any) -> httpx.Response:
    """A form as it is, for what the client would not send."""
    files = fields.pop("files", {"file": ("a.flac", FLAC)})
    data = {"model": "digits"} | fields
    url = f"http://{server.address}/v1/audio/transcriptions"
    return httpx.post(url, data=data, files=files, timeout=60)


@pytest.mark.parametrize("name", [*CLIPS, "flite-slt-41985"])
def test_json_is_the_offline_text(client: openai.OpenAI, digits: Model, name: str) -> None:
    path = SAMPLES / f"{name}.flac"
    told = client.audio.transcriptions.create(file=path, model="digits")
    assert isinstance(told, Transcription)
    assert told.text == digits.transcribe(*clip(name)).text
    assert told.text
    assert told.usage is not None
    assert told.usage.type == "duration"
    assert told.usage.seconds == pytest.approx(len(clip(name)[0]) / clip(name)[1], abs=1e-3)


def heard(digits: Model) -> tuple[bytes, str, tuple[Word, ...]]:
    """A recording of two sentences, its text and its words."""
    pcm = spoken(*CLIPS[:2], pause_s=1.5)
    event = digits.transcribe(pcm)
    return wav(pcm, 8000), event.text, event.words


def test_plain_text_and_subtitles(client: openai.OpenAI, digits: Model) -> None:
    file, text, words = heard(digits)
    create = client.audio.transcriptions.create
    assert create(file=("a.wav", file), model="digits", response_format="text") == f"{text}\n"
    assert create(file=("a.wav", file), model="digits", response_format="srt") == "".join(
        srt(words)
    )
    assert create(file=("a.wav", file), model="digits", response_format="vtt") == "".join(
        vtt(words)
    )
    assert len(list(cues(words))) == 2


@pytest.mark.parametrize("asked", [(), ("word",), ("segment",), ("word", "segment")])
def test_verbose_json(client: openai.OpenAI, digits: Model, asked: tuple[Any, ...]) -> None:
    file, text, words = heard(digits)
    told = client.audio.transcriptions.create(
        file=("a.wav", file),
        model="digits",
        response_format="verbose_json",
        language="en",
        **({"timestamp_granularities": list(asked)} if asked else {}),
    )
    TranscriptionVerbose.model_validate(told.to_dict(), strict=True)
    assert (told.text, told.language) == (text, "en")
    assert told.duration == pytest.approx(
        digits.transcribe(spoken(*CLIPS[:2], pause_s=1.5)).audio_ms / 1000, abs=2e-3
    )
    if "word" in asked:
        assert told.words is not None
        assert [(word.word, word.start, word.end) for word in told.words] == [
            (
                word.text,
                pytest.approx(word.start_ms / 1000, abs=6e-4),
                pytest.approx(word.end_ms / 1000, abs=6e-4),
            )
            for word in words
        ]
    else:
        assert told.words is None
    if "segment" in asked or not asked:
        assert told.segments is not None
        assert " ".join(segment.text for segment in told.segments) == text
        assert [segment.id for segment in told.segments] == [0, 1]
        assert all(segment.avg_logprob <= 0 for segment in told.segments)
    else:
        assert told.segments is None


def test_streamed_deltas_append_to_the_text(client: openai.OpenAI, digits: Model) -> None:
    file, text, _ = heard(digits)
    *deltas, done = client.audio.transcriptions.create(
        file=("a.wav", file), model="digits", stream=True
    )
    assert isinstance(done, TranscriptionTextDoneEvent)
    assert done.text == text
    assert all(isinstance(delta, TranscriptionTextDeltaEvent) for delta in deltas)
    assert len(deltas) > 1
    assert "".join(delta.delta for delta in deltas) == text


def test_silence_and_nothing_at_all_are_no_text(client: openai.OpenAI) -> None:
    for samples in (0, 1, 4000):
        file = ("a.wav", wav(np.zeros(samples, np.int16), 8000))
        create = client.audio.transcriptions.create
        assert create(file=file, model="digits").text == ""
        assert create(file=file, model="digits", response_format="srt") == ""
        (done,) = create(file=file, model="digits", stream=True)
        assert done.text == ""
        told = create(file=file, model="digits", response_format="verbose_json")
        assert (told.text, told.segments) == ("", [])


def test_the_asynchronous_client_many_at_once(server: Live, digits: Model) -> None:
    """More recordings than have their turn at once."""

    async def transcribed(client: openai.AsyncOpenAI, name: str) -> str:
        file = SAMPLES / f"{name}.flac"
        return (await client.audio.transcriptions.create(file=file, model="digits")).text

    async def all_at_once() -> list[str]:
        base_url = f"http://{server.address}/v1"
        async with openai.AsyncOpenAI(base_url=base_url, api_key="none") as client:
            names = [CLIPS[i % 3] for i in range(9)]
            return await asyncio.gather(*(transcribed(client, name) for name in names))

    expected = [digits.transcribe(*clip(name)).text for name in CLIPS]
    assert asyncio.run(all_at_once()) == expected * 3


@pytest.mark.parametrize(
    ("kind", "subtype", "rate", "channels"),
    [("WAV", "PCM_24", 44100, 2), ("WAV", "ULAW", 8000, 1), ("OGG", "VORBIS", 16000, 1)],
)
def test_other_kinds_of_files(
    client: openai.OpenAI,
    digits: Model,
    tmp_path: Any,
    kind: str,
    subtype: str,
    rate: int,
    channels: int,
) -> None:
    pcm = spoken(CLIPS[0], pause_s=0.1, rate=rate)
    path = tmp_path / f"a.{kind.lower()}"
    soundfile.write(path, np.stack([pcm] * channels, axis=1), rate, format=kind, subtype=subtype)
    samples, its_rate = soundfile.read(path, dtype="float32", always_2d=True)
    told = client.audio.transcriptions.create(file=path, model="digits")
    assert told.text == digits.transcribe(samples.mean(axis=1, dtype=np.float32), its_rate).text
    assert told.text


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "empty"),
        (b"RIFF", "RIFF"),
        (b"#!/bin/sh\necho seven\n", "text, '#!/bin/sh"),
        (b"\x1aE\xdf\xa3" + bytes(500), "WebM"),
        (b"\0\0\0\x18ftypM4A " + bytes(500), "m4a"),
        (FLAC[:2000], "damaged or was cut off"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_no_recording_is_named(
    client: openai.OpenAI, content: bytes, found: str, stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError, match=re.escape(found)):
        list(
            client.audio.transcriptions.create(
                file=("a.wav", content), model="digits", stream=stream
            )
        )


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["digits"]
    assert client.models.retrieve("digits").id == "digits"
    assert client.models.retrieve("whisper-1").id == "whisper-1"
    for name in ("tts-1", "org/model", "gpt-4o-transcribe-diarize"):
        with pytest.raises(openai.NotFoundError, match="digits"):
            client.models.retrieve(name)


@pytest.mark.parametrize("name", ["whisper-1", "gpt-4o-transcribe", "gpt-transcribe"])
def test_openais_names_stand_for_the_first_model(
    client: openai.OpenAI, digits: Model, name: Any
) -> None:
    told = client.audio.transcriptions.create(file=("a.flac", FLAC), model=name)
    assert told.text == digits.transcribe(*clip(CLIPS[0])).text


def test_options_that_ask_for_nothing_are_accepted(client: openai.OpenAI, digits: Model) -> None:
    told = client.audio.transcriptions.create(
        file=("a.flac", FLAC),
        model="digits",
        language="ko",
        prompt="",
        temperature=0,
        include=[],
        chunking_strategy="auto",
    )
    assert told.text == digits.transcribe(*clip(CLIPS[0])).text


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"model": "tts-1"}, 404, "model"),
        ({"model": "gpt-4o-transcribe-diarize"}, 404, "model"),
        ({"model": ""}, 400, "model"),
        ({"response_format": "diarized_json"}, 400, "response_format"),
        ({"response_format": "xml"}, 400, "response_format"),
        ({"stream": "perhaps"}, 400, "stream"),
        ({"stream": "true", "response_format": "srt"}, 400, "stream"),
        ({"temperature": "warm"}, 400, "temperature"),
        ({"temperature": "nan"}, 400, "temperature"),
        ({"temperature": "2"}, 400, "temperature"),
        ({"temperature": "0.2"}, 400, "temperature"),
        ({"prompt": "digits, please"}, 400, "prompt"),
        ({"language": "Klingon!"}, 400, "language"),
        ({"languages[]": "en"}, 400, "languages"),
        ({"keywords[]": "seven"}, 400, "keywords"),
        ({"include[]": "logprobs"}, 400, "include"),
        ({"chunking_strategy": '{"type": "server_vad"}'}, 400, "chunking_strategy"),
        ({"known_speaker_names[]": "agent"}, 400, "known_speaker_names"),
        ({"hotwords": "seven"}, 400, "hotwords"),
        ({"response_format": ["json", "text"]}, 400, "response_format"),
        ({"timestamp_granularities[]": "word"}, 400, "timestamp_granularities"),
        (
            {"timestamp_granularities[]": "phoneme", "response_format": "verbose_json"},
            400,
            "timestamp_granularities",
        ),
        ({"files": {"recording": ("a.flac", FLAC)}}, 400, "file"),
        ({"files": {"file": (None, "seven")}}, 400, "file"),
        ({"files": {"file": ("a.flac", FLAC), "more": ("b.flac", FLAC)}}, 400, None),
        ({f"x{i}": "1" for i in range(200)}, 400, None),
        ({"prompt": "x" * 2_000_000}, 400, None),
    ],
)
def test_a_form_that_cannot_be_done_is_refused_in_openais_shape(
    server: Live, fields: dict[str, Any], status: int, param: str | None
) -> None:
    reply = post(server, **fields)
    assert reply.status_code == status
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert server.is_alive()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b'{"model": "digits"}'),
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\nno name\r\n--b--"),
        ("multipart/form-data; boundary=b", b"\xff" * 1000),
        ("text/plain", b""),
    ],
)
def test_a_body_that_is_no_form_is_refused(server: Live, kind: str, body: bytes) -> None:
    url = f"http://{server.address}/v1/audio/transcriptions"
    reply = httpx.post(url, content=body, headers={"content-type": kind})
    assert reply.status_code == 400
    assert reply.json()["error"]["type"] == "invalid_request_error"
    assert httpx.get(url).status_code == 405


def test_an_upload_may_be_so_large_and_no_larger(engine: Dispatcher) -> None:
    with (
        live(engine, max_file_bytes=100_000) as server,
        openai.OpenAI(
            base_url=f"http://{server.address}/v1", api_key="none", max_retries=0
        ) as client,
    ):
        create = client.audio.transcriptions.create
        assert create(file=("a.wav", wav(np.zeros(49_000, np.int16), 8000)), model="digits")
        with pytest.raises(openai.APIStatusError) as refusal:
            create(file=("a.wav", wav(np.zeros(150_000, np.int16), 8000)), model="digits")
        assert refusal.value.status_code == 413

        def endless() -> Iterator[bytes]:
            yield b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
            for _ in range(50):
                yield bytes(10_000)

        reply = httpx.post(  # nobody says how long it is
            f"http://{server.address}/v1/audio/transcriptions",
            content=endless(),
            headers={"content-type": "multipart/form-data; boundary=b"},
        )
        assert reply.status_code == 413
        assert reply.json()["error"]["code"] == "too_large"


def test_a_recording_may_be_so_long_and_no_longer(engine: Dispatcher, tmp_path: Any) -> None:
    """What is small as a file may be long as sound: it is refused on the way."""
    path = tmp_path / "long.flac"
    soundfile.write(path, np.zeros(8000 * 600, np.int16), 8000)
    assert path.stat().st_size < 100_000
    with live(engine, max_stream_s=5.0) as server:
        content = path.read_bytes()
        reply = post(server, files={"file": ("a.flac", content)})
        assert (reply.status_code, reply.json()["error"]["code"]) == (413, "too_long")
        reply = post(server, files={"file": ("a.flac", content)}, stream="true")
        assert "too_long" in reply.text
        server.wait_until_free()


def test_the_key_is_wanted(engine: Dispatcher) -> None:
    from nearfuture.serving.settings import ServerSettings

    with live(engine, settings=ServerSettings(api_key="open sesame")) as server:
        base_url = f"http://{server.address}/v1"
        for key, wanted in (("open sesame", False), ("none", True)):
            with openai.OpenAI(base_url=base_url, api_key=key, max_retries=0) as client:
                if wanted:
                    with pytest.raises(openai.AuthenticationError):
                        client.audio.transcriptions.create(file=("a.flac", FLAC), model="digits")
                    with pytest.raises(openai.AuthenticationError):
                        client.models.list()
                else:
                    assert client.audio.transcriptions.create(
                        file=("a.flac", FLAC), model="digits"
                    ).text


def test_no_room_is_reported_as_such(engine: Dispatcher) -> None:
    with live(engine, max_streams=1) as server, server.served.connect("/vosk") as other:
        other.send(bytes(3200))
        other.recv(timeout=30)
        reply = post(server)
        assert reply.status_code == 503
        assert reply.json()["error"]["code"] == "busy"
        assert reply.json()["error"]["type"] == "server_error"
        with (
            openai.OpenAI(
                base_url=f"http://{server.address}/v1", api_key="none", max_retries=0
            ) as client,
            pytest.raises(openai.InternalServerError),
        ):
            client.audio.transcriptions.create(file=("a.flac", FLAC), model="digits")


@pytest.mark.parametrize("stream", [False, True])
def test_who_leaves_gives_back_the_place(server: Live, stream: bool) -> None:
    """A long recording, and a client that goes away while it is heard."""
    form = httpx.Request(
        "POST",
        f"http://{server.address}/v1/audio/transcriptions",
        data={"model": "digits", "stream": str(stream).lower()},
        files={"file": ("a.wav", wav(np.zeros(8000 * 1200, np.int16), 8000))},
    )
    head = f"POST {form.url.path} HTTP/1.1\r\nhost: localhost\r\n".encode()
    for name, value in form.headers.items():
        if name != "host":
            head += f"{name}: {value}\r\n".encode()
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head + b"\r\n" + form.read())
        assert soon(lambda: server.service.streams == 1, 60)
    assert soon(lambda: server.service.streams == 0, 10)


def test_a_live_stream_goes_on_beside_long_files(server: Live, digits: Model) -> None:
    """Lockstep replies come, and are exact, while files are being heard."""
    long = wav(np.zeros(8000 * 60, np.int16), 8000)

    async def beside() -> tuple[list[str], list[int]]:
        url = f"http://{server.address}/v1/audio/transcriptions"
        async with httpx.AsyncClient(timeout=120) as client:
            files = [
                asyncio.create_task(
                    client.post(url, data={"model": "digits"}, files={"file": ("a.wav", long)})
                )
                for _ in range(2)
            ]
            assert await asyncio.to_thread(soon, lambda: server.service.streams == 2, 60)
            live_text = await asyncio.to_thread(lockstep)
            assert not any(file.done() for file in files)  # 2 s need not wait for 120 s
            return live_text, [(await file).status_code for file in files]

    def lockstep() -> list[str]:
        pcm = as_int16(clip(CLIPS[0])[0]).tobytes()
        with server.served.connect("/vosk") as websocket:
            for at in range(0, len(pcm), 3200):
                websocket.send(pcm[at : at + 3200])
                websocket.recv(timeout=30)
            websocket.send('{"eof": 1}')
            return [json.loads(websocket.recv(timeout=30))["text"]]

    texts, statuses = asyncio.run(beside())
    assert texts == [digits.transcribe(as_int16(clip(CLIPS[0])[0])).text]
    assert statuses == [200, 200]


def test_a_wrong_key_is_reported_as_openai_reports_it(engine: Dispatcher) -> None:
    with (
        live(engine, settings=ServerSettings(api_key="sesame")) as server,
        openai.OpenAI(base_url=f"http://{server.address}/v1", api_key="no", max_retries=0) as other,
    ):
        with pytest.raises(openai.AuthenticationError) as refused:
            other.models.list()
        assert (refused.value.code, refused.value.param) == ("unauthorized", None)
        assert refused.value.type == "invalid_request_error"
        assert "Authorization: Bearer" in str(refused.value)


@pytest.mark.parametrize(
    "fields", [{"prompt": "a" * 20_000}, {f"x{number}": "" for number in range(40)}]
)
def test_a_form_is_no_place_to_keep_memory_busy(server: Live, fields: dict[str, str]) -> None:
    """What is no file stays in memory: a megabyte for each of a hundred fields was a hundred."""
    reply = post(server, **fields)
    assert reply.status_code == 400
    assert (
        "exceeded maximum" in reply.json()["error"]["message"].lower() or "Too many" in reply.text
    )


def test_a_recording_waits_on_disk(server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many may wait as there may be connections."""
    files: list[Any] = []
    of = TranscriptionRequest.of.__func__  # type: ignore[attr-defined]

    def seen(cls: type[TranscriptionRequest], form: FormData) -> TranscriptionRequest:
        upload = form["file"]
        assert isinstance(upload, UploadFile)
        files.append(upload.file)
        asked: TranscriptionRequest = of(cls, form)
        assert files[-1]._rolled
        return asked

    monkeypatch.setattr(TranscriptionRequest, "of", classmethod(seen))
    pcm = spoken(CLIPS[0], pause_s=4.0)
    assert post(server, files={"file": ("a.wav", wav(pcm, 8000))}).status_code == 200
    assert len(files) == 1


def test_a_body_that_is_no_form_is_named(server: Live) -> None:
    url = f"http://{server.address}/v1/audio/transcriptions"
    reply = httpx.post(url, data={"model": "digits"}, timeout=60)
    assert reply.status_code == 400
    assert "multipart/form-data" in reply.json()["error"]["message"]
