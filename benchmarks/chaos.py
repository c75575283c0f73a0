"""Sixty clients that behave in every way clients do, at once: is all exact, does it stay flat?

Each client draws, again and again, what it does next: a proper stream, an upload, a socket dropped
in mid-word, nonsense, an odd rate, a request that never ends, a reader that does not read. Proper
ones must get their exact text or a refusal that says so. Memory is taken every second.

    python benchmarks/chaos.py [--clients 60] [--seconds 60]     (Linux)
"""

import argparse
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import httpx
import numpy as np
from _report import emit
from _served import Served, served
from rich.table import Table
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from nearfuture.audio import read
from nearfuture.runtime import load
from nearfuture.runtime.bundle import MODELS
from nearfuture.text import join_utterances

CLIPS = [MODELS.parent / "samples" / f"{name}.flac" for name in ("flite-slt-720", "flite-rms-3602")]
PATIENCE_S = 60.0


@dataclass
class Seen:
    """What became of everything that was done."""

    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    exact: int = 0
    wrong: list[str] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)  # of proper streams
    lock: threading.Lock = field(default_factory=threading.Lock)


class Client:
    """One of the sixty."""

    def __init__(self, server: Served, seen: Seen, seed: int) -> None:
        self.server, self.seen = server, seen
        self.random = np.random.default_rng(seed)

    def run(self, until: float) -> None:
        deeds: list[Callable[[], None]] = [
            *3 * [self.proper],
            *(self.upload, self.drop, self.nonsense, self.odd_rate, self.never_ends, self.deaf),
        ]
        while time.monotonic() < until:
            deed = deeds[self.random.integers(len(deeds))]
            with self.seen.lock:
                self.seen.done[deed.__name__] += 1
            with suppress(OSError, WebSocketException, httpx.HTTPError):
                deed()
            time.sleep(self.random.uniform(0.0, 0.5))

    def _connect(self) -> ClientConnection:
        return connect(
            self.server.url(),
            open_timeout=PATIENCE_S,
            close_timeout=PATIENCE_S,
            compression=None,
            ping_interval=None,
        )

    def _clip(self) -> tuple[bytes, str]:
        return PCM[self.random.integers(len(PCM))]

    def proper(self) -> None:
        pcm, expected = self._clip()
        began = time.perf_counter()
        with self._connect() as websocket:
            websocket.send('{"type": "hello"}')
            first = json.loads(websocket.recv(timeout=PATIENCE_S))
            if first["type"] == "error":
                with self.seen.lock:
                    self.seen.refused[first["code"]] += 1
                return
            at, text = 0, ""
            while at < len(pcm):
                size = 2 * int(self.random.integers(1, 3000))
                websocket.send(pcm[at : at + size])
                at += size
            websocket.send('{"type": "finish"}')
            for message in websocket:
                update = json.loads(message)
                if update.get("final") and update.get("committed"):
                    parts = [(text, False), (update["committed"], update["continues"])]
                    text = join_utterances(parts)
        with self.seen.lock:
            self.seen.waits_s.append(time.perf_counter() - began)
            self.seen.exact += text == expected
            if text != expected:
                self.seen.wrong.append(f"{text!r} instead of {expected!r}")

    def upload(self) -> None:
        number = self.random.integers(len(CLIPS))
        data = CLIPS[number].read_bytes()
        whole = self.random.random() < 0.6
        sent = data if whole else data[: self.random.integers(10, len(data))]
        answer = httpx.post(
            f"http://127.0.0.1:{self.server.port}/v1/audio/transcriptions",
            files={"file": ("a.flac", sent)},
            data={"model": "digits"},
            timeout=PATIENCE_S,
        )
        with self.seen.lock:
            if answer.status_code != 200:
                self.seen.refused[f"upload: {answer.status_code}"] += 1
            elif whole:
                right = answer.json()["text"] == PCM[number][1]
                self.seen.exact += right
                if not right:
                    self.seen.wrong.append(f"upload: {answer.text[:80]}")
            if answer.status_code >= 500 and answer.status_code != 503:
                self.seen.wrong.append(f"upload: {answer.status_code} {answer.text[:80]}")

    def drop(self) -> None:
        """Leave in mid-word, by a reset of the connection."""
        websocket = self._connect()
        websocket.send('{"type": "hello"}')
        websocket.send(self._clip()[0][: 2 * int(self.random.integers(1, 9000))])
        linger = struct.pack("ii", 1, 0)
        websocket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        websocket.socket.close()

    def nonsense(self) -> None:
        with self._connect() as websocket:
            for _ in range(int(self.random.integers(1, 6))):
                size = int(self.random.integers(0, 400))
                data = self.random.bytes(size)
                websocket.send(data if self.random.random() < 0.5 else data.decode("latin-1"))
            with suppress(TimeoutError):
                websocket.recv(timeout=1)

    def odd_rate(self) -> None:
        with self._connect() as websocket:
            rate = int(self.random.integers(-5, 100_000))
            websocket.send(json.dumps({"type": "hello", "rate": rate}))
            websocket.send(self._clip()[0])
            with suppress(TimeoutError):
                websocket.recv(timeout=2)

    def never_ends(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=5) as one:
            one.sendall(b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Le")
            time.sleep(self.random.uniform(0, 3))

    def deaf(self) -> None:
        """Send, and read nothing."""
        websocket = self._connect()
        websocket.send('{"type": "hello", "interval_ms": 0}')
        with suppress(TimeoutError):
            for _ in range(5):
                websocket.send(self._clip()[0])
        time.sleep(self.random.uniform(0, 3))
        websocket.socket.close()


def spoken() -> list[tuple[bytes, str]]:
    """Each clip as int16, and what the model gives for it by itself."""
    model = load("digits")
    found = []
    for path in CLIPS:
        pcm = np.round(32767 * read(path).samples).astype("<i2")
        found.append((pcm.tobytes(), model.transcribe(pcm / np.float32(32768), 8000).text))
    return found


PCM = spoken()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    seen, memory = Seen(), list[float]()
    with served() as server:
        until = time.monotonic() + options.seconds
        threads = [
            threading.Thread(target=Client(server, seen, seed).run, args=(until,))
            for seed in range(options.clients)
        ]
        for thread in threads:
            thread.start()
        health: list[float] = []
        while any(thread.is_alive() for thread in threads):
            time.sleep(1)
            memory.append(server.rss_mb())
            health.append(server.health_ms())
        time.sleep(2)
        after = Seen()
        Client(server, after, options.clients).proper()
        failures = server.failures()
    half, end = memory[len(memory) // 2], memory[-1]
    p50, p98 = np.percentile(health, (50, 98))
    table = Table("figure", "value", title=f"{options.clients} clients, {options.seconds:g} s")
    table.add_row("done", ", ".join(f"{name} {n}" for name, n in seen.done.items()))
    table.add_row("refused", ", ".join(f"{name} {n}" for name, n in seen.refused.items()))
    table.add_row("exact, wrong", f"{seen.exact}, {len(seen.wrong)}")
    table.add_row(
        "proper streams took, median and longest",
        f"{np.median(seen.waits_s):.2f}, {max(seen.waits_s):.2f} s" if seen.waits_s else "–",
    )
    table.add_row("/health p50, p98, max", f"{p50:.0f}, {p98:.0f}, {max(health):.0f} ms")
    table.add_row("memory: begin, middle, end", f"{memory[0]:.0f}, {half:.0f}, {end:.0f} MB")
    table.add_row("errors in the log", str(failures))
    table.add_row("a stream afterwards", "exact" if after.exact else f"wrong: {after.wrong}")
    emit(
        table,
        {
            "done": dict(seen.done),
            "refused": dict(seen.refused),
            "exact": seen.exact,
            "wrong": seen.wrong,
            "health_ms": {"p50": p50, "p98": p98, "max": max(health)},
            "memory_mb": memory,
            "errors_in_the_log": failures,
            "afterwards_exact": after.exact,
        },
    )
    if seen.wrong or failures or not after.exact:
        raise SystemExit("a proper client got a wrong text, or the server wrote an error")


if __name__ == "__main__":
    main()
