"""Many live streams at Deep Speech 2's deployed size: latency, finalisation, where time goes.

N streams in real time with random phases, each an utterance and then another one, for some seconds
each N; in this process, through `Dispatcher`. Beside them Deep Speech 2's published
figures and torch's `nn.GRU` of the same size stepping batches of N. Random weights: they cost what
trained ones cost.

    python benchmarks/load.py [--precision int8 float32] [--ceiling] [--profile] [--hours 1]
"""

import argparse
import math
import sys
import threading
import time
import warnings
from dataclasses import asdict
from typing import Any

import numpy as np
from _report import emit
from _streams import LIMIT_MS, Run, real_time, resident_mb
from rich.console import Console
from rich.table import Table

from nearfuture.runtime import Bundle, Dispatcher

STREAMS = [1, 10, 20, 30, 64, 100, 128]
# arXiv 1512.02595: the end of an utterance → its text, on one GPU. 10 streams: section 7.1 says 44
# and 70 ms (the introduction 67); 20 and 30 are read from its figure.
PUBLISHED = {10: (44, 70), 20: (48, 86), 30: (67, 114)}
HIDDEN, LAYERS = 2560, 5


def ceiling(dispatcher: Dispatcher, runs: list[Run], options: argparse.Namespace) -> int:
    """The most streams within the limit, by bisection between what is known."""
    good = max((run.streams for run in runs if run.keeps_up), default=0)
    bad = min((run.streams for run in runs if run.streams > good), default=options.most + 1)
    while bad - good > max(1, good // 32):
        middle = (good + bad) // 2
        if real_time(dispatcher, middle, options.seconds, options.utterance).keeps_up:
            good = middle
        else:
            bad = middle
    return good


class Clockless:
    """Streams that are fed the next quantum as soon as all have emitted something for the last."""

    def __init__(self, dispatcher: Dispatcher, streams: int) -> None:
        self.updates = threading.Semaphore(0)
        self.streams = [dispatcher.open(on_event=self._heard) for _ in range(streams)]
        self.samples = dispatcher.manifest.quantum_samples
        self.random = np.random.default_rng(0)

    def _heard(self, _: object) -> None:
        self.updates.release()

    def round(self) -> float:
        """One quantum of each; milliseconds."""
        samples = (0.1 * self.random.standard_normal(self.samples)).astype(np.float32)
        began = time.perf_counter()
        for stream in self.streams:
            stream.accept(samples)
        for _ in self.streams:
            self.updates.acquire()
        return 1000 * (time.perf_counter() - began)

    def close(self) -> None:
        for stream in self.streams:
            stream.close()


def fast_clock(dispatcher: Dispatcher, streams: int, hours: float) -> dict[str, float]:
    """What a quantum costs old streams beside new ones, by turns, and what memory grew."""
    old = Clockless(dispatcher, streams)
    quanta = int(hours * 3600 * dispatcher.manifest.rate / old.samples)
    for _ in range(quanta // 60):
        old.round()
    before = resident_mb()
    for _ in range(quanta - quanta // 60):
        old.round()
    grown = resident_mb() - before
    new = Clockless(dispatcher, streams)
    pairs = np.array([(old.round(), new.round()) for _ in range(min(1500, quanta))])
    old.close()
    new.close()
    old_ms, new_ms = np.median(pairs, axis=0).tolist()
    return {
        "streams": streams,
        "hours": hours,
        "new_ms": new_ms,
        "old_ms": old_ms,
        "ratio": old_ms / new_ms,
        "grown_mb": grown,
    }


def whole_round(dispatcher: Dispatcher, streams: int) -> float:
    """Milliseconds of one round in which all N have a quantum."""
    crowd = Clockless(dispatcher, streams)
    parts = ("gather", "run", "scatter", "decode", "deliver")
    took = []
    for _ in range(7):
        before = dispatcher.stats().spent_s
        crowd.round()
        time.sleep(0.005)  # for the engine to write it down
        after = dispatcher.stats().spent_s
        took.append(sum(after.get(part, 0) - before.get(part, 0) for part in parts))
    crowd.close()
    return 1000 * float(np.median(took[2:]))


def torch_steps(streams: list[int], threads: int) -> dict[str, dict[int, float]]:
    """Milliseconds of one step of five GRU layers of 2560 and nothing else, N rows at once."""
    import torch

    torch.set_num_threads(threads)
    gru = torch.nn.GRU(HIDDEN, HIDDEN, LAYERS).eval()
    models = {"torch nn.GRU float32": gru}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # What is quantised is what a module contains.
        holder = torch.ao.quantization.quantize_dynamic(
            torch.nn.Sequential(gru), {torch.nn.GRU}, dtype=torch.qint8
        )
    models["torch nn.GRU dynamic int8"] = holder[0]
    assert type(holder[0]) is not type(gru)
    results: dict[str, dict[int, float]] = {}
    for name, model in models.items():
        results[name] = {}
        for rows in streams:
            x, h = torch.randn(1, rows, HIDDEN), torch.zeros(LAYERS, rows, HIDDEN)
            took = []
            with torch.inference_mode():
                for _ in range(9):
                    began = time.perf_counter()
                    model(x, h)
                    took.append(time.perf_counter() - began)
            results[name][rows] = 1000 * float(np.median(took[2:]))
    return results


def main_sizes(sizes: dict[int, int]) -> str:
    """The histogram in a cell: what a stream's quantum most often shared its round with."""
    rows = [size for size, count in sizes.items() for _ in range(count)]
    if not rows:
        return "-"
    low, middle, high = np.percentile(rows, (5, 50, 95)).astype(int)
    return f"{low}-{middle}-{high}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a bundle; by default Deep Speech 2, random")
    parser.add_argument("--precision", nargs="+", default=["int8", "float32"])
    parser.add_argument("--streams", nargs="+", type=int, default=STREAMS)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--utterance", nargs=2, type=float, default=(3.0, 9.0), metavar="S")
    parser.add_argument("--threads", type=int, help="by default the physical cores")
    parser.add_argument("--ceiling", action="store_true", help="find the most streams by bisection")
    parser.add_argument("--most", type=int, default=256, help="streams that bisection tries")
    parser.add_argument("--hours", type=float, default=0.0, help="of audio, on a fast clock")
    parser.add_argument("--profile", action="store_true", help="a table of where time goes")
    parser.add_argument("--no-torch", action="store_true")
    options = parser.parse_args()
    if options.model is None:
        from _deployed import deployed

        measure(deployed(), options)
    else:
        measure(Bundle.open(options.model), options)


def measure(bundle: Bundle, options: argparse.Namespace) -> None:
    runs: list[Run] = []
    rounds: dict[str, dict[int, float]] = {}
    results: dict[str, Any] = {"model": bundle.manifest.name, "seconds": options.seconds}
    results["utterance_s"] = options.utterance
    ceilings, clocks = {}, []
    most = max([*options.streams, options.most if options.ceiling else 1, 40 * bool(options.hours)])
    for precision in options.precision:
        dispatcher = Dispatcher(
            bundle,
            precision=precision,
            threads=options.threads,
            max_streams=most + most // 4 + 8,  # who ends is replaced before the place is free
            max_load=math.inf,
        )
        results["threads"] = dispatcher.threads
        with dispatcher:
            rounds[precision] = {}
            mine: list[Run] = []
            for streams in options.streams:
                rounds[precision][streams] = whole_round(dispatcher, streams)
                mine.append(real_time(dispatcher, streams, options.seconds, options.utterance))
                if not mine[-1].compute_p98 < 10 * LIMIT_MS:
                    break  # it falls behind: more streams only fall further
            if options.ceiling:
                ceilings[precision] = ceiling(dispatcher, mine, options)
            if options.hours:
                clocks += [
                    {"precision": precision, **fast_clock(dispatcher, n, options.hours)}
                    for n in (1, 20)
                ]
            runs += mine
    steps = {} if options.no_torch else torch_steps(options.streams, results["threads"])
    table = latency_table(runs, rounds, steps, ceilings, results)
    console = Console(width=None if sys.stdout.isatty() else 140)
    if options.profile:
        console.print(profile_table(runs))
    for clock in clocks:
        console.print(
            "{precision}, {streams} streams: a round costs {old_ms:.2f} ms after {hours:g} h of "
            "audio, {new_ms:.2f} ms at the start, {ratio:.3f} times as much; "
            "{grown_mb:+.1f} MB meanwhile".format(**clock)
        )
    results |= {
        "runs": [
            {
                key: None if isinstance(value, float) and not math.isfinite(value) else value
                for key, value in asdict(run).items()
            }
            for run in runs
        ],
        "round_ms": rounds,
        "torch_step_ms": steps,
        "most_streams_within_the_limit": ceilings,
        "fast_clock": clocks,
        "published_final_ms": {"Deep Speech 2, one GPU": PUBLISHED},
    }
    emit(table, results)


def latency_table(
    runs: list[Run],
    rounds: dict[str, dict[int, float]],
    steps: dict[str, dict[int, float]],
    ceilings: dict[str, int],
    about: dict[str, Any],
) -> Table:
    table = Table(
        "engine",
        "streams",
        "compute p50 ms",
        "p98",
        "final p50 ms",
        "p98",
        "batch 5-50-95 %",
        "load",
        "all in a round, ms",
        title=f"{about['model']}, {about['threads']} threads, {about['seconds']:g} s each, "
        f"utterances of {about['utterance_s'][0]:g} to {about['utterance_s'][1]:g} s",
    )
    for run in runs:
        table.add_row(
            run.precision,
            str(run.streams),
            *(
                f"{ms:.1f}"
                for ms in (run.compute_p50, run.compute_p98, run.final_p50, run.final_p98)
            ),
            main_sizes(run.batch_sizes),
            f"{run.load:.2f}",
            f"{rounds[run.precision][run.streams]:.1f}",
        )
    for streams, (p50, p98) in PUBLISHED.items():
        table.add_row("Deep Speech 2, GPU", str(streams), "", "", f"{p50}", f"{p98}", "", "", "")
    for name, by_rows in steps.items():
        for streams, ms in by_rows.items():
            table.add_row(name, str(streams), *[""] * 6, f"{ms:.1f}")
    table.caption = "torch: the recurrent layers alone, one step. "
    if ceilings:
        table.caption += f"Most streams with p98 < {LIMIT_MS:g} ms: " + ", ".join(
            f"{precision} {streams}" for precision, streams in ceilings.items()
        )
    return table


def profile_table(runs: list[Run]) -> Table:
    parts = ["run", "gather", "scatter", "finish", "decode", "deliver", "idle", "resample"]
    table = Table(
        "engine",
        "streams",
        *parts,
        "feeder late p98 ms",
        "RSS MB",
        title="share of the time, %; resample in the feeder's thread, the rest in the engine's",
    )
    for run in runs:
        shares = [f"{100 * run.share.get(part, 0):.1f}" for part in parts]
        table.add_row(
            run.precision,
            str(run.streams),
            *shares,
            f"{run.feeder_late_p98:.1f}",
            f"{run.rss_mb:.0f}",
        )
    return table


if __name__ == "__main__":
    main()
