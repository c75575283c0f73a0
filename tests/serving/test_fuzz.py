"""Nonsense over every protocol: no crash, no hang, and nobody else hears anything of it."""

import asyncio
import base64
import json
import random
import socket
import struct
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import websockets

from nearfuture.runtime import Model, load
from tests.serving.live import CLIPS, Live, as_int16, clip, live, spoken, wav
from tests.serving.nonsense import BINARY, CLOSE, PING, PONG, TEXT, frame, messages, requests
from tests.serving.served import SAMPLES, dispatcher, no_complaints, soon, transcript

FLAC = (SAMPLES / f"{CLIPS[0]}.flac").read_bytes()
SOCKETS = {"stream": "/stream", "vosk": "/vosk", "openai_realtime": "/v1/realtime"}
AT_ONCE = 6
PATIENCE_S = 60.0

PROBES: dict[str, dict[str, Any]] = {
    "stream": {"type": "ping"},
    "vosk": {"eof": 1},
    "openai_realtime": {"type": "session.update", "session": {}, "event_id": "probe"},
}


@dataclass
class Seen:
    """What a run has sent and got."""

    sent: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    exact: Counter[str] = field(default_factory=Counter)

    @property
    def messages(self) -> int:
        return self.sent.total()


class Peer:
    """A websocket without manners: its frames are bytes, and what it gets is read all the time."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, polite: bool
    ) -> None:
        self.reader, self.writer = reader, writer
        self.polite = polite  # answers a goodbye; else the server waits for a while
        self.close_code: int | None = None
        self.told: list[dict[str, Any]] = []
        self.news = asyncio.Event()
        self.reading = asyncio.create_task(self.read())

    async def read(self) -> None:
        try:
            while True:
                head = await self.reader.readexactly(2)
                assert not head[1] & 0x80, "a server does not mask"
                size = head[1] & 0x7F
                if size > 125:
                    size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8))
                payload = await self.reader.readexactly(size)
                match head[0]:
                    case 0x81:
                        self.told.append(proper(payload.decode()))
                        self.news.set()
                    case 0x88:
                        self.close_code = int.from_bytes(payload[:2])
                        payload[2:].decode()
                        if self.polite and not self.writer.transport.is_closing():
                            with suppress(RuntimeError):  # it has hung up already
                                self.writer.write(frame(CLOSE, payload[:2]))
                    case other:
                        assert other in (0x80 | PING, 0x80 | PONG)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.news.set()

    @property
    def over(self) -> bool:
        return self.reading.done()

    async def until(self, kind: str) -> None:
        """Until it is told something of this kind, or the connection has ended."""
        at = 0
        while not self.over:
            for message in self.told[at:]:
                if message.get("type") == kind or (message.get("error") or {}) == kind:
                    return
            at = len(self.told)
            self.news.clear()
            await self.news.wait()

    async def leave(self) -> None:
        self.writer.transport.abort()
        await self.reading


def leave(writer: asyncio.StreamWriter, *, reset: bool) -> None:
    """Close the socket now; with a reset, as a crash does."""
    if reset:
        with suppress(OSError):  # it is closed already
            writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
    writer.transport.abort()


def proper(text: str) -> dict[str, Any]:
    """A message as any reader of JSON takes it: no NaN, an object, errors in one line."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    told = json.loads(text, parse_constant=refuse)
    assert isinstance(told, dict)
    message = told.get("message") or (told.get("error") or {}).get("message", "")
    assert "\n" not in message
    assert len(text) < 100_000, text[:300]
    return told


