"""Sockets that send no request, or send it too slowly: they end, and keep nobody out."""

import asyncio
import errno
import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from nearfuture.runtime import Dispatcher
from nearfuture.serving import admission, server
from nearfuture.serving.limits import ServerLimits, needed_descriptors, within_descriptors
from nearfuture.serving.service import Service
from nearfuture.serving.transport import UvicornWebSocketProtocol
from tests.serving.served import no_complaints, running, soon

HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
WHOLE = HEAD + b"\r\n"
LATER = b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
SHAKE = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
UPGRADE = b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
UPLOAD = (
    b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
    b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
)


def dripped(port: int, begin: bytes, drip: bytes = b"a", pause_s: float = 0.05) -> bytes:
    """What a server says to somebody who sends a byte now and then, until it has enough."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(begin)
        raw.settimeout(pause_s)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                if not (data := raw.recv(10_000)):
                    return answer
                answer += data
            except TimeoutError:
                with suppress(OSError):
                    raw.sendall(drip)
            except ConnectionResetError:
                return answer
    raise AssertionError("it is still there")


@pytest.mark.parametrize(
    "begin",
    [b"", b"G", HEAD, HEAD + UPGRADE, WHOLE, WHOLE + HEAD, WHOLE + WHOLE + HEAD, LATER],
    ids=["silent", "letter", "half", "upgrade", "kept", "second", "third", "body"],
)
def test_headers_have_a_deadline_however_they_are_dripped(engine: Dispatcher, begin: bytes) -> None:
    with no_complaints(), running(engine, headers_s=0.4) as served:
        drip = b"" if begin in (b"", WHOLE) else b"a"
        answer = dripped(served.port, begin, drip)
        assert answer.count(b"HTTP/1.1 200") == begin.count(b"\r\n\r\n")
        assert len(served.service.idle) == 0
        assert served.get("/health")[0] == 200


def test_a_handshake_of_tls_has_a_deadline(engine: Dispatcher) -> None:
    folder = Path(__file__).parent / "tls"
    tls = (folder / "certificate.pem", folder / "key.pem")
    with running(engine, tls=tls, headers_s=0.3) as served:
        assert dripped(served.port, b"\x16\x03\x01", b"") == b""


def test_idle_sockets_give_way_to_whoever_sends_a_request(engine: Dispatcher) -> None:
    with running(engine, max_idle_sockets=3, headers_s=600.0) as served:
        address = ("127.0.0.1", served.port)
        half = [socket.create_connection(address) for _ in range(8)]
        for one in half:
            with suppress(OSError):  # the first have been closed already
                one.sendall(HEAD)
        assert soon(lambda: len(served.service.idle) == 3)
        assert served.get("/health")[0] == 200
        with served.connect() as client:
            client.ping()
            assert len(served.service.idle) <= 3
            assert served.service.connections == 1
        for one in half:
            one.close()
        assert soon(lambda: len(served.service.idle) == 0)


def test_sockets_that_wait_for_a_goodbye_give_way_to_newer_ones(engine: Dispatcher) -> None:
    """This server has closed them, and they count as connections no more."""
    with running(engine, max_connections=3) as served, ExitStack() as stack:
        address = ("127.0.0.1", served.port)
        clients = []
        for _ in range(5):
            raw = stack.enter_context(socket.create_connection(address, timeout=30))
            raw.sendall(HEAD.replace(b"/health", b"/stream") + UPGRADE + SHAKE + b"\r\n")
            told = b""
            while b"\r\n\r\n" not in told:
                told += raw.recv(1000)
            raw.sendall(b"\x81\x81" + bytes(4) + b"x")  # no JSON: the server closes
            while b"bad_message" not in told:
                told += raw.recv(1000)
            clients.append(raw)
            assert soon(lambda: served.service.connections == 0)
        for raw in clients[:2]:
            with suppress(ConnectionResetError):
                while raw.recv(1000):
                    pass
        assert soon(lambda: len(served.service.lingering) == 3)
        for raw in clients[2:]:
            raw.sendall(b"\x88\x82" + bytes(4) + b"\x03\xe8")  # the goodbye
        assert soon(lambda: len(served.service.lingering) == 0)


def test_a_burst_of_silent_sockets_drops_nobody_who_has_sent_a_request(engine: Dispatcher) -> None:
    with running(engine) as served:
        address = ("127.0.0.1", served.port)
        held, free = threading.Event(), threading.Event()
        served.loop.call_soon_threadsafe(lambda: (held.set(), free.wait()))
        assert held.wait(30)  # they all come at once
        with ExitStack() as stack:
            first = stack.enter_context(socket.create_connection(address))
            first.sendall(WHOLE)
            for _ in range(served.service.limits.max_idle_sockets + 100):
                stack.enter_context(socket.create_connection(address))
            free.set()
            first.settimeout(30)
            assert first.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "wrong",
    [b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"X: \x7f\r\n"],
    ids=["length", "chunked", "letter"],
)
def test_a_handshake_that_never_completes_is_refused(engine: Dispatcher, wrong: bytes) -> None:
    with no_complaints(), running(engine, headers_s=600.0) as served:
        with socket.create_connection(("127.0.0.1", served.port)) as raw:
            raw.settimeout(30)
            raw.sendall(HEAD.replace(b"/health", b"/stream") + UPGRADE + SHAKE + wrong + b"\r\n")
            assert raw.recv(100).startswith(b"HTTP/1.1 400")
            while raw.recv(100):
                pass
        assert soon(lambda: len(served.service.idle) == 0)


def test_answers_to_pings_do_not_pile_up(
    engine: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, transports = UvicornWebSocketProtocol.connection_made, []

    def connection_made(self: UvicornWebSocketProtocol, transport: Any) -> None:
        narrow(transport.get_extra_info("socket"))
        transports.append(transport)
        begin(self, transport)

    def narrow(raw: socket.socket) -> None:
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            raw.setsockopt(socket.SOL_SOCKET, option, 1 << 15)

    monkeypatch.setattr(UvicornWebSocketProtocol, "connection_made", connection_made)
    with running(engine) as served, socket.socket() as raw:
        narrow(raw)
        raw.settimeout(30)
        raw.connect(("127.0.0.1", served.port))
        raw.sendall(HEAD.replace(b"/health", b"/stream") + UPGRADE + SHAKE + b"\r\n")
        assert raw.recv(4000).startswith(b"HTTP/1.1 101")  # no frames before it
        pings = [b"\x89\xfd" + bytes(4) + b"%0125d" % number for number in range(6_000)]
        for at in range(0, len(pings), 100):
            raw.sendall(b"".join(pings[at : at + 100]))  # waits until the server takes them
        assert transports[0].get_write_buffer_size() < 150_000
        told = b""
        while not told.endswith(pings[-1][6:]):  # the last is answered, as soon as it can be
            told = told[-200:] + raw.recv(10_000)


def test_a_body_that_drips_has_a_deadline_of_its_own(
    engine: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_MIN_BYTES_S", 1000)
    with running(engine, idle_s=0.5) as served:
        answer = dripped(served.port, UPLOAD)
        assert b" 408 " in answer[:20]
        assert b"slower than 1000 bytes a second" in answer
        assert soon(lambda: served.service.connections == 0)


def test_without_descriptors_the_oldest_idle_socket_makes_place(engine: Dispatcher) -> None:
    dropped: list[str] = []

    class Socket:
        def abort(self) -> None:
            dropped.append("one")

    async def main() -> None:
        service = Service({"digits": engine})
        loop = asyncio.get_running_loop()
        complain = server._exception_handler(service)
        service.idle.add(Socket())  # type: ignore[arg-type]
        error = OSError(errno.EMFILE, "Too many open files")
        for _ in range(2000):  # as often as asyncio says so at once
            complain(
                loop, {"message": "socket.accept() out of system resource", "exception": error}
            )

    with no_complaints():
        asyncio.run(main())
    assert dropped == ["one"]


def test_what_else_asyncio_complains_about_is_reported(
    engine: Dispatcher, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        complain = server._exception_handler(Service({"digits": engine}))
        complain(asyncio.get_running_loop(), {"message": "something odd"})

    with caplog.at_level(logging.ERROR, "asyncio"):
        asyncio.run(main())
    assert "something odd" in caplog.text


@pytest.mark.parametrize(
    ("soft", "hard", "set_to", "connections"),
    [
        (1024, 1 << 20, 3320, 1000),
        (1024, -1, 3320, 1000),
        (-1, -1, None, 1000),
        (4096, 4096, None, 1000),
        (256, 256, 256, 42),
        (256, 1024, 1024, 234),
        (16, 16, 16, 1),
    ],
)
def test_limits_are_what_the_descriptors_allow(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, set_to: int | None, connections: int
) -> None:
    resource = pytest.importorskip("resource")
    given: list[int] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: given.append(both[0]))
    limits = within_descriptors(ServerLimits())
    assert limits.max_connections == connections
    assert given == ([] if set_to is None else [set_to])
    room = given[-1] if given else soft
    if room >= 256:
        assert needed_descriptors(limits) <= room


def test_a_system_without_that_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    real: Callable[..., object] = builtins.__import__

    def without(name: str, *arguments: object, **options: object) -> object:
        if name == "resource":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    assert within_descriptors(ServerLimits()) == ServerLimits()
