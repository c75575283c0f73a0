"""Clients that break off, do not read, send nonsense, or come in crowds: no one else notices."""

import asyncio
import base64
import errno
import io
import json
import logging
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from nearfuture.runtime import Dispatcher, Model, load
from nearfuture.serving import server, service
from nearfuture.serving.connection import Disconnected, WebSocketConnection
from nearfuture.serving.errors import RequestError
from nearfuture.serving.limits import ServerLimits
from nearfuture.serving.pcm import PcmReader
from nearfuture.serving.service import Service
from nearfuture.serving.settings import ServerSettings
from tests.serving.nonsense import CLOSE, TEXT, frame
from tests.serving.served import (
    Complaints,
    Samples,
    Served,
    cut_after,
    dispatcher,
    hello,
    no_complaints,
    receive,
    reset,
    running,
    said,
    send,
    soon,
    stream,
    transcript,
    until_the_end,
)

SPEECH = said("flite-slt-720", "flite-rms-991")


def still_works(served: Served, offline: Model) -> None:
    updates = stream(served, SPEECH, budget_ms=400)
    assert transcript(updates) == offline.transcribe(SPEECH).text


@pytest.mark.parametrize("heard", [0, 1, 4801, 9000])
def test_a_reset_in_the_middle_of_a_word_frees_the_place(
    served: Served, offline: Model, heard: int
) -> None:
    with served.connect() as client:
        hello(client)
        client.send(SPEECH.tobytes()[:heard])
        assert served.service.streams == 1
        reset(client)
        assert soon(lambda: served.service.streams == 0, 1.0)
    assert served.service.dispatcher().stats().streams == 0
    still_works(served, offline)


def test_leaving_before_hello_or_with_a_proper_goodbye(served: Served, offline: Model) -> None:
    with served.connect():
        pass
    with served.connect() as client:
        hello(client)
        client.send(bytes(999))
    assert soon(lambda: served.service.streams == 0, 1.0)
    still_works(served, offline)


def test_a_socket_that_says_nothing_or_nonsense(served: Served, offline: Model) -> None:
    silent = socket.create_connection(("127.0.0.1", served.port))
    for nonsense in (b"\x00" * 100, b"GET /stream HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", served.port)) as raw:
            raw.sendall(nonsense)
            raw.settimeout(10)
            assert b"400" in raw.recv(1000)[:20]
    still_works(served, offline)
    silent.close()


def test_a_slow_reader_misses_no_final_and_delays_nobody(served: Served, offline: Model) -> None:
    speech = said(*["flite-slt-720", "flite-rms-991"] * 6)
    with served.connect(max_queue=1) as client:
        hello(client, budget_ms=400)
        data = speech.tobytes()
        for at in range(0, len(data), 8000):
            client.send(data[at : at + 8000])
        send(client, "finish")
        still_works(served, offline)  # while this one reads nothing
        updates = until_the_end(client)
    assert transcript(updates) == offline.transcribe(speech).text
    assert sum(update["final"] for update in updates) >= 12


def test_who_reads_nothing_at_all_is_disconnected(engine: Dispatcher) -> None:
    class Stuck:
        async def send_text(self, text: str) -> None:
            await asyncio.Event().wait()

    async def main() -> None:
        service = Service({"digits": engine}, ServerSettings(limits=ServerLimits(idle_s=0.05)))
        connection = WebSocketConnection(Stuck(), service.limits)  # type: ignore[arg-type]
        with pytest.raises(RequestError, match=r"taken nothing for 0\.05 s"):
            await connection.send("?")
        await connection.close()  # would wait as long again

    asyncio.run(asyncio.wait_for(main(), 30))


def test_who_sends_nothing_is_notified_and_disconnected(engine: Dispatcher) -> None:
    with running(engine, idle_s=0.3) as served, served.connect() as client:
        hello(client)
        (error,) = until_the_end(client)
        assert (error["code"], client.protocol.close_code) == ("idle", 1008)