async def opened(port: int, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    return reader, writer


async def talk(draw: random.Random, port: int, protocol: str, seen: Seen) -> None:
    """One connection: nonsense, and an end of some kind."""
    reader, writer = await opened(port, SOCKETS[protocol])
    if draw.random() < 0.03:  # gone before it is accepted
        seen.ends["reset at the door"] += 1
        for _ in range(draw.randrange(3)):
            await asyncio.sleep(0)
        leave(writer, reset=True)
        return
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 101 " in head.splitlines()[0], head
    peer = Peer(reader, writer, polite=draw.random() < 0.998)
    ended = False
    for message in messages(draw, protocol):
        if peer.over:
            break
        writer.write(message.data)
        seen.sent[protocol] += 1
        ended = message.ends
        with suppress(ConnectionError):
            await writer.drain()
        if draw.random() < 0.3:
            await asyncio.sleep(draw.choice((0, 0, 0.002)))
    how = draw.choice(("probe", "probe", "reset", "goodbye", "goodbye at once", "hang up"))
    if ended and how != "reset":
        how = "hang up"
    seen.ends[how] += 1
    if how == "probe":
        writer.write(frame(TEXT, json.dumps(PROBES[protocol]).encode()))
        answers = {"stream": "pong", "openai_realtime": "session.updated"}
        if protocol == "openai_realtime":
            await answered(peer)
        else:
            await peer.until(answers.get(protocol, "the end"))
    elif how == "goodbye":
        writer.write(frame(CLOSE, b"\3\xe8"))
        await peer.reading
    elif how == "goodbye at once":
        writer.write(frame(BINARY, bytes(639)) + frame(CLOSE, b"\3\xe8"))
    elif how == "reset":
        leave(writer, reset=True)
    else:
        with suppress(OSError):
            writer.write_eof()
        await asyncio.sleep(0)
    await peer.leave()
    if peer.close_code is not None:
        assert peer.close_code != 1011, peer.told[-1:]
        seen.ends[f"server: {peer.close_code}"] += 1


async def answered(peer: Peer) -> None:
    """Until the probe of the Realtime protocol has an answer, or the connection has ended."""
    while not peer.over:
        for message in peer.told:
            if message["type"] == "error" and message["error"].get("event_id") == "probe":
                return
        if peer.told and peer.told[-1]["type"].endswith("session.updated"):
            return
        peer.news.clear()
        await peer.news.wait()


async def ask(draw: random.Random, port: int, seen: Seen) -> None:
    """One HTTP request."""
    data, whole = requests(draw, FLAC)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    cut = draw.choice((len(data), len(data), draw.randrange(len(data))))
    writer.write(data[:cut])
    seen.sent["openai_rest"] += 1
    try:
        if not whole or cut < len(data):
            await asyncio.sleep(draw.choice((0, 0.003)))
            return
        with suppress(ConnectionError):
            answer = await reader.read()
            assert answer, data[:300]
            head, _, body = answer.partition(b"\r\n\r\n")
            status = int(head.split()[1])
            assert status in (200, 204, 400, 404, 405, 408, 413, 415, 501), (answer[:500], data)
            seen.ends[f"http: {status}"] += 1
            if b"application/json" in head and body:
                assert ("error" in proper(body.decode())) == (status >= 400)
    finally:
        leave(writer, reset=draw.random() < 0.5)


class Witness:
    """Well-behaved clients, each the next after the last one: all hear their own text, exactly."""

    def __init__(self, server: Live, seen: Seen) -> None:
        self.server, self.seen = server, seen
        self.over = False
        digits = load("digits", budget_ms=400)
        largest = load("digits")
        self.clips = [as_int16(clip(name)[0]) for name in CLIPS]
        self.texts = [digits.transcribe(one).text for one in self.clips]
        self.largest = [largest.transcribe(one).text for one in self.clips]
        self.fast = [spoken(name, pause_s=0.0, rate=24_000) for name in CLIPS]
        self.resampled = [largest.transcribe(one, 24_000).text for one in self.fast]
        assert len({*self.texts}) == 3

    async def stream(self) -> None:
        number = 0
        while not self.over:
            number = (number + 1) % 3
            url = f"ws://{self.server.address}/stream"
            async with websockets.connect(url, compression=None) as client:
                await client.send('{"type": "hello", "budget_ms": 400}')
                data = self.clips[number].tobytes()
                for at in range(0, len(data), 1501):
                    await client.send(data[at : at + 1501])
                    await asyncio.sleep(0.005)
                await client.send('{"type": "finish"}')
                told = [json.loads(message) async for message in client]
            assert transcript(told) == self.texts[number]
            self.seen.exact["stream"] += 1

    async def others(self) -> None:
        number = 0
        while not self.over:
            number = (number + 1) % 3
            assert await self.vosk(number) == self.largest[number]
            self.seen.exact["vosk"] += 1
            assert await self.realtime(number) == self.resampled[number]
            self.seen.exact["openai_realtime"] += 1
            assert await self.rest(number) == self.largest[number]
            self.seen.exact["openai_rest"] += 1
            await asyncio.sleep(0.2)

    async def vosk(self, number: int) -> str:
        texts = []
        async with websockets.connect(f"ws://{self.server.vosk}", compression=None) as client:
            data = self.clips[number].tobytes()
            for message in [*(data[at : at + 3001] for at in range(0, len(data), 3001)), None]:
                await client.send('{"eof" : 1}' if message is None else message)
                texts.append(json.loads(await client.recv()).get("text", ""))
        return " ".join(text for text in texts if text)

    async def realtime(self, number: int) -> str:
        url = f"ws://{self.server.address}/v1/realtime"
        async with websockets.connect(url, compression=None) as client:
            heard = {"turn_detection": None}
            session = {"type": "transcription", "audio": {"input": heard}}
            await client.send(json.dumps({"type": "session.update", "session": session}))
            data = self.fast[number].tobytes()
            for at in range(0, len(data), 9601):
                audio = base64.b64encode(data[at : at + 9601]).decode()
                await client.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
            await client.send('{"type": "input_audio_buffer.commit"}')
            while True:
                event = json.loads(await client.recv())
                assert event["type"] != "error", event
                if event["type"].endswith("transcription.completed"):
                    return str(event["transcript"])

    async def rest(self, number: int) -> str:
        parts = (
            b'name="model"\r\n\r\ndigits',
            b'name="file"; filename="a.wav"\r\n\r\n' + wav(self.clips[number], 8000),
        )
        body = b"".join(
            b"--b\r\nContent-Disposition: form-data; " + part + b"\r\n" for part in parts
        )
        body += b"--b--\r\n"
        host, _, port = self.server.address.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\n"
            b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
        )
        answer = await reader.read()
        writer.close()
        return str(json.loads(answer.partition(b"\r\n\r\n")[2])["text"])


