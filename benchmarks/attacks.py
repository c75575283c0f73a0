"""What an attacker can do to a server, and what everybody else waits meanwhile.

Each attack goes to a server of its own. While it lasts, and for a few seconds after, one ordinary
client after another connects, streams a bundled clip at once and is timed; its text must be the
one that the model gives by itself. Memory is that of the server's process, children included.

    python benchmarks/attacks.py [--only NAME …]     (Linux; some need the extra `media`)
"""

import argparse
import concurrent.futures
import io
import json
import re
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import httpx
import numpy as np
import soundfile
from _report import emit
from _served import RATE, Served, served
from rich.table import Table
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from nearfuture.audio import read
from nearfuture.runtime import load
from nearfuture.runtime.bundle import MODELS
from nearfuture.text import join_utterances

CLIP = MODELS.parent / "samples" / "flite-rms-3602.flac"
KEY = {"Authorization": "Bearer secret"}
AFTERWARDS_S = 3.0
PATIENCE_S = 120.0
FLOOD_S = 8.0


@dataclass
class Outcome:
    """What one attack did."""

    attack: str
    answer: str = ""
    took_s: float = 0.0
    memory_mb: float = 0.0  # the highest while it lasted, less that before
    kept_mb: float = 0.0  # some seconds after, less that before
    waits_s: list[float] = field(default_factory=list)  # of ordinary clients, one after another
    wrong: int = 0  # ordinary clients without their exact text
    tracebacks: int = 0
    log_lines: int = 0


def family_mb(pid: int) -> float:
    """Resident memory of a process and its children, in MB."""
    total = 0.0
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        with suppress(OSError):
            status = Path(f"/proc/{one}/status").read_text(encoding="utf-8")
            total += int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (task / "children").read_text(encoding="utf-8").split())
    return total


class Bystander:
    """Ordinary clients, one after another, and the memory of the server, in threads."""

    def __init__(self, server: Served, headers: dict[str, str]) -> None:
        clip = read(CLIP)
        self.pcm = np.round(32767 * clip.samples).astype("<i2").tobytes()
        self.text = load("digits").transcribe(clip.samples, clip.rate).text
        self.server, self.headers = server, headers
        self.waits: list[float] = []
        self.wrong = 0
        self.most_mb = 0.0
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=run) for run in (self._talk, self._weigh)]

    def __enter__(self) -> "Bystander":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def _weigh(self) -> None:
        while not self.stop.wait(0.02):
            self.most_mb = max(self.most_mb, family_mb(self.server.pid))

    def _talk(self) -> None:
        while not self.stop.is_set():
            began = time.perf_counter()
            try:
                right = self._once() == self.text
            except (OSError, WebSocketException):
                right = False
            self.waits.append(time.perf_counter() - began)
            self.wrong += not right
            self.stop.wait(0.1)

    def _once(self) -> str:
        with connect(
            self.server.url(),
            additional_headers=self.headers,
            open_timeout=PATIENCE_S,
            close_timeout=PATIENCE_S,
            compression=None,
        ) as websocket:
            websocket.send('{"type": "hello"}')
            text, sent = "", False
            while True:
                update = json.loads(websocket.recv(timeout=PATIENCE_S))
                if update["type"] == "error":
                    return f"refused: {update['code']}"
                if not sent:
                    sent = True
                    websocket.send(self.pcm)
                    websocket.send('{"type": "finish"}')
                    continue
                if update.get("final") and update.get("committed"):
                    parts = [(text, False), (update["committed"], update["continues"])]
                    text = join_utterances(parts)
                if update.get("ended"):
                    return text


def upload(server: Served, data: bytes, name: str, **headers: str) -> str:
    """The status and the first words of the answer to one recording."""
    try:
        answer = httpx.post(
            f"http://127.0.0.1:{server.port}/v1/audio/transcriptions",
            files={"file": (name, data)},
            data={"model": "digits"},
            headers=headers,
            timeout=PATIENCE_S,
        )
    except httpx.HTTPError as error:
        return type(error).__name__
    return f"{answer.status_code} {answer.text[:90]}"


