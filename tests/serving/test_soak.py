"""Clients come and go, by hundreds: nothing of them stays."""

import base64
import gc
import json
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from nearfuture.runtime import Dispatcher, LiveStream
from nearfuture.serving.connection import WebSocketConnection
from nearfuture.serving.session import Session
from tests.cli.test_serve import process
from tests.serving.live import Live, live
from tests.serving.served import reset, said, soon

SPEECH = said("flite-slt-720", "flite-rms-991").tobytes()
PATHS = ("/stream", "/vosk", "/v1/realtime")
WARM_UP, CYCLES = 400, 500
MAX_GROWN_MB = 2.0
"""Windows of measurements fill up, allocators keep what they may need. 500 sessions are 3 MB."""

KEPT = (Session, LiveStream, WebSocketConnection)


def come_and_go(port: int, number: int) -> None:
    """One client: clean, or away in a word, or reset there, by turns, over each protocol."""
    path = PATHS[number % 3]
    with connect(f"ws://127.0.0.1:{port}{path}", compression=None) as client:
        speak(client, path, SPEECH[: 2000 + 2 * (number * 487 % 9000)])
        match number // 3 % 3:
            case 0:
                finish(client, path)
            case 1:
                reset(client)


def speak(client: ClientConnection, path: str, audio: bytes) -> None:
    if path == "/stream":
        client.send('{"type": "hello"}')
    if path == "/v1/realtime":
        told = base64.b64encode(audio).decode()
        client.send(json.dumps({"type": "input_audio_buffer.append", "audio": told}))
    else:
        client.send(audio)
    client.recv(timeout=60)


def finish(client: ClientConnection, path: str) -> None:
    last = {
        "/stream": {"type": "finish"},
        "/vosk": {"eof": 1},
        "/v1/realtime": {"type": "input_audio_buffer.commit"},
    }
    client.send(json.dumps(last[path]))
    with suppress(ConnectionClosed):
        while "completed" not in client.recv(timeout=60):
            pass


def kept() -> Counter[str]:
    gc.collect()
    return Counter(type(one).__name__ for one in gc.get_objects() if type(one) in KEPT)


def test_nobody_is_kept(engine: Dispatcher) -> None:
    with live(engine) as server:
        for number in range(54):
            come_and_go(server.served.port, number)
        all_gone(server)
        assert soon(lambda: kept().total() < 6, 20), kept()  # of the last, a thread may know


def all_gone(server: Live) -> None:
    server.wait_until_free()
    assert soon(lambda: server.service.dispatcher().stats().streams == 0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the size of a process from /proc")
def test_memory_stays_flat_over_500_connections() -> None:
    with process("--port", "0", "--threads", "1") as (server, (port,)):
        assert server.stderr is not None
        log = server.stderr
        reading = threading.Thread(target=lambda: [None for _ in log])  # else its pipe fills up
        reading.start()
        for number in range(WARM_UP):
            come_and_go(port, number)
        before_mb = resident_mb(server.pid)
        for number in range(CYCLES):
            come_and_go(port, number)
        time.sleep(1)
        grown_mb = resident_mb(server.pid) - before_mb
        server.terminate()
        reading.join(60)
    assert grown_mb < MAX_GROWN_MB, grown_mb


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")