def test_who_waits_for_a_slow_server_is_not_idle(offline: Model) -> None:
    with dispatcher() as engine, running(engine, idle_s=0.5) as served:
        step, slow = engine._batch.step, threading.Event()

        def slowly(*args: Any) -> Any:
            time.sleep(0.0 if slow.is_set() else 0.05)
            return step(*args)

        engine._batch.step = slowly  # type: ignore[method-assign]
        updates = stream(served, SPEECH, budget_ms=400)
        slow.set()
    assert transcript(updates) == offline.transcribe(SPEECH).text


def test_a_ping_of_the_protocol_keeps_it_alive(engine: Dispatcher) -> None:
    with running(engine, idle_s=2.0) as served, served.connect() as client:
        hello(client)
        for _ in range(15):
            time.sleep(0.2)
            send(client, "ping")
            assert receive(client)["type"] == "pong"


def test_a_connection_and_its_audio_have_a_longest(engine: Dispatcher) -> None:
    with running(engine, max_stream_s=3.0) as served:
        with served.connect() as client:
            hello(client)
            client.send(bytes(2 * 8000 * 3 + 2))
            errors = [m for m in until_the_end(client) if m["type"] == "error"]
            assert errors[0]["code"] == "too_long"
            assert "3 s of audio" in errors[0]["message"]
        with served.connect() as client:
            hello(client)
            pinging = threading.Event()

            def ping() -> None:
                with suppress(ConnectionClosed):
                    while not pinging.wait(0.05):
                        send(client, "ping")

            pinger = threading.Thread(target=ping)
            pinger.start()
            *pongs, error = until_the_end(client)
            pinging.set()
            pinger.join()
            assert {pong["type"] for pong in pongs} == {"pong"}
            assert (error["code"], client.protocol.close_code) == ("too_long", 1008)


def test_ten_megabytes_in_one_frame_are_too_large(served: Served, offline: Model) -> None:
    with served.connect() as client:
        hello(client)
        with suppress(ConnectionClosed):
            client.send(bytes(10_000_000))
        assert until_the_end(client) == []
        # What it sends on meets a closed socket: a reset may overtake the reason.
        assert client.protocol.close_code in (1009, 1006)
    assert soon(lambda: served.service.streams == 0, 1.0)
    still_works(served, offline)


def test_a_frame_as_large_as_may_be(served: Served, offline: Model) -> None:
    silence = np.zeros((1 << 19) - len(SPEECH), np.int16)
    speech = np.concatenate([SPEECH, silence])
    with served.connect() as client:
        hello(client, budget_ms=400)
        client.send(speech.tobytes())
        send(client, "finish")
        updates = until_the_end(client)
    assert transcript(updates) == offline.transcribe(SPEECH).text
    assert updates[-1]["audio_ms"] == len(speech) / 8


def test_reconnecting_in_crowds_at_the_limit(offline: Model, engine: Dispatcher) -> None:
    with (
        running(engine, max_streams=2) as served,
        served.connect() as first,
        served.connect() as second,
    ):
        hello(first, budget_ms=400)
        hello(second)
        refused: list[str] = []

        def knock() -> None:
            for _ in range(10):
                with served.connect() as client:
                    answer = hello(client)
                    refused.append(answer["code"])
                    until_the_end(client)
                    assert client.protocol.close_code == 1013

        crowd = [threading.Thread(target=knock) for _ in range(5)]
        for one in crowd:
            one.start()
        first.send(SPEECH.tobytes())
        for one in crowd:
            one.join(60)
        assert refused == ["busy"] * 50
        send(first, "finish")
        assert transcript(until_the_end(first)) == offline.transcribe(SPEECH).text
        second.close()
        assert soon(lambda: served.service.streams == 0)
        still_works(served, offline)
        counted = served.get("/metrics")[1].decode()
        assert 'nearfuture_errors_total{code="busy"} 50.0' in counted


