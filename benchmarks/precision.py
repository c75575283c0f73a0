"""What one step of Deep Speech 2's deployed size costs in each precision, at every batch.

CPU time and wall time of one quantum of all streams, on as many threads as asked for: the whole
step graph, PCM to log-probabilities, in float32, int8 and int4; and beside it torch with the five
recurrent layers alone, nn.GRU in float32 and with the dynamic int8 that torch has for it, whose
rows depend on their batch. Ways take turns, so that what else runs on the machine meets all of
them; the least is shown. The weights are random: good for speed only, so no error is shown.

    python benchmarks/precision.py [--bundle runs/deep-speech-2-deployed] [--threads 2] [--rounds 7]
"""

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _deployed import FOLDER, deployed
from _report import emit
from rich.console import Console
from rich.table import Table

from nearfuture.runtime import Bundle, Engine
from nearfuture.runtime.processor import offered

BATCHES = (1, 10, 20, 40, 64, 100)
Way = Callable[[int], Callable[[], Any]]  # streams → one step of them


def steps(bundle: Bundle, precision: str, threads: int) -> Way:
    engine = Engine(bundle, precision=precision, threads=threads)
    random = np.random.default_rng(0)

    def of(batch: int) -> Callable[[], Any]:
        quantum = engine.quantum_samples
        pcm = 0.1 * random.standard_normal((batch, quantum)).astype(np.float32)
        lengths = np.full(batch, quantum)
        state = engine.start(batch)
        for _ in range(3):
            _, state = engine.step(pcm, lengths, state)
        return lambda: engine.step(pcm, lengths, state)

    return of


def torch_gru(dynamic: bool) -> Way:
    net: torch.nn.Module = torch.nn.GRU(2560, 2560, 5, batch_first=True).eval()
    holder = torch.nn.ModuleDict({"gru": net})  # only what lies inside a module is quantised
    if dynamic:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says that this will move
            net = torch.ao.quantization.quantize_dynamic(holder, {torch.nn.GRU}, torch.qint8)["gru"]

    def of(batch: int) -> Callable[[], Any]:
        x = torch.randn(batch, 1, 2560)
        h = torch.randn(5, batch, 2560).tanh()

        def run() -> Any:
            with torch.inference_mode():
                return net(x, h)

        return run

    return of


def measured(ways: dict[str, Way], rounds: int) -> dict[str, dict[int, dict[str, float]]]:
    found: dict[str, dict[int, dict[str, float]]] = {name: {} for name in ways}
    for batch in BATCHES:
        ready = {name: way(batch) for name, way in ways.items()}
        took: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for turn in range(rounds + 1):
            for name, run in ready.items():
                wall, cpu = time.perf_counter(), time.process_time()
                run()
                if turn:  # the first warms up
                    took[name].append((time.perf_counter() - wall, time.process_time() - cpu))
        for name, times in took.items():
            wall, cpu = 1000 * np.min(times, axis=0)
            found[name][batch] = {"wall_ms": float(wall), "cpu_ms": float(cpu)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundle", type=Path, default=FOLDER)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    bundle = deployed(options.bundle)
    precisions = [one for one in ("float32", *bundle.manifest.precisions) if one in offered()]
    ways = {name: steps(bundle, name, options.threads) for name in precisions}
    ways |= {"torch nn.GRU float32": torch_gru(False), "torch nn.GRU dynamic int8": torch_gru(True)}
    found = measured(ways, options.rounds)
    for kind, what in (("wall_ms", "wall"), ("cpu_ms", "CPU")):
        title = f"ms of {what} a step, {options.threads} threads, by number of streams"
        table = Table("", *map(str, BATCHES), title=title)
        for name, row in found.items():
            times = [row[batch][kind] for batch in BATCHES]
            table.add_row(name, *(f"{ms:.1f}" for ms in times))
            if name in bundle.manifest.precisions:
                whole = [found["float32"][batch][kind] for batch in BATCHES]
                ratios = [one / ms for one, ms in zip(whole, times, strict=True)]
                table.add_row("  float32 / this", *(f"{ratio:.1f}×" for ratio in ratios))
        if kind == "wall_ms":
            Console(width=120).print(table)
    emit(table, {"threads": options.threads, "ways": found})


if __name__ == "__main__":
    main()
