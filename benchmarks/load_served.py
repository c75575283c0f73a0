"""Many live streams over websockets: what clients of a server at Deep Speech 2's size wait for.

N clients in real time with random phases, in this process; the server is another one, on the same
cores. Each says an utterance, finishes, waits for the last text, and begins the next at once, while
`/health` is asked twice a second. Random weights: they cost what trained ones cost. The engine
without a server is `load.py`.

    python benchmarks/load_served.py [--precision int8] [--streams 1 10 20] [--model digits]
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from _report import emit
from _served import Served, served
from _streams import CHUNK_MS
from rich.table import Table
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from nearfuture.runtime import Bundle

STREAMS = [1, 10, 20, 30, 64, 100, 128]
WARM_UP_S = 1.5
TOO_LATE_MS = 670.0  # ten times what Deep Speech 2 allowed: more streams would only wait longer


@dataclass
class Measurements:
    """The measurements of all clients; times in ms."""

    began: float
    compute: list[float] = field(default_factory=list)
    final_compute: list[float] = field(default_factory=list)
    final: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)

    def counts(self) -> bool:
        return time.perf_counter() > self.began + WARM_UP_S


@dataclass
class Row:
    """One number of streams."""

    precision: str
    streams: int
    compute_ms: list[float]
    final_compute_ms: list[float]
    final_ms: list[float]
    late_ms: list[float]
    health_ms: list[float]
    ends: dict[str, int]
    server_cores: float


async def speaker(
    server: Served,
    rate: int,
    measured: Measurements,
    until: float,
    utterance_s: tuple[float, float],
    n: int,
) -> None:
    """One client: utterance after utterance."""
    random = np.random.default_rng(n)
    chunk = rate * CHUNK_MS // 1000
    tape = np.round(3277 * random.standard_normal(10 * chunk)).astype("<i2").reshape(10, chunk)
    await asyncio.sleep(random.uniform(0, CHUNK_MS / 1000))
    share = random.uniform(0.1, 1)  # the first begins in its middle: ends come evenly
    while time.perf_counter() < until:
        chunks = int(share * random.uniform(*utterance_s) * 1000 / CHUNK_MS)
        share = 1.0
        try:
            await utterance(server, rate, measured, until, tape, chunks)
        except ConnectionClosed as closed:
            measured.ends[f"closed with {closed.rcvd.code if closed.rcvd else 1006}"] += 1
            await asyncio.sleep(0.5)
        except (InvalidStatus, OSError) as error:
            measured.ends[type(error).__name__] += 1
            await asyncio.sleep(0.5)


async def utterance(
    server: Served, rate: int, measured: Measurements, until: float, tape: np.ndarray, chunks: int
) -> None:
    async with connect(server.url(), compression=None, ping_interval=None) as client:
        hello = {"type": "hello", "version": 1, "rate": rate, "endpoint": None}
        await client.send(json.dumps(hello))
        await client.recv()
        finished = 0.0

        async def listen() -> None:
            async for message in client:
                update = json.loads(message)
                if update["type"] != "update":
                    measured.ends[update.get("code", update["type"])] += 1
                elif update["ended"]:
                    measured.ends["ended"] += 1
                    if measured.counts():
                        measured.final.append(1000 * (time.perf_counter() - finished))
                        measured.final_compute.append(update["compute_ms"])
                elif measured.counts():
                    measured.compute.append(update["compute_ms"])

        listening = asyncio.create_task(listen())
        began = time.perf_counter()
        for number in range(chunks):
            due = began + (number + 1) * CHUNK_MS / 1000
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if due > until:
                listening.cancel()
                return
            if measured.counts():
                measured.late.append(1000 * (time.perf_counter() - due))
            await client.send(tape[number % len(tape)].tobytes())
        finished = time.perf_counter()
        await client.send('{"type": "finish"}')
        await listening


async def measure_health(server: Served, measured: Measurements, until: float) -> None:
    while time.perf_counter() < until:
        measured.health.append(await asyncio.to_thread(server.health_ms))
        await asyncio.sleep(0.5)


async def run(
    server: Served, precision: str, rate: int, streams: int, options: argparse.Namespace
) -> Row:
    measured = Measurements(time.perf_counter())
    until = measured.began + WARM_UP_S + options.seconds
    cpu_s = server.cpu_s()
    await asyncio.gather(
        *(speaker(server, rate, measured, until, options.utterance, n) for n in range(streams)),
        measure_health(server, measured, until),
    )
    used = (server.cpu_s() - cpu_s) / (time.perf_counter() - measured.began)

    def percentiles(values: list[float], *of: float) -> list[float]:
        return np.percentile(values, of).round(2).tolist() if values else [float("nan")] * len(of)

    return Row(
        precision,
        streams,
        percentiles(measured.compute, 50, 98),
        percentiles(measured.final_compute, 50, 98),
        percentiles(measured.final, 50, 98),
        percentiles(measured.late, 50, 98),
        percentiles(measured.health, 50, 98, 100),
        dict(measured.ends),
        round(used, 2),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a bundle; by default Deep Speech 2, random")
    parser.add_argument("--precision", nargs="+", default=["int8"])
    parser.add_argument("--streams", nargs="+", type=int, default=STREAMS)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--utterance", nargs=2, type=float, default=(3.0, 9.0), metavar="S")
    options = parser.parse_args()
    if options.model is None:
        from _deployed import deployed

        options.model = deployed().folder
    bundle = Bundle.open(options.model)
    rows: list[Row] = []
    for precision in options.precision:
        most = str(2 * max(options.streams) + 8)
        limits = ("--max-load", "1e9", "--max-streams", most, "--precision", precision)
        with served(*limits, model=Path(bundle.folder)) as server:
            for streams in options.streams:
                rows.append(
                    asyncio.run(run(server, precision, bundle.manifest.rate, streams, options))
                )
                if not rows[-1].compute_ms[1] < TOO_LATE_MS:
                    break
    table = Table(
        "engine", "streams", "compute p50 / p98 ms", "final compute p50 / p98",
        "finish sent → last text p50 / p98", "/health p98 / max", "client late p98",
        "server, cores", "ends",
        title=f"{bundle.manifest.name} over websockets, {options.seconds:g} s each",
    )  # fmt: skip
    for row in rows:
        table.add_row(
            row.precision,
            str(row.streams),
            *(
                " / ".join(f"{ms:.1f}" for ms in values)
                for values in (
                    row.compute_ms,
                    row.final_compute_ms,
                    row.final_ms,
                    row.health_ms[1:],
                    row.late_ms[1:],
                )
            ),
            f"{row.server_cores:.2f}",
            ", ".join(f"{count} {name}" for name, count in row.ends.items()),
        )
    emit(table, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