@pytest.mark.parametrize("message", ["garbage", '{"type": "finish"}'])
def test_who_has_been_sent_away_finds_the_place_free(engine: Dispatcher, message: str) -> None:
    with running(engine, max_streams=1) as served:
        for _ in range(20):
            with served.connect() as client:
                assert hello(client)["type"] == "ready"
                client.send(message)
                while receive(client)["type"] != ("error" if message == "garbage" else "update"):
                    pass
                with suppress(ConnectionClosed):
                    receive(client)


def test_too_many_connections_are_refused_at_the_door(engine: Dispatcher) -> None:
    with running(engine, max_connections=2) as served:
        with served.connect(), served.connect():
            with pytest.raises(InvalidStatus) as refused:
                served.connect()
            assert refused.value.response.status_code == 503
            assert served.get("/health")[0] == 200
        assert soon(lambda: served.get("/")[0] == 200)


def test_many_short_lives_leave_nothing_behind(served: Served, offline: Model) -> None:
    for life in range(40):
        with served.connect() as client:
            hello(client)
            client.send(SPEECH.tobytes()[: 997 * life])
            if life % 2:
                reset(client)
    assert soon(lambda: served.service.streams == 0)
    assert soon(lambda: served.service.dispatcher().stats().streams == 0)
    still_works(served, offline)


def test_more_than_may_wait_is_waited_for(offline: Model) -> None:
    speech = said(*["flite-slt-720", "flite-rms-991"] * 4)
    with dispatcher(max_waiting_s=1.0) as engine, running(engine, max_waiting_s=1.0) as served:
        updates = stream(served, speech, budget_ms=400)
    assert transcript(updates) == offline.transcribe(speech).text


def test_streams_at_once_are_independent(served: Served, offline: Model) -> None:
    clips = [said(name) for name in ("flite-slt-720", "flite-rms-991", "flite-rms-3602")]
    heard: dict[int, str] = {}

    def one(number: int) -> None:
        random = np.random.default_rng(number)
        sizes = random.integers(1, 2000, 20).tolist()
        heard[number] = transcript(stream(served, clips[number % 3], sizes, budget_ms=400))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    expected = [offline.transcribe(clip).text for clip in clips]
    assert heard == {number: expected[number % 3] for number in range(9)}


def test_health_answers_while_everybody_sends_as_fast_as_possible(served: Served) -> None:
    speech = said(*["flite-slt-720", "flite-rms-991"] * 6)
    closed: list[int | None] = []

    def busy() -> None:
        with served.connect() as client:
            hello(client)
            client.send(speech.tobytes())
            send(client, "finish")
            until_the_end(client)
            closed.append(client.protocol.close_code)

    clients = [threading.Thread(target=busy) for _ in range(6)]
    for client in clients:
        client.start()
    answered = 0
    while any(client.is_alive() for client in clients):
        assert served.get("/health")[0] == 200
        answered += 1
    assert answered > 5
    assert closed == [1000] * 6


def test_a_broken_engine_is_reported_and_shows(offline: Model) -> None:
    def boom(*args: object) -> None:
        raise MemoryError("no more")

    with dispatcher() as engine, running(engine) as served:
        with served.connect() as client:
            hello(client)
            engine._batch.step = boom  # type: ignore[method-assign]
            client.send(SPEECH.tobytes())
            errors = [m for m in until_the_end(client) if m["type"] == "error"]
            assert errors[0]["code"] == "internal"
            assert client.protocol.close_code == 1011
        assert served.get("/health")[0] == 500
        assert served.get("/ready")[0] == 500
        with served.connect() as client:
            assert hello(client)["code"] == "internal"