async def bombard(server: Live, count: int, seed: int) -> Seen:
    """So many messages, by several clients at once, while witnesses go on."""
    seen = Seen()
    witness = Witness(server, seen)
    witnesses = [asyncio.create_task(witness.stream()), asyncio.create_task(witness.others())]
    port = int(server.address.rpartition(":")[2])

    async def attack(number: int) -> None:
        turn = 0
        while seen.messages < count:
            turn += 1
            draw = random.Random(f"{seed} {number} {turn}")
            protocol = draw.choice([*SOCKETS] + ["openai_rest"] * 4)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    if protocol == "openai_rest":
                        await ask(draw, port, seen)
                    else:
                        await talk(draw, port, protocol, seen)
            except BaseException as error:
                error.add_note(f"seed '{seed} {number} {turn}', {protocol}")
                raise
            for one in witnesses:
                if one.done():
                    one.result()

    async with asyncio.TaskGroup() as group:
        for number in range(AT_ONCE):
            group.create_task(attack(number))
    witness.over = True
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*witnesses)
    return seen


# Starlette leaves the upload of a client that hangs up in its middle to the collector.
@pytest.mark.filterwarnings("ignore:Unclosed file <tempfile.Spooled:ResourceWarning")
@pytest.mark.parametrize(
    "count", [1500, pytest.param(100_000, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_nonsense_crashes_nothing_hangs_nowhere_and_is_noticed_by_nobody(
    count: int, offline: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    with no_complaints(), dispatcher(max_streams=64) as engine:
        with live(engine, max_streams=64) as server:
            began = time.monotonic()
            seen = asyncio.run(bombard(server, count, seed=1))
            took_s = time.monotonic() - began
            assert server.is_alive()
            server.wait_until_free()
            assert soon(lambda: engine.stats().streams == 0)
            assert engine.error is None
        assert all(seen.exact[name] > 0 for name in (*SOCKETS, "openai_rest")), seen.exact
        assert len(seen.sent) == 4
        # It came through to the handlers: they heard some, and refused some for what it was.
        assert {"http: 200", "http: 400", "server: 1003", "server: 1007"} <= seen.ends.keys()
    with capsys.disabled():
        if count > 10_000:
            print(f"\n{dict(seen.sent)} in {took_s:.0f} s\n{dict(sorted(seen.ends.items()))}")
            print(f"exact meanwhile: {dict(seen.exact)}")
