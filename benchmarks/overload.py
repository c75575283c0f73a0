"""Many clients at once, for most of a minute: which are refused or wait, are the texts exact?

The server is a process with its usual limits; the clients are in another process, which sends audio
in real time; this process requests /health meanwhile.

    python benchmarks/overload.py [--clients 20] [--seconds 47] [--speed 1]
"""

import argparse
import asyncio
import json
import multiprocessing
import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import websockets
from _report import emit
from _served import RATE, served, speech
from rich.table import Table

from nearfuture.runtime import load
from nearfuture.text import join_utterances

PIECE_S = 0.1
ASK_EVERY_S = 0.25


@dataclass
class ClientResult:
    """The outcome of one client."""

    client: int
    close: int | None
    refused: str | None = None
    text: str = ""
    final_ms: float | None = None  # from the end of the audio to the last text, at the client
    error: str | None = None


def tape(client: int, seconds: float) -> np.ndarray:
    return speech(seconds, seed=100 + client)


async def talk(url: str, client: int, seconds: float, speed: float) -> ClientResult:
    """Speak in real time, and listen."""
    data = tape(client, seconds).tobytes()
    size = 2 * int(RATE * PIECE_S)
    outcome = ClientResult(client, None)
    finished_s = 0.0

    async def speak(websocket: websockets.ClientConnection) -> None:
        nonlocal finished_s
        began = time.perf_counter()
        for number, at in enumerate(range(0, len(data), size)):
            due = began + number * PIECE_S / speed
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await websocket.send(data[at : at + size])
        await websocket.send('{"type": "finish"}')
        finished_s = time.perf_counter()

    await asyncio.sleep(client * 0.05)  # people do not all begin at once
    try:
        async with websockets.connect(url, compression=None) as websocket:
            await websocket.send('{"type": "hello"}')
            first = json.loads(await websocket.recv())
            if first["type"] == "error":
                outcome.refused = first["code"]
            else:
                speaking = asyncio.create_task(speak(websocket))
                try:
                    async for message in websocket:
                        update = json.loads(message)
                        if update["type"] == "error":
                            outcome.error = update["code"]
                        elif update["final"] and update["committed"]:
                            parts = [
                                (outcome.text, False),
                                (update["committed"], update["continues"]),
                            ]
                            outcome.text = join_utterances(parts)
                        if update.get("ended"):
                            outcome.final_ms = 1000 * (time.perf_counter() - finished_s)
                finally:
                    speaking.cancel()
            await websocket.wait_closed()
        outcome.close = websocket.close_code
    except (OSError, websockets.WebSocketException) as error:
        outcome.error = f"{type(error).__name__}: {error}"
        outcome.close = 1006
    return outcome


def crowd(url: str, clients: int, seconds: float, speed: float, pipe: Any) -> None:
    """All clients, in a process of their own."""

    async def main() -> list[ClientResult]:
        talks = (talk(url, client, seconds, speed) for client in range(clients))
        return await asyncio.gather(*talks)

    pipe.send(asyncio.run(main()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=47.0)
    parser.add_argument("--speed", type=float, default=1.0, help="times real time")
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    mine, theirs = spawn.Pipe()
    health: list[float] = []
    with served() as server:
        arguments = (server.url(), options.clients, options.seconds, options.speed, theirs)
        clients = spawn.Process(target=crowd, args=arguments)
        began, cpu_s = time.perf_counter(), server.cpu_s()
        clients.start()
        theirs.close()  # the other end closes with its process
        while not mine.poll(ASK_EVERY_S):
            health.append(server.health_ms())
        found: list[ClientResult] = mine.recv()
        took_s = time.perf_counter() - began
        cpu_s = server.cpu_s() - cpu_s
        clients.join()
        failures = server.failures()
    model = load("digits")
    served_clients = [one for one in found if one.refused is None]
    exact = sum(
        one.text == model.transcribe(tape(one.client, options.seconds)).text
        for one in served_clients
    )
    closes = Counter(str(one.close) for one in found)
    finals = [one.final_ms for one in served_clients if one.final_ms is not None]
    p50, p98 = np.percentile(health, (50, 98))
    table = Table(
        "figure",
        "value",
        title=f"{options.clients} clients, {options.seconds:g} s each, {options.speed:g} times "
        f"real time, one server of the bundled digits as it is by default",
    )
    table.add_row("closes by code", ", ".join(f"{code}: {n}" for code, n in closes.items()))
    table.add_row("refused at the door", str(len(found) - len(served_clients)))
    table.add_row("texts exact", f"{exact} of {len(served_clients)}")
    table.add_row("/health p50, p98, max", f"{p50:.1f}, {p98:.1f}, {max(health):.1f} ms")
    if finals:
        middle, most = np.percentile(finals, 50), max(finals)
        table.add_row("end of audio to last text p50, max", f"{middle:.0f}, {most:.0f} ms")
    table.add_row("processor time of the server", f"{cpu_s:.1f} s in {took_s:.1f} s")
    table.add_row("errors in the log", str(failures))
    results = {
        "clients": options.clients,
        "seconds": options.seconds,
        "speed": options.speed,
        "closes": dict(closes),
        "refused": len(found) - len(served_clients),
        "exact": exact,
        "health_ms": {"p50": p50, "p98": p98, "max": max(health), "asked": len(health)},
        "final_ms": finals,
        "cpu_s": cpu_s,
        "errors_in_the_log": failures,
        "each": [{k: v for k, v in asdict(one).items() if k != "text"} for one in found],
    }
    emit(table, results)


if __name__ == "__main__":
    main()