def test_a_drain_lets_streams_finish_and_refuses_new_ones(
    offline: Model, engine: Dispatcher
) -> None:
    with running(engine, drain_s=60.0) as served, served.connect() as client:
        hello(client, budget_ms=400)
        client.send(SPEECH[:9000].tobytes())
        served.stop()
        assert soon(lambda: served.service.draining)
        assert served.get("/ready")[0] == 503
        assert served.get("/health")[0] == 200
        with served.connect() as other:
            assert hello(other)["code"] == "draining"
            until_the_end(other)
            assert other.protocol.close_code == 1012
        client.send(SPEECH[9000:].tobytes())
        send(client, "finish")
        assert transcript(until_the_end(client)) == offline.transcribe(SPEECH).text
        assert client.protocol.close_code == 1000


def test_who_does_not_finish_in_time_gets_the_tail_of_what_was_received(
    offline: Model, engine: Dispatcher
) -> None:
    with running(engine, **cut_after(0.2)) as served, served.connect() as client:
        hello(client, budget_ms=400)
        client.send(SPEECH[:9000].tobytes())
        served.stop()
        updates = until_the_end(client)
        assert transcript(updates) == offline.transcribe(SPEECH[:9000]).text
        assert updates[-1]["ended"]
        assert client.protocol.close_code in (1000, 1012)


