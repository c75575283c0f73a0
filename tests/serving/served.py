"""Servers for tests: in a thread, with a real model, on a port that is free."""

import asyncio
import gc
import json
import logging
import socket
import struct
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from nearfuture.audio import read
from nearfuture.runtime import Bundle, Dispatcher
from nearfuture.runtime.bundle import MODELS
from nearfuture.serving.limits import ServerLimits
from nearfuture.serving.listener import Address, bind
from nearfuture.serving.server import serve
from nearfuture.serving.service import Service
from nearfuture.serving.settings import ServerSettings
from nearfuture.text import join_utterances

SAMPLES = MODELS.parent / "samples"

Samples = NDArray[np.int16]


def said(*names: str, pause_s: float = 1.2) -> Samples:
    """Bundled recordings, pauses between their sounds, as int16 at 8 kHz."""
    parts: list[NDArray[np.float32]] = []
    for name in names:
        audio = read(SAMPLES / f"{name}.flac")
        assert audio.rate == 8000
        loud = np.flatnonzero(np.abs(audio.samples) > 0.02)
        sound = audio.samples[loud[0] : loud[-1] + 1]
        parts += [sound, np.zeros(int(pause_s * 8000), np.float32)]
    return np.round(32767 * np.concatenate(parts[:-1])).astype(np.int16)


def dispatcher(bundle: str | Path = "digits", **options: Any) -> Dispatcher:
    """An engine that lets everybody in: other work on this machine must not refuse a test."""
    usual = {"threads": 1, "max_streams": 16, "max_waiting_s": 60.0, "max_load": 1e9}
    return Dispatcher(Bundle.open(bundle), **(usual | options))


@dataclass
class Served:
    """A server that runs: its service and where it is."""

    service: Service
    ports: list[int]
    loop: asyncio.AbstractEventLoop
    stop: Callable[[], None]

    @property
    def port(self) -> int:
        return self.ports[0]

    def connect(self, path: str = "/stream", **options: Any) -> ClientConnection:
        return connect(f"ws://127.0.0.1:{self.port}{path}", **({"compression": None} | options))

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()


def cut_after(seconds: float) -> dict[str, float]:
    """Limits by which a server that stops cuts streams off then, with time for last results."""
    return {"drain_s": 60.0, "final_results_s": 60.0 - seconds}


@contextmanager
def running(
    engine: Dispatcher,
    *,
    settings: ServerSettings | None = None,
    roots: Sequence[str] = (),
    tls: tuple[Path, Path] | None = None,
    **limits: Any,
) -> Iterator[Served]:
    """A server in a thread; `limits` are those of `ServerLimits`."""
    usual = {"max_streams": 16} | cut_after(0.5)
    if settings is None:
        settings = ServerSettings(limits=ServerLimits(**(usual | limits)))
    service = Service({"digits": engine}, settings)
    addresses = [Address("127.0.0.1", 0), *(Address("127.0.0.1", 0, root) for root in roots)]
    listeners = bind(addresses)
    ports = [listener.socket.getsockname()[1] for listener in listeners]
    up = threading.Event()
    found: dict[str, Any] = {}

    async def main() -> None:
        found["loop"], found["stop"] = asyncio.get_running_loop(), asyncio.Event()
        await serve(service, listeners, tls=tls, on_started=up.set, stop=found["stop"])

    def target() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            found["error"] = error
        finally:
            up.set()

    thread = threading.Thread(target=target, daemon=True)

    def stop() -> None:
        if thread.is_alive():
            found["loop"].call_soon_threadsafe(found["stop"].set)

    thread.start()
    try:
        assert up.wait(60)
        if "error" in found:
            raise found["error"]
        yield Served(service, ports, found["loop"], stop)
    finally:
        stop()
        thread.join(60)
        for listener in listeners:
            listener.socket.close()
    assert not thread.is_alive(), "the server does not stop"
    if "error" in found:
        raise found["error"]
    assert service.streams == 0


def soon(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether it becomes true within so many seconds."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def reset(client: ClientConnection) -> None:
    """Break a connection off as a crash does: no goodbye, the peer gets a reset."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.shutdown(socket.SHUT_RD)  # wakes the client's own thread
    client.socket.close()


def hello(client: ClientConnection, **fields: Any) -> dict[str, Any]:
    """Say hello; the answer."""
    client.send(json.dumps({"type": "hello", **fields}))
    return receive(client)


def receive(client: ClientConnection) -> dict[str, Any]:
    message = json.loads(client.recv(timeout=60))
    assert isinstance(message, dict)
    return message


def send(client: ClientConnection, kind: str) -> None:
    client.send(json.dumps({"type": kind}))


def until_the_end(client: ClientConnection) -> list[dict[str, Any]]:
    """All messages until the server closes."""
    messages = []
    with suppress(ConnectionClosed):
        while True:
            messages.append(receive(client))
    return messages


def transcript(updates: Sequence[dict[str, Any]]) -> str:
    """What the final updates of a stream say together."""
    return join_utterances(
        (update["committed"], update["continues"])
        for update in updates
        if update["type"] == "update" and update["final"]
    )


def stream(
    served: Served, samples: Samples, sizes: Sequence[int] = (), **fields: Any
) -> list[dict[str, Any]]:
    """Send samples in messages of these many bytes; the updates."""
    data = samples.tobytes()
    with served.connect() as client:
        ready = hello(client, **fields)
        assert ready["type"] == "ready", ready
        at = 0
        for size in sizes:
            client.send(data[at : at + size])
            at += size
        for begin in range(at, len(data), 32_000):
            client.send(data[begin : begin + 32_000])
        send(client, "finish")
        updates = until_the_end(client)
        assert client.protocol.close_code == 1000
    return updates


class Complaints(logging.Handler):
    """Errors and tracebacks in the log of the server, asyncio's own included."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR or record.exc_info:
            self.heard.append(logging.Formatter().format(record))


@contextmanager
def no_complaints() -> Iterator[Complaints]:
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    gc.freeze()  # what was there before is nothing to collect
    try:
        yield complaints
    finally:
        gc.collect()  # tasks that failed unseen complain when they are collected
        logging.getLogger().removeHandler(complaints)
    assert complaints.heard == []
