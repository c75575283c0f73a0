"""OpenAI's Realtime protocol, driven by OpenAI's own client as it is."""

import asyncio
import base64
import io
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import openai
import pytest
import soundfile
import websockets
from numpy.typing import NDArray
from openai.resources.realtime.realtime import RealtimeConnection
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter
from websockets.sync.client import ClientConnection, connect

from nearfuture.runtime import Dispatcher, Model, load
from nearfuture.serving.settings import ServerSettings
from tests.serving.live import CLIPS, Live, clip, live, spoken
from tests.serving.served import reset, soon

# The client's own, with a newer websockets than it was made for.
pytestmark = pytest.mark.filterwarnings(
    r"ignore:connect\(\) must be used as a context manager:DeprecationWarning"
)
EVENTS: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
TRANSCRIPTION = {"intent": "transcription"}


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


def wanted(kind: str = "audio/pcm", silence_ms: int | None = 800) -> Any:
    turns = silence_ms and {"type": "server_vad", "silence_duration_ms": silence_ms}
    form = {"type": kind, "rate": 24000} if kind == "audio/pcm" else {"type": kind}
    heard = {"format": form, "turn_detection": turns, "transcription": {"model": "digits"}}
    return {"type": "transcription", "audio": {"input": heard}}


def append(connection: RealtimeConnection, data: bytes, size: int = 9600) -> None:
    for at in range(0, len(data), size):
        audio = base64.b64encode(data[at : at + size]).decode()
        connection.input_audio_buffer.append(audio=audio)


def until(connection: RealtimeConnection, kind: str, count: int = 1) -> list[Any]:
    """The events up to the n-th of a kind, all of which the official types must read."""
    events = []
    while count:
        data = json.loads(connection.recv_bytes())
        events.append(EVENTS.validate_python(data, strict=True))
        assert data["type"] == kind or data["type"] != "error", data
        count -= data["type"].endswith(kind)
    return events


def completed(events: list[Any]) -> list[str]:
    return [event.transcript for event in events if event.type.endswith("transcription.completed")]


def refuse_deltas_that_lie(events: list[Any]) -> None:
    texts: dict[str, str] = {}
    for event in events:
        if event.type.endswith("transcription.delta"):
            texts[event.item_id] = texts.get(event.item_id, "") + event.delta
        if event.type.endswith("transcription.completed"):
            assert texts.get(event.item_id, "") == event.transcript


def test_committed_by_the_client(client: openai.OpenAI, digits: Model) -> None:
    pcm = spoken(CLIPS[0], pause_s=0.1, rate=24000)
    with client.realtime.connect(extra_query=TRANSCRIPTION) as connection:
        (created,) = until(connection, "session.created")
        assert created.session.type == "transcription"
        connection.session.update(session=wanted(silence_ms=None))
        (updated,) = until(connection, "session.updated")
        assert updated.session.audio.input.turn_detection is None
        append(connection, pcm.tobytes())
        connection.input_audio_buffer.commit()
        events = until(connection, "transcription.completed")
        assert completed(events) == [digits.transcribe(pcm, 24000).text]
        assert completed(events) != [""]
        refuse_deltas_that_lie(events)
        kinds = [event.type for event in events]
        assert kinds.count("input_audio_buffer.committed") == 1
        assert not [kind for kind in kinds if "speech" in kind]
        assert len({event.event_id for event in (created, updated, *events)}) == len(events) + 2


def test_each_commit_is_a_recording_of_its_own(client: openai.OpenAI, digits: Model) -> None:
    """The next one is appended before the first is answered; one has no sound in it."""
    parts = [spoken(name, pause_s=0.0, rate=24000) for name in CLIPS]
    parts.insert(1, np.zeros(2400, np.int16))
    with client.realtime.connect(extra_query=TRANSCRIPTION) as connection:
        connection.session.update(session=wanted(silence_ms=None))
        for part in parts:
            append(connection, part.tobytes(), 9601)  # half a sample is held
            connection.input_audio_buffer.commit()
        events = until(connection, "transcription.completed", 4)
    assert completed(events) == [digits.transcribe(part, 24000).text for part in parts]
    committed = [event for event in events if event.type == "input_audio_buffer.committed"]
    assert [event.previous_item_id for event in committed] == [
        None,
        *(event.item_id for event in committed[:-1]),
    ]