def slowed(engine: Dispatcher, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Have each step of an engine take so long, at least."""
    step = engine._batch.step

    def slowly(*arguments: Any) -> Any:
        time.sleep(seconds)
        return step(*arguments)

    monkeypatch.setattr(engine._batch, "step", slowly)


def talking(client: ClientConnection, messages: Sequence[str | bytes]) -> threading.Thread:
    """One message after another, 20 ms apart, whatever the server does meanwhile."""

    def talk() -> None:
        with suppress(ConnectionClosed):
            for message in messages:
                client.send(message)
                time.sleep(0.02)

    thread = threading.Thread(target=talk)
    thread.start()
    return thread


def test_who_goes_on_talking_gets_the_tail_of_what_was_received(
    offline: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dispatcher() as engine, running(engine, **cut_after(0.3)) as served:
        slowed(engine, monkeypatch, 0.04)
        with served.connect() as client:
            hello(client, budget_ms=400, endpoint=None)
            data = said(*["flite-slt-720"] * 20, pause_s=0.1).tobytes()
            thread = talking(client, [data[at : at + 320] for at in range(0, len(data), 320)])
            time.sleep(0.5)
            served.stop()
            *_, last = until_the_end(client)
            thread.join(60)
            assert last["type"] == "update", last
            assert last["ended"]
            heard = round(last["audio_ms"] * 8)
            speech = np.frombuffer(data, np.int16)[:heard]
            assert last["committed"] == offline.transcribe(speech).text != ""
            assert client.protocol.close_code == 1000


def as_mulaw(samples: Samples) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, 8000, format="RAW", subtype="ULAW")
    return file.getvalue()


def test_who_goes_on_talking_in_realtime_has_the_item_completed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with dispatcher() as engine, running(engine, **cut_after(0.3)) as served:
        slowed(engine, monkeypatch, 0.04)
        with served.connect("/v1/realtime") as client:
            heard = {"format": {"type": "audio/pcmu"}, "turn_detection": None}
            session = {"type": "transcription", "audio": {"input": heard}}
            client.send(json.dumps({"type": "session.update", "session": session}))
            data = as_mulaw(said(*["flite-slt-720"] * 20, pause_s=0.1))
            pieces = [data[at : at + 160] for at in range(0, len(data), 160)]
            append = "input_audio_buffer.append"
            thread = talking(
                client,
                [
                    json.dumps({"type": append, "audio": base64.b64encode(piece).decode()})
                    for piece in pieces
                ],
            )
            time.sleep(0.5)
            served.stop()
            *_, completed, error = until_the_end(client)
            thread.join(60)
            assert error["error"]["code"] == "draining"
            assert client.protocol.close_code == 1012
            assert completed["type"].endswith("transcription.completed")
            size = round(completed["usage"]["seconds"] * 8000)
            spoken = PcmReader("mulaw", rate=8000).read(data[:size])
            assert completed["transcript"] == load("digits").transcribe(spoken).text != ""


def test_who_goes_on_talking_to_vosk_gets_a_last_result(monkeypatch: pytest.MonkeyPatch) -> None:
    speech = said(*["flite-slt-720"] * 20, pause_s=0.1)
    model = load("digits")
    with dispatcher() as engine, running(engine, **cut_after(0.3)) as served:
        slowed(engine, monkeypatch, 0.04)
        with served.connect("/vosk") as client:
            sent, reply = 0, {}
            with suppress(ConnectionClosed):
                while True:
                    client.send(speech[sent : sent + 800].tobytes())
                    reply = receive(client)
                    sent += 800
                    if sent == 8000:
                        served.stop()
            assert client.protocol.close_code == 1000
        # The last of them was heard, or came after the end.
        assert reply["text"] in [model.transcribe(speech[:n]).text for n in (sent - 800, sent)]
        assert reply["text"]


def test_a_vosk_client_that_says_nothing_gets_the_last_result_unasked(engine: Dispatcher) -> None:
    with running(engine, **cut_after(0.0)) as served, served.connect("/vosk") as client:
        speech = said("flite-slt-720")
        client.send(speech.tobytes())
        assert "partial" in receive(client)
        served.stop()
        (last,) = until_the_end(client)
        assert last["text"] == load("digits").transcribe(speech).text
        assert client.protocol.close_code == 1000


UPLOAD = (
    b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
    b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
)


def test_who_waits_for_an_answer_when_the_server_ends_is_notified(engine: Dispatcher) -> None:
    """An upload that is on its way, and websockets that have said nothing yet."""
    with (
        no_complaints(),
        running(engine, **cut_after(0.0)) as served,
        socket.create_connection(("127.0.0.1", served.port)) as upload,
        served.connect("/vosk") as vosk,
        served.connect("/stream") as silent,
    ):
        upload.sendall(UPLOAD)
        assert soon(lambda: served.service.connections == 3)
        served.stop()
        upload.settimeout(30)
        answer = b""
        while data := upload.recv(10_000):
            answer += data
        assert b" 503 " in answer[:20]
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "draining"
        for client in (vosk, silent):
            assert until_the_end(client) == []
            assert client.protocol.close_code == 1012


def test_an_upload_that_is_cut_off_is_no_transcript(
    engine: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of the text would look like all of it."""
    file = io.BytesIO()
    soundfile.write(file, np.tile(SPEECH, 30), 8000, format="WAV")
    answers: list[httpx.Response] = []

    def upload(url: str, **fields: str) -> None:
        files = {"file": ("a.wav", file.getvalue())}
        data = {"model": "digits", **fields}
        answers.append(httpx.post(url, data=data, files=files, timeout=60))

    limits = {"max_waiting_s": 1.0} | cut_after(0.0)
    with (
        dispatcher(max_waiting_s=1.0) as slow,
        running(slow, **limits) as served,
        no_complaints(),
    ):
        slowed(slow, monkeypatch, 0.01)
        url = f"http://127.0.0.1:{served.port}/v1/audio/transcriptions"
        clients = [
            threading.Thread(target=upload, args=(url,), kwargs=fields)
            for fields in ({}, {"stream": "true"})
        ]
        for client in clients:
            client.start()
        assert soon(lambda: served.service.streams == 2)
        served.stop()
        for client in clients:
            client.join(60)
    assert len(answers) == 2
    for answer in answers:
        assert answer.status_code == (200 if answer.text.startswith("data:") else 503)
        assert '"code":"draining"' in answer.text.replace(" ", "")
        assert "transcript.text.done" not in answer.text


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"),
        OSError(errno.EMFILE, "Too many open files"),
    ],
)
def test_a_disk_that_takes_no_upload_is_reported_and_counted(
    served: Served, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "write", full)
    with no_complaints():
        answer = httpx.post(
            f"http://127.0.0.1:{served.port}/v1/audio/transcriptions",
            data={"model": "digits"},
            files={"file": ("a.wav", b"RIFF")},
            timeout=60,
        )
    assert (answer.status_code, answer.json()["error"]["code"]) == (507, "no_space")
    assert error.strerror.lower() in answer.json()["error"]["message"]
    assert 'nearfuture_errors_total{code="no_space"}' in served.get("/metrics")[1].decode()