def large_header(server: Served) -> str:
    """A WAV of one frame: 1024 channels at 768 kHz."""
    channels, rate = 1024, 768_000
    form = struct.pack("<HHIIHH", 1, channels, rate, channels * rate, channels, 8)
    frame = bytes(channels)
    body = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(frame))
    return upload(
        server, b"RIFF" + struct.pack("<I", len(body) + len(frame)) + body + frame, "a.wav"
    )


def odd_rates(server: Served) -> str:
    """31 sockets that say hello with rates of which no two share much with 8000 Hz."""

    def hello(rate: int) -> str:
        with connect(server.url(), open_timeout=PATIENCE_S, compression=None) as websocket:
            websocket.send(json.dumps({"type": "hello", "rate": rate}))
            return str(json.loads(websocket.recv(timeout=PATIENCE_S))["type"])

    with concurrent.futures.ThreadPoolExecutor(31) as pool:
        answers = list(pool.map(hello, range(48_001, 48_063, 2)))
    return ", ".join(f"{answers.count(kind)} {kind}" for kind in sorted(set(answers)))


def silent_uploads(server: Served) -> str:
    """Six recordings of three hours of silence, and an ordinary one behind them."""
    packed = io.BytesIO()
    with soundfile.SoundFile(packed, "w", RATE, 1, "PCM_16", format="FLAC") as file:
        for _ in range(180):
            file.write(np.zeros(60 * RATE, np.int16))
    data = packed.getvalue()
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        large = [pool.submit(upload, server, data, "silence.flac") for _ in range(6)]
        time.sleep(1.0)
        began = time.perf_counter()
        ordinary = upload(server, CLIP.read_bytes(), "ordinary.flac")[:3]
        waited = time.perf_counter() - began
        statuses = [one.result()[:3] for one in large]
    return f"ordinary upload {ordinary} after {waited:.1f} s; {', '.join(statuses)}"


def playlist(server: Served) -> str:
    """Lists that would have a server open a file of its own."""
    with tempfile.NamedTemporaryFile(suffix=".flac", dir=".") as secret:
        secret.write(CLIP.read_bytes())
        secret.flush()
        name = Path(secret.name).name
        lists = {
            "a.ffconcat": f"ffconcat version 1.0\nfile {name}\n",
            "a.m3u8": f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{name}\n#EXT-X-ENDLIST\n",
            "a.sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
            "m=audio 5004 RTP/AVP 0\n",
        }
        return "; ".join(upload(server, data.encode(), file)[:60] for file, data in lists.items())


def half_open(server: Served) -> str:
    """300 requests that never end."""
    sockets = []
    for _ in range(300):
        with suppress(OSError):
            one = socket.create_connection(("127.0.0.1", server.port), timeout=1)
            one.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
            sockets.append(one)
    time.sleep(5)
    for one in sockets:
        one.close()
    return f"{len(sockets)} opened"


def without_a_key(server: Served) -> str:
    """Streams for nothing, at each path of a further port."""
    port = next(int(found[1]) for line in server.log if (found := re.search(r":(\d+)/?\s*$", line))
                and int(found[1]) != server.port)  # fmt: skip
    answers = []
    for path in ("/", "/health", "/ready", "/stream", "/metrics"):
        try:
            with connect(f"ws://127.0.0.1:{port}{path}", open_timeout=5) as websocket:
                websocket.send('{"type": "hello"}')
                kind = json.loads(websocket.recv(timeout=5))["type"]
            answers.append(f"{path}: let in ({kind})")
        except (OSError, WebSocketException) as error:
            answers.append(f"{path}: {type(error).__name__}")
    return ", ".join(answers)


