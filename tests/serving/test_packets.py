"""Much in little: frames, chunks and headers of a few bytes keep nobody else waiting."""

import asyncio
import socket
import ssl
import struct
from pathlib import Path
from typing import Any

import h11
import pytest

from nearfuture.runtime import Dispatcher
from nearfuture.serving import server, transport
from nearfuture.serving.pcm import PcmReader
from nearfuture.serving.transport import UvicornHttpProtocol
from tests.serving.nonsense import BINARY, PING, frame
from tests.serving.served import Served, no_complaints, running

POST = (
    b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\n"
)
SHAKE = (
    b"GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


def answer(port: int, *parts: bytes) -> bytes:
    """All that comes back."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as raw:
        for part in parts:
            raw.sendall(part)
        received = b""
        try:
            while data := raw.recv(10_000):
                received += data
        except ConnectionResetError:  # it has read no more of what was sent
            pass
        return received


def opened(port: int, path: bytes) -> socket.socket:
    """A websocket, whatever is sent on it."""
    raw = socket.create_connection(("127.0.0.1", port), timeout=30)
    raw.sendall(SHAKE % path)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += raw.recv(1)
    assert head.startswith(b"HTTP/1.1 101")
    return raw


@pytest.mark.parametrize("path", [b"/stream", b"/vosk", b"/v1/realtime"])
def test_a_message_of_thousands_of_empty_fragments_is_refused(served: Served, path: bytes) -> None:
    begin, nothing = frame(BINARY, b"", last=False), frame(0, b"", last=False)
    with no_complaints(), opened(served.port, path) as raw:
        raw.sendall(begin + nothing * transport._MAX_FRAGMENTS)
        received = b""
        while data := raw.recv(10_000):
            received += data
    assert struct.pack(">H", 1009) + b"a message has" in received


def test_a_message_in_many_fragments_is_a_message(served: Served) -> None:
    parts = [frame(0, b'"ping"}'[i : i + 1], last=i == 6) for i in range(7)]
    pings = frame(PING, b"") * 50  # between fragments, as RFC 6455 allows
    with opened(served.port, b"/stream") as raw:
        raw.sendall(frame(1, b'{"type": ', last=False) + pings + b"".join(parts))
        received = b""
        while b"pong" not in received:
            received += raw.recv(10_000)


def test_a_body_in_very_many_small_chunks_is_refused(served: Served) -> None:
    few = 1 + transport._FEW_CHUNKS
    with no_complaints():
        received = answer(served.port, POST, b"1\r\na\r\n" * few)
    assert received.startswith(b"HTTP/1.1 400")
    assert received.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("size", [transport._CHUNK_BYTES, 1000])
def test_a_body_in_many_chunks_is_taken(size: int) -> None:
    connection = transport._Connection(h11.SERVER)
    connection.receive_data(POST + (b"%x\r\n" % size + bytes(size) + b"\r\n") * 2000 + b"0\r\n\r\n")
    events = [connection.next_event()]
    while not isinstance(events[-1], h11.EndOfMessage):
        events.append(connection.next_event())
    assert sum(len(event.data) for event in events if isinstance(event, h11.Data)) == 2000 * size


def test_of_a_connection_with_tls_little_is_parsed_at_once(
    engine: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, sizes = UvicornHttpProtocol.data_received, []

    def data_received(self: Any, data: bytes) -> None:
        sizes.append(len(data))
        take(self, data)

    monkeypatch.setattr(UvicornHttpProtocol, "data_received", data_received)
    folder = Path(__file__).parent / "tls"
    files = (folder / "certificate.pem", folder / "key.pem")
    trust = ssl.create_default_context(cafile=str(files[0]))
    head = POST.replace(b"Transfer-Encoding: chunked", b"Content-Length: 1000000")
    with (
        running(engine, tls=files) as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=30) as raw,
        trust.wrap_socket(raw, server_hostname="localhost") as secure,
    ):
        secure.sendall(head + b"--b\r\n" + bytes(1_000_000 - 5))
        assert secure.recv(100).startswith(b"HTTP/1.1 400")
    assert sum(sizes) > 50_000
    assert max(sizes) <= 2 * server._TLS_PACKET_BYTES


def test_between_the_headers_of_a_message_others_have_their_turn() -> None:
    """A megabyte has room for 20,000 recordings of one sample, each with a header."""
    form = struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
    small = b"RIFF\0\0\0\0WAVEfmt " + form + b"data\2\0\0\0\7\0"

    async def main() -> int:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        waiting = asyncio.create_task(other())
        samples = await PcmReader(rate=8000).read_in_turns(small * 3000)
        waiting.cancel()
        assert samples.tolist() == [7] * 3000
        return turns

    assert asyncio.run(main()) > 30


def test_no_bytes_in_turns_are_no_samples() -> None:
    assert len(asyncio.run(PcmReader(rate=8000).read_in_turns(b""))) == 0
