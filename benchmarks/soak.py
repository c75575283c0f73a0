"""What a server keeps of clients that have left, and of a stream that goes on for hours.

Connect and disconnect, by turns with a proper end, with a goodbye in a word and with a reset, over
each live protocol; then one stream over a websocket on a fast clock: the next audio as soon as the
last was computed. Costs are processor time of the server's process, of the old stream and of new
ones by turns, since other work on the machine changes both alike. Linux only.

    python benchmarks/soak.py [--cycles 500] [--hours 2]
"""

import argparse
import base64
import json
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from _report import emit
from _served import RATE, Served, served, speech
from rich.table import Table
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

WARM_UP = 400  # cycles: until allocators and windows of measurements are full
WINDOW_S = 20.0  # of audio, whose cost is compared
PAIRS = 20
AHEAD_S = 2.0


def reset(client: ClientConnection) -> None:
    """Leave as a crash does."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.shutdown(socket.SHUT_RD)
    client.socket.close()


def stream(client: ClientConnection, data: bytes) -> str:
    client.send('{"type": "hello"}')
    client.send(data)
    client.recv()
    return '{"type": "finish"}'


def vosk(client: ClientConnection, data: bytes) -> str:
    client.send(data)
    client.recv()
    return '{"eof": 1}'


def realtime(client: ClientConnection, data: bytes) -> str:
    audio = base64.b64encode(data).decode()
    client.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
    client.recv()
    return '{"type": "input_audio_buffer.commit"}'


TALKS: dict[str, Callable[[ClientConnection, bytes], str]] = {
    "/stream": stream,
    "/vosk": vosk,
    "/v1/realtime": realtime,
}


def cycle(server: Served, number: int, tape: bytes) -> None:
    """One client: what it says, and how it leaves, by turns."""
    path = list(TALKS)[number % 3]
    at = 2 * (number * 7919 % (len(tape) // 4))
    with connect(server.url(path), compression=None) as client:
        last = TALKS[path](client, tape[at : at + 16_000])
        match number // 3 % 3:
            case 0:
                client.send(last)
                with suppress(ConnectionClosed):
                    while "completed" not in client.recv():
                        pass
            case 1:
                reset(client)


def cycles(server: Served, count: int) -> dict[str, float]:
    """Memory before and after so many clients, once the first have warmed it up."""
    tape = speech(60).tobytes()
    for number in range(WARM_UP):
        cycle(server, number, tape)
    time.sleep(1)
    before, cpu_s = server.rss_mb(), server.cpu_s()
    for number in range(count):
        cycle(server, number, tape)
    time.sleep(1)  # for the last to be forgotten
    after = server.rss_mb()
    return {
        "cycles": count,
        "rss_before_mb": before,
        "rss_after_mb": after,
        "grown_mb": after - before,
        "cpu_ms_each": 1000 * (server.cpu_s() - cpu_s) / count,
    }


class Speaker:
    """A stream that is sent audio as fast as it is computed."""

    def __init__(self, server: Served, tape: np.ndarray) -> None:
        self.server = server
        self.data, self.at = tape.tobytes(), 0
        self.sent_s = self.heard_s = 0.0
        self.client = connect(server.url(), compression=None).__enter__()
        self.client.send('{"type": "hello"}')
        self.client.recv()

    def speak(self, seconds: float) -> float:
        """So much more audio; the processor time it took the server."""
        before = self.server.cpu_s()
        until = self.sent_s + seconds
        while self.sent_s < until:
            piece = self.data[self.at : self.at + 2 * RATE // 5]
            self.at = (self.at + len(piece)) % len(self.data)
            self.client.send(piece)
            self.sent_s += len(piece) / 2 / RATE
            self.read_until(AHEAD_S)
        self.read_until(1.5)  # an update a second of audio is certain
        return self.server.cpu_s() - before

    def read_until(self, behind_s: float) -> None:
        while self.heard_s < self.sent_s - behind_s:
            update = json.loads(self.client.recv())
            assert update["type"] == "update", update
            self.heard_s = update["audio_ms"] / 1000

    def close(self) -> None:
        self.client.close()


def compared(old: Speaker, new: Speaker) -> float:
    """What a quantum costs the old stream, in those of the new one."""
    ratios = []
    for pair in range(PAIRS):
        order = (old, new) if pair % 2 else (new, old)
        cost = {speaker: speaker.speak(WINDOW_S) for speaker in order}
        ratios.append(cost[old] / cost[new])
    return float(np.median(ratios))


def hours(server: Served, count: float) -> list[dict[str, float]]:
    """A stream of so many hours: at its start, at each half hour and at its end."""
    tape = speech(600, seed=1)
    old = Speaker(server, tape)
    old.speak(120)  # its own warm-up
    rows: list[dict[str, float]] = []
    for at in [*np.arange(0, count, 0.5).tolist(), count]:
        old.speak(max(0.0, 3600 * at - old.sent_s))
        new = Speaker(server, tape)
        new.speak(WINDOW_S)
        rss = server.rss_mb()
        ratio = compared(old, new)
        new.close()
        rows.append({"hours": at, "ratio": ratio, "rss_mb": rss, "audio_s": old.sent_s})
        print(f"{at:g} h: {ratio:.3f}, {rss:.1f} MB", file=sys.stderr, flush=True)
    old.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=500)
    parser.add_argument("--hours", type=float, default=2.0)
    options = parser.parse_args()
    with served("--max-load", "1e9", "--threads", "1") as server:
        lives = cycles(server, options.cycles)
        rows = hours(server, options.hours)
        failures = server.failures()
    table = Table("figure", "value", title="one server of the bundled digits, one thread")
    table.add_row(
        f"{options.cycles} connections: memory",
        f"{lives['grown_mb']:+.2f} MB of {lives['rss_before_mb']:.0f}",
    )
    table.add_row("processor time of each", f"{lives['cpu_ms_each']:.1f} ms")
    for row in rows:
        table.add_row(
            f"a quantum after {row['hours']:g} h / of a new stream",
            f"{row['ratio']:.3f}, memory {row['rss_mb']:.1f} MB",
        )
    table.add_row("errors in the log", str(failures))
    emit(table, {"cycles": lives, "stream": rows, "errors_in_the_log": failures})


if __name__ == "__main__":
    main()