def foreign_page(server: Served) -> str:
    """A page of somebody else, in the browser of who runs a server without a key."""
    try:
        with connect(server.url(), origin="https://evil.example", open_timeout=5) as websocket:  # type: ignore[arg-type]
            websocket.send('{"type": "hello"}')
            stream = json.loads(websocket.recv(timeout=5))["type"]
    except (OSError, WebSocketException) as error:
        stream = type(error).__name__
    rest = upload(server, CLIP.read_bytes(), "a.flac", Origin="https://evil.example")
    return f"stream: {stream}; upload: {rest[:60]}"


def flood(server: Served, begin: bytes, piece: bytes, first: bytes = b"") -> str:
    """Pieces of a request or a message that never ends, for some seconds, unless it is refused."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as raw:
        raw.sendall(begin)
        if b"Upgrade" in begin:
            raw.recv(10_000)
        raw.sendall(first)
        until, sent = time.monotonic() + FLOOD_S, 0
        while time.monotonic() < until:
            try:
                raw.sendall(piece * 10_000)
            except OSError as error:
                return f"{type(error).__name__} after {sent} pieces"
            sent += 10_000
    return f"{sent} pieces taken"


def small_chunks(server: Served) -> str:
    """A body in chunks of one byte."""
    head = (
        b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    return flood(server, head, b"1\r\na\r\n")


def empty_fragments(server: Served) -> str:
    """A message of a websocket in fragments of no bytes."""
    shake = (
        b"GET /stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    return flood(server, shake, b"\x00\x80" + bytes(4), first=b"\x02\x80" + bytes(4))


ATTACKS: dict[str, tuple[Callable[[Served], str], list[str], dict[str, str]]] = {
    "large-header": (large_header, [], {}),
    "odd-rates": (odd_rates, [], {}),
    "silent-uploads": (silent_uploads, [], {}),
    "playlist": (playlist, [], {}),
    "half-open": (half_open, [], {}),
    "without-a-key": (without_a_key, ["--listen", "stream=0"], KEY),
    "foreign-page": (foreign_page, [], {}),
    "small-chunks": (small_chunks, [], {}),
    "empty-fragments": (empty_fragments, [], {}),
}


@contextmanager
def environment(headers: dict[str, str]) -> Iterator[None]:
    import os

    if headers:
        os.environ["NEARFUTURE_API_KEY"] = "secret"
    try:
        yield
    finally:
        os.environ.pop("NEARFUTURE_API_KEY", None)


def run(name: str) -> Outcome:
    """One attack, and what it did."""
    attack, arguments, headers = ATTACKS[name]
    outcome = Outcome(name)
    with environment(headers), served(*arguments) as server:
        time.sleep(1.0)  # until every port has said where it is
        with Bystander(server, headers):
            time.sleep(AFTERWARDS_S)  # the first clients fill what is filled once
        before = family_mb(server.pid)
        with Bystander(server, headers) as bystander:
            began = time.perf_counter()
            outcome.answer = attack(server)
            outcome.took_s = time.perf_counter() - began
            time.sleep(AFTERWARDS_S)
        outcome.kept_mb = family_mb(server.pid) - before
        outcome.memory_mb = bystander.most_mb - before
        outcome.waits_s, outcome.wrong = bystander.waits, bystander.wrong
        outcome.tracebacks = sum("Traceback" in line for line in server.log)
        outcome.log_lines = len(server.log)
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(ATTACKS), default=list(ATTACKS))
    names = parser.parse_args().only
    outcomes = [run(name) for name in names]
    table = Table(
        *("attack", "what came back", "took s", "memory + MB", "kept MB"),
        *("others waited, median and longest s", "others' texts wrong", "tracebacks"),
    )
    for one in outcomes:
        table.add_row(
            one.attack,
            one.answer,
            f"{one.took_s:.2f}",
            f"{one.memory_mb:.0f}",
            f"{one.kept_mb:.0f}",
            f"{np.median(one.waits_s):.2f}, {max(one.waits_s):.2f}",
            f"{one.wrong} of {len(one.waits_s)}",
            str(one.tracebacks),
        )
    emit(table, [asdict(one) for one in outcomes])


if __name__ == "__main__":
    main()