def test_ended_by_the_server(client: openai.OpenAI, digits: Model) -> None:
    pcm = spoken(*CLIPS[:2], pause_s=1.8, rate=24000)
    with client.realtime.connect(extra_query=TRANSCRIPTION) as connection:
        connection.session.update(session=wanted(silence_ms=700))
        append(connection, pcm.tobytes())
        events = until(connection, "transcription.completed", 2)
    assert " ".join(completed(events)) == digits.transcribe(pcm, 24000).text
    refuse_deltas_that_lie(events)
    started = [event for event in events if event.type.endswith("speech_started")]
    stopped = [event for event in events if event.type.endswith("speech_stopped")]
    assert len(started) == len(stopped) == 2
    for start, stop in zip(started, stopped, strict=True):
        assert start.item_id == stop.item_id
        assert stop.audio_end_ms - start.audio_start_ms >= 700
    assert {"conversation.item.added", "conversation.item.done"} <= {e.type for e in events}


def test_a_commit_at_the_end_of_what_the_server_divides(
    client: openai.OpenAI, digits: Model
) -> None:
    pcm = spoken(*CLIPS[:2], pause_s=1.2, rate=24000)[: -24000 * 12 // 10]
    with client.realtime.connect(extra_query=TRANSCRIPTION) as connection:
        connection.session.update(session=wanted(silence_ms=700))
        append(connection, pcm.tobytes())
        connection.input_audio_buffer.commit()
        events = until(connection, "transcription.completed", 2)
    assert " ".join(completed(events)) == digits.transcribe(pcm, 24000).text


@pytest.mark.parametrize(("kind", "subtype"), [("audio/pcmu", "ULAW"), ("audio/pcma", "ALAW")])
def test_telephony(client: openai.OpenAI, digits: Model, kind: str, subtype: str) -> None:
    pcm = spoken(CLIPS[1], pause_s=0.1)
    file = io.BytesIO()
    soundfile.write(file, pcm, 8000, format="RAW", subtype=subtype)
    coded = file.getvalue()
    heard, _ = soundfile.read(
        io.BytesIO(coded), dtype="int16", format="RAW", subtype=subtype, samplerate=8000, channels=1
    )
    with client.realtime.connect(extra_query=TRANSCRIPTION) as connection:
        connection.session.update(session=wanted(kind, silence_ms=None))
        append(connection, coded, 777)
        connection.input_audio_buffer.commit()
        events = until(connection, "transcription.completed")
    assert completed(events) == [digits.transcribe(heard, 8000).text]
    assert completed(events) != [""]


def test_clear_forgets_what_was_not_committed(client: openai.OpenAI, digits: Model) -> None:
    first, second = (spoken(name, pause_s=0.0, rate=24000) for name in CLIPS[:2])
    with client.realtime.connect(extra_query=TRANSCRIPTION) as connection:
        connection.session.update(session=wanted(silence_ms=None))
        append(connection, first.tobytes())
        connection.input_audio_buffer.clear()
        until(connection, "input_audio_buffer.cleared")
        connection.session.update(session=wanted("audio/pcm", silence_ms=None))  # again allowed
        append(connection, second.tobytes())
        connection.input_audio_buffer.commit()
        events = until(connection, "transcription.completed")
        connection.input_audio_buffer.clear()
        connection.input_audio_buffer.clear()
        until(connection, "input_audio_buffer.cleared", 2)
    assert completed(events) == [digits.transcribe(second, 24000).text]


def test_the_asynchronous_client_and_its_handlers(server: Live, digits: Model) -> None:
    async def transcribed(name: str) -> str:
        base_url = f"http://{server.address}/v1"
        async with (
            openai.AsyncOpenAI(base_url=base_url, api_key="none") as client,
            client.realtime.connect(extra_query=TRANSCRIPTION) as connection,
        ):
            await connection.session.update(session=wanted(silence_ms=None))
            pcm = spoken(name, pause_s=0.0, rate=24000)
            for at in range(0, len(pcm), 2400):
                audio = base64.b64encode(pcm[at : at + 2400].tobytes()).decode()
                await connection.input_audio_buffer.append(audio=audio)
                await asyncio.sleep(0)
            await connection.input_audio_buffer.commit()
            async for event in connection:
                if event.type == "conversation.item.input_audio_transcription.completed":
                    return event.transcript
        raise AssertionError("the connection ended")

    async def all_at_once() -> list[str]:
        return await asyncio.gather(*(transcribed(name) for name in CLIPS * 2))

    expected = [
        digits.transcribe(spoken(name, pause_s=0.0, rate=24000), 24000).text for name in CLIPS
    ]
    assert asyncio.run(all_at_once()) == expected * 2


def events_of(websocket: ClientConnection, *messages: Any) -> list[dict[str, Any]]:
    """One event for each message that has one answer."""
    events = []
    for message in messages:
        websocket.send(message if isinstance(message, str | bytes) else json.dumps(message))
        events.append(json.loads(websocket.recv(timeout=30)))
    return events


def test_the_older_protocol(server: Live, digits: Model) -> None:
    """As clients of 2024 and 2025 speak it."""
    pcm = spoken(CLIPS[0], pause_s=0.1)
    file = io.BytesIO()
    soundfile.write(file, pcm, 8000, format="RAW", subtype="ULAW")
    heard, _ = soundfile.read(
        io.BytesIO(file.getvalue()),
        dtype="int16",
        format="RAW",
        subtype="ULAW",
        samplerate=8000,
        channels=1,
    )
    session = {
        "input_audio_format": "g711_ulaw",
        "input_audio_transcription": {"model": "gpt-4o-transcribe", "language": "en"},
        "turn_detection": None,
        "input_audio_noise_reduction": None,
    }
    audio = base64.b64encode(file.getvalue()).decode()
    url = f"ws://{server.address}/v1/realtime?intent=transcription"
    headers = {"OpenAI-Beta": "realtime=v1", "Authorization": "Bearer none"}
    with connect(url, additional_headers=headers) as websocket:
        assert json.loads(websocket.recv())["type"] == "transcription_session.created"
        (updated,) = events_of(
            websocket, {"type": "transcription_session.update", "session": session}
        )
        assert updated["type"] == "transcription_session.updated"
        assert updated["session"]["input_audio_format"] == "g711_ulaw"
        told = {"model": "digits", "language": "en"}
        assert updated["session"]["input_audio_transcription"] == told
        assert updated["session"]["turn_detection"] is None
        websocket.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
        websocket.send(json.dumps({"type": "input_audio_buffer.commit"}))
        events = []
        while not events or not events[-1]["type"].endswith("completed"):
            events.append(json.loads(websocket.recv(timeout=30)))
    assert events[-1]["transcript"] == digits.transcribe(heard, 8000).text
    assert "conversation.item.created" in {event["type"] for event in events}
    assert not {event["type"] for event in events} & {"conversation.item.added"}


@pytest.fixture
def raw(server: Live) -> Iterator[ClientConnection]:
    with connect(f"ws://{server.address}/v1/realtime") as websocket:
        assert json.loads(websocket.recv(timeout=30))["type"] == "session.created"
        yield websocket
    server.wait_until_free()


PLAIN = {"type": "input_audio_buffer.append", "audio": base64.b64encode(bytes(4800)).decode()}


@pytest.mark.parametrize(
    ("message", "param", "code"),
    [
        ("{", None, "bad_message"),
        ("[1, 2]", None, "bad_message"),
        ("[" * 50_000, None, "bad_message"),
        (b"\x00\x01", None, "bad_message"),
        ({}, "type", "invalid_value"),
        ({"type": None}, "type", "invalid_value"),
        ({"type": ["input_audio_buffer.append"]}, "type", "invalid_value"),
        ({"type": "response.create"}, "type", "invalid_value"),
        ({"type": "conversation.item.create", "item": {}}, "type", "invalid_value"),
        ({"type": "x" * 9000}, "type", "invalid_value"),
        ({"type": "input_audio_buffer.append"}, "audio", "invalid"),
        ({"type": "input_audio_buffer.append", "audio": 7}, "audio", "invalid"),
        ({"type": "input_audio_buffer.append", "audio": "???"}, "audio", "invalid"),
        ({"type": "input_audio_buffer.append", "audio": "AAA"}, "audio", "invalid"),
        ({"type": "input_audio_buffer.append", "audio": "é"}, "audio", "invalid"),
        ({"type": "input_audio_buffer.commit"}, None, "input_audio_buffer_commit_empty"),
        (
            {"type": "session.update", "session": {"type": "realtime"}},
            "session.type",
            "unsupported_value",
        ),
        ({"type": "session.update", "session": 3}, "session", "invalid"),
        (
            {
                "type": "session.update",
                "session": {"audio": {"input": {"transcription": {"model": "tts-1"}}}},
            },
            "model",
            "model_not_found",
        ),
    ],
)
def test_a_mistake_is_reported_and_the_session_goes_on(
    raw: ClientConnection, message: Any, param: str | None, code: str | None
) -> None:
    if isinstance(message, dict):
        message = {**message, "event_id": "mine"}
    (told,) = events_of(raw, message)
    EVENTS.validate_python(told, strict=True)
    assert told["type"] == "error"
    error = told["error"]
    assert (error["param"], error["code"]) == (param, code)
    assert error["type"] == "invalid_request_error"
    assert error["event_id"] == ("mine" if isinstance(message, dict) else None)
    raw.send(json.dumps(PLAIN))
    raw.send(json.dumps({"type": "input_audio_buffer.commit"}))
    assert json.loads(raw.recv(timeout=30))["type"] == "input_audio_buffer.committed"


def test_commit_twice_is_an_error_of_the_second(raw: ClientConnection) -> None:
    commit = {"type": "input_audio_buffer.commit"}
    raw.send(json.dumps(PLAIN))
    raw.send(json.dumps(commit))
    raw.send(json.dumps({**commit, "event_id": "second"}))
    events = [json.loads(raw.recv(timeout=30)) for _ in range(5)]
    assert [event["type"] for event in events][-2:] == [
        "conversation.item.input_audio_transcription.completed",
        "error",
    ]
    assert events[-1]["error"]["event_id"] == "second"


def test_settings_stay_while_there_is_audio(raw: ClientConnection) -> None:
    update = {"type": "session.update", "session": wanted("audio/pcmu")}
    same = {"type": "session.update", "session": {"type": "transcription"}}
    raw.send(json.dumps(PLAIN))
    (refused, accepted) = events_of(raw, update, same)
    assert (refused["type"], refused["error"]["param"]) == ("error", "session")
    assert accepted["session"]["audio"]["input"]["format"] == {"type": "audio/pcm", "rate": 24000}
    (cleared, updated) = events_of(raw, {"type": "input_audio_buffer.clear"}, update)
    assert cleared["type"] == "input_audio_buffer.cleared"
    assert updated["session"]["audio"]["input"]["format"] == {"type": "audio/pcmu"}


@pytest.mark.parametrize("name", ["FLAC", "MP3", "AIFF", "AU"])
def test_a_file_is_refused_by_name(raw: ClientConnection, name: str) -> None:
    file = io.BytesIO()
    soundfile.write(file, clip(CLIPS[0])[0], 8000, format=name)
    audio = base64.b64encode(file.getvalue()[:4000]).decode()
    (told,) = events_of(raw, {"type": "input_audio_buffer.append", "audio": audio})
    assert f"this audio is {name}," in told["error"]["message"]
    with pytest.raises(websockets.ConnectionClosedError) as closed:
        raw.recv(timeout=30)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1007


def test_samples_that_are_no_numbers_are_reported_as_such(raw: ClientConnection) -> None:
    file = io.BytesIO()
    silence = np.full(4800, np.nan, np.float32)
    soundfile.write(file, silence, 24000, format="WAV", subtype="FLOAT")
    audio = base64.b64encode(file.getvalue()).decode()
    (told,) = events_of(raw, {"type": "input_audio_buffer.append", "audio": audio})
    assert told["error"]["code"] == "bad_audio"
    with pytest.raises(websockets.ConnectionClosedError) as closed:
        raw.recv(timeout=30)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1007


def test_ten_megabytes_in_one_message_are_too_many(server: Live, raw: ClientConnection) -> None:
    raw.send(json.dumps(PLAIN))
    with suppress(websockets.ConnectionClosed):
        raw.send(json.dumps({**PLAIN, "audio": "A" * 10_000_000}))
    with pytest.raises(websockets.ConnectionClosedError) as closed:
        raw.recv(timeout=30)
    assert closed.value.rcvd is None or closed.value.rcvd.code == 1009
    assert server.is_alive()


@pytest.mark.parametrize(
    "last",
    [
        lambda raw: None,
        lambda raw: raw.send(json.dumps({"type": "input_audio_buffer.commit"})),
        lambda raw: raw.send(json.dumps({"type": "input_audio_buffer.clear"})),
    ],
    ids=["in a word", "after commit", "after clear"],
)
def test_who_leaves_gives_back_the_place(
    server: Live, raw: ClientConnection, last: Callable[[ClientConnection], None]
) -> None:
    pcm = spoken(CLIPS[0], pause_s=0.0, rate=24000)[:20_000]
    for _ in range(3):
        raw.send(json.dumps({**PLAIN, "audio": base64.b64encode(pcm.tobytes()).decode()}))
    assert soon(lambda: server.service.streams == 1)
    last(raw)
    reset(raw)
    server.wait_until_free()


def test_no_room_is_reported_as_such(engine: Dispatcher) -> None:
    with live(engine, max_streams=1) as server, server.served.connect("/vosk") as other:
        other.send(bytes(3200))
        other.recv(timeout=30)
        with connect(f"ws://{server.address}/v1/realtime") as websocket:
            websocket.recv(timeout=30)
            (told,) = events_of(websocket, PLAIN)
            assert (told["error"]["code"], told["error"]["type"]) == ("busy", "server_error")
            with pytest.raises(websockets.ConnectionClosedError) as closed:
                websocket.recv(timeout=30)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1013


def test_the_key_is_wanted(engine: Dispatcher) -> None:
    """In a header; or, as browsers must, in the name of a subprotocol."""
    with live(engine, settings=ServerSettings(api_key="sesame")) as server:
        url = f"ws://{server.address}/v1/realtime"
        with pytest.raises(websockets.InvalidStatus, match="401"), connect(url):
            pass
        with connect(url, additional_headers={"Authorization": "Bearer sesame"}) as websocket:
            assert json.loads(websocket.recv(timeout=30))["type"] == "session.created"
        offered = ["realtime", "openai-insecure-api-key.sesame"]
        with connect(url, subprotocols=offered) as websocket:  # type: ignore[arg-type]
            assert websocket.subprotocol == "realtime"
            assert json.loads(websocket.recv(timeout=30))["type"] == "session.created"


def test_a_clear_right_behind_the_first_audio(server: Live, raw: ClientConnection) -> None:
    """In one packet: what follows the audio has its first turn when that is forgotten."""
    for _ in range(30):
        raw.send(json.dumps({**PLAIN, "audio": base64.b64encode(bytes(4)).decode()}))
        raw.send('{"type": "input_audio_buffer.clear"}')
    for _ in range(30):
        assert json.loads(raw.recv(timeout=30))["type"] == "input_audio_buffer.cleared"
    raw.close()
    server.wait_until_free()


@pytest.mark.parametrize("identifier", ["7", "NaN", "[[1]]", '"\\ud800"', f'"{"x" * 9000}"'])
def test_a_name_of_an_event_that_is_none(raw: ClientConnection, identifier: str) -> None:
    raw.send(f'{{"type": "x", "event_id": {identifier}}}')
    text = raw.recv(timeout=30)
    assert len(text) < 2000

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    told = json.loads(text, parse_constant=refuse)
    assert told["error"]["code"] == "invalid_value"


def test_a_server_that_stops_while_nothing_was_said_since_the_commit(engine: Dispatcher) -> None:
    """The stream of the engine has ended then, and the session has no last text to give."""
    pcm = spoken(CLIPS[0], pause_s=0.1, rate=24000)
    with live(engine) as server, connect(f"ws://{server.address}/v1/realtime") as websocket:
        audio = base64.b64encode(pcm.tobytes()).decode()
        websocket.send(json.dumps({**PLAIN, "audio": audio}))
        websocket.send('{"type": "input_audio_buffer.commit"}')
        while not json.loads(websocket.recv(timeout=30))["type"].endswith("completed"):
            pass
        server.served.stop()
        with suppress(websockets.ConnectionClosed):
            while True:
                websocket.recv(timeout=30)
        assert websocket.protocol.close_code == 1012


def test_a_stream_that_was_committed_counts_as_finished(engine: Dispatcher) -> None:
    pcm = spoken(CLIPS[0], pause_s=0.1, rate=24000)
    append = json.dumps({**PLAIN, "audio": base64.b64encode(pcm.tobytes()).decode()})
    commit = '{"type": "input_audio_buffer.commit"}'
    update = json.dumps({"type": "session.update", "session": wanted(silence_ms=None)})
    for rest, finished in (((), "true"), ((append,), "false")):
        with live(engine) as server:
            with connect(f"ws://{server.address}/v1/realtime") as websocket:
                for message in (update, append, commit, *rest):
                    websocket.send(message)
                while not json.loads(websocket.recv(timeout=30))["type"].endswith("completed"):
                    pass
                if rest:
                    assert json.loads(websocket.recv(timeout=30))["type"].endswith("delta")
            server.wait_until_free()
            page = server.served.get("/metrics")[1].decode()
            assert f'ended_total{{complete="{finished}",model="digits"}} 1.0' in page


def test_a_server_that_stops_says_so(engine: Dispatcher, digits: Model) -> None:
    """What was said until then is told."""
    pcm: NDArray[np.int16] = spoken(CLIPS[0], pause_s=0.1, rate=24000)
    with live(engine) as server, connect(f"ws://{server.address}/v1/realtime") as websocket:
        websocket.recv(timeout=30)
        websocket.send(json.dumps({"type": "session.update", "session": wanted(silence_ms=None)}))
        websocket.recv(timeout=30)
        audio = base64.b64encode(pcm.tobytes()).decode()
        websocket.send(json.dumps({**PLAIN, "audio": audio}))
        assert soon(lambda: server.service.streams == 1)
        assert json.loads(websocket.recv(timeout=30))["type"].endswith("delta")
        server.served.stop()
        events = []
        with suppress(websockets.ConnectionClosed):
            while True:
                events.append(json.loads(websocket.recv(timeout=30)))
        assert websocket.protocol.close_code == 1012
    assert (events[-1]["type"], events[-1]["error"]["code"]) == ("error", "draining")
    assert events[-2]["transcript"] == digits.transcribe(pcm, 24000).text