@pytest.mark.parametrize("path", ["/", "/vosk", "/v1/realtime", "/stream"])
def test_a_handler_that_fails_answers_all_the_same(
    engine: Dispatcher, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """In JSON or with a close code, counted, and with one traceback in the log."""

    def wrong(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with running(engine) as served:
        complaints = Complaints()
        logging.getLogger().addHandler(complaints)
        try:
            if path == "/":
                monkeypatch.setattr(Service, "dispatcher", wrong)
                status, body = served.get(path)
                assert (status, json.loads(body)["error"]["code"]) == (500, "internal")
            else:
                monkeypatch.setattr(WebSocketConnection, "messages", wrong)
                with served.connect(path) as client:
                    until_the_end(client)
                    assert client.protocol.close_code == 1011
        finally:
            logging.getLogger().removeHandler(complaints)
        assert len(complaints.heard) == 1
        page = served.get("/metrics")[1].decode()
        assert 'nearfuture_errors_total{code="internal"} 1.0' in page


def test_who_has_said_hello_and_nothing_else_keeps_no_server_from_stopping(
    engine: Dispatcher,
) -> None:
    with running(engine, **cut_after(0.1)) as served, served.connect() as client:
        hello(client)
        served.stop()
        (last,) = until_the_end(client)
        assert (last["committed"], last["ended"]) == ("", True)
        assert client.protocol.close_code == 1000


def test_text_where_audio_is_due_and_audio_where_text_is(served: Served, offline: Model) -> None:
    with served.connect() as client:
        hello(client)
        client.send("".join(chr(c) for c in range(32, 2000)))
        assert until_the_end(client)[0]["code"] == "bad_message"
    with served.connect() as client:
        client.send(json.dumps({"type": "hello"}).encode())
        assert until_the_end(client)[0]["code"] == "bad_message"
    still_works(served, offline)


def test_who_leaves_while_its_place_is_being_made_leaves_no_place_behind(
    engine: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream is opened in a thread, which does not stop when nobody waits for it any more."""
    opened, going = engine.open, threading.Event()

    def slowly(**options: Any) -> Any:
        going.wait(30)
        return opened(**options)

    monkeypatch.setattr(engine, "open", slowly)
    with running(engine, max_streams=1) as served:
        with served.connect("/vosk") as client:
            client.send(bytes(2))
            assert soon(lambda: served.service._opening == 1)
            reset(client)
            time.sleep(0.2)
            assert served.service._opening == 1  # the place is still taken
            going.set()
        assert soon(lambda: served.service._opening == 0)
        assert soon(lambda: engine.stats().streams == 0)
        with served.connect() as other:
            assert hello(other)["type"] == "ready"


@pytest.mark.parametrize("path", ["/stream", "/vosk", "/v1/realtime"])
def test_who_is_gone_before_being_let_in_makes_no_traceback(served: Served, path: str) -> None:
    request = (
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ).encode()
    with no_complaints():
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", served.port)) as raw:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                raw.sendall(request)
        assert served.get("/health")[0] == 200
    assert served.service.streams == 0


def test_an_accept_that_comes_too_late_is_a_client_that_has_left(engine: Dispatcher) -> None:
    class Left:
        async def accept(self, subprotocol: str | None) -> None:
            raise OSError("broken pipe")

    service = Service({"digits": engine}, ServerSettings())
    with pytest.raises(Disconnected):
        asyncio.run(WebSocketConnection.accept(Left(), service.limits))  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["/stream", "/vosk", "/v1/realtime"])
@pytest.mark.parametrize("goodbye", [b"", frame(CLOSE, b"\3\xe8")])
def test_text_that_is_not_utf_8_is_reported_and_not_logged(
    served: Served, path: str, goodbye: bytes
) -> None:
    with no_complaints(), served.connect(path) as client:
        client.socket.sendall(frame(TEXT, b'{"type": "\xff"}') + goodbye)
        until_the_end(client)
        if not goodbye:
            assert client.protocol.close_code == 1007
    assert served.get("/health")[0] == 200


@pytest.mark.parametrize(
    "message",
    [
        '{"type": "hello", "version": "\\ud800"}',
        '{"type": "\\ud800"}',
        '{"type": "hello", "model": ' + "[" * 900 + "]" * 900 + "}",
        '{"type": "hello", "encoding": ' + "[" * 900 + "]" * 900 + "}",
        '{"type": "hello", "rate": "' + "9" * 100_000 + '"}',
    ],
    ids=["half a pair", "half a pair as type", "deep model", "deep encoding", "long rate"],
)
def test_what_cannot_be_repeated_is_reported_all_the_same(served: Served, message: str) -> None:
    with no_complaints(), served.connect() as client:
        client.send(message)
        (error,) = until_the_end(client)
    assert error["code"] in ("bad_message", "invalid", "unsupported")
    assert len(error["message"]) < 300


def test_a_reset_shows_while_nobody_reads(
    engine: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has stopped reading, for too much waits, and vosk's clients are owed nothing."""
    monkeypatch.setattr(server, "_PING_S", 0.05)
    going = threading.Event()
    with dispatcher(max_waiting_s=1.0) as slow, running(slow, max_waiting_s=1.0) as served:
        step = slow._batch.step

        def waiting(*arguments: Any) -> Any:
            going.wait(60)
            return step(*arguments)

        monkeypatch.setattr(slow._batch, "step", waiting)
        with served.connect("/vosk") as client:
            client.send(bytes(16_000 * 10))
            assert soon(lambda: served.service.streams == 1)
            reset(client)
            assert soon(lambda: served.service.streams == 0)
        going.set()


def test_a_socket_whose_client_takes_nothing_is_given_up(
    engine: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is closed with what waits in it, which would otherwise be kept for ever."""
    monkeypatch.setattr(service, "_LINGER_S", 0.2)
    with running(engine, idle_s=0.5) as served, socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", served.port))
        raw.sendall(
            b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        raw.setblocking(False)
        some = memoryview(frame(TEXT, b"{}") * 100_000)  # each is answered with an error
        left = some

        def broken() -> bool:
            nonlocal left
            try:
                left = left[raw.send(left) :] or some
            except BlockingIOError:
                return False
            except OSError:
                return True
            return False

        assert soon(broken, 60)
        assert served.get("/health")[0] == 200


def test_a_request_that_stops_being_http_has_one_answer(served: Served) -> None:
    head = (
        b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with no_complaints():
        for nonsense in (b"zz\r\n", b"1\r\n-\r\nzz\r\n"):
            with socket.create_connection(("127.0.0.1", served.port)) as raw:
                raw.sendall(head)
                time.sleep(0.05)  # the application waits for the rest
                raw.sendall(nonsense)
                raw.settimeout(30)
                answer = b""
                while data := raw.recv(10_000):
                    answer += data
                assert answer.count(b"HTTP/1.1 ") == 1
                assert b" 400 " in answer[:20]
    assert served.get("/health")[0] == 200


def test_thousands_of_messages_in_one_packet_keep_nobody_waiting(served: Served) -> None:
    """They are there at once, so that taking them waits for nothing: others are served between."""

    async def main() -> int:
        class Flood:
            async def receive(self) -> dict[str, str]:
                return {"type": "websocket.receive", "text": "{}"}

        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        waiting = asyncio.create_task(other())
        connection = WebSocketConnection(Flood(), served.service.limits)  # type: ignore[arg-type]
        taken = 0
        async for _ in connection.messages():
            taken += 1
            if taken == 1000:
                break
        waiting.cancel()
        return turns

    assert asyncio.run(main()) >= 999
