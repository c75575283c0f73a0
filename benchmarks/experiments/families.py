"""Families of encoders at one size, on connected digits, at the same three budgets.

    python benchmarks/experiments/families.py [--steps 1000] [--only NAME …] [--write]

Each model is trained by itself: the same steps, seed and data, and no teacher. `--only` trains some
of them, in processes of their own where there are cores; without it the table is made of all. The
bidirectional model also aligns the references, which tells where words end.
"""

import argparse
import math
import time
from collections.abc import Sequence
from pathlib import Path

from _experiment import (
    PAGES,
    TWIN,
    Experiment,
    bundle,
    evaluated,
    options,
    provenance,
    trained,
    write_page,
)
from _report import emit
from rich.table import Table

from nearfuture.budget import largest_lookahead
from nearfuture.data import Utterance
from nearfuture.evaluation import HeadMetrics, plot_error_against_latency
from nearfuture.runtime import Bundle, Engine, load
from nearfuture.training import ArchitectureOptions, DistillationOptions
from recipes.digits import HELD_OUT, DigitRecordings
from recipes.report import markdown

SEED, STRINGS_SEED = 0, 2026
STRINGS_PER_SPEAKER = 50
BUDGETS_MS = (215, 375, 815)
FAMILIES = {
    "row convolution": ArchitectureOptions(preset="small", models="streaming"),
    "chunked attention": ArchitectureOptions(preset="small-conformer", models="streaming"),
    "bidirectional": ArchitectureOptions(preset="small", models="bidirectional"),
}
"""A row of the table each; the last is the twin of the first."""
STREAMING = [name for name, model in FAMILIES.items() if model.models == "streaming"]


def folder_of(name: str, runs: Path) -> Path:
    """Where the model of a family is trained."""
    return runs / name.replace(" ", "-")


def train_family(name: str, steps: int, runs: Path) -> Path:
    """The folder of a trained model."""
    return trained(
        Experiment(
            model=FAMILIES[name],
            options=options(steps=steps, seed=SEED, distillation=DistillationOptions()),
            folder=folder_of(name, runs),
        )
    )


def state_bytes(path: Path) -> int:
    """What a stream is between two quanta."""
    return sum(array.nbytes for array in Engine(Bundle.open(path)).start(1).values())


def real_time_factor(path: Path, strings: Sequence[Utterance]) -> float:
    """Processor time of one thread per duration of the recordings, whatever else runs."""
    model = load(path)
    streams = Bundle.open(path).manifest.kind == "streaming"
    seconds = busy_s = 0.0
    for string in strings:
        began = time.thread_time()
        if streams:
            stream = model.stream(model.rate)
            size = model.rate // 25  # as a client sends it
            for at in range(0, len(string.samples), size):
                stream.accept(string.samples[at : at + size])
            stream.finish()
        else:
            model.transcribe(string.samples, model.rate)
        busy_s += time.thread_time() - began
        seconds += len(string.samples) / model.rate
    return busy_s / seconds


def cells_of(metrics: HeadMetrics) -> tuple[list[str], dict[str, float]]:
    """What the table and the JSON line say of a head: errors with intervals, and delays."""
    found = {
        "wer": 100 * metrics.wer.value,
        "cer": 100 * metrics.cer.value,
        "emission_p50_ms": metrics.emission_ms.p50,
        "emission_p90_ms": metrics.emission_ms.p90,
        "commit_p50_ms": metrics.commit_ms.p50,
        "commit_p90_ms": metrics.commit_ms.p90,
    }
    wer, cer = (
        f"{100 * rate.value:.1f} ({100 * rate.low:.1f}–{100 * rate.high:.1f})"
        for rate in (metrics.wer, metrics.cer)
    )
    delays = [
        f"{delay.p50:.0f} / {delay.p90:.0f}" if delay.count else "–"
        for delay in (metrics.emission_ms, metrics.commit_ms)
    ]
    known = {name: round(value, 3) for name, value in found.items() if math.isfinite(value)}
    return [wer, cer, *delays], known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--only", nargs="+", choices=FAMILIES, help="train these and stop")
    parser.add_argument("--runs", type=Path, default=Path("runs/experiments/families"))
    parser.add_argument("--write", action="store_true", help="put the figures into the page")
    arguments = parser.parse_args()

    folders = {
        name: train_family(name, arguments.steps, arguments.runs)
        for name in arguments.only or FAMILIES
    }
    if arguments.only:
        return
    recordings = DigitRecordings.load()
    speakers = (*recordings.seen, HELD_OUT)
    strings = list(recordings.strings(speakers, "test", STRINGS_PER_SPEAKER, seed=STRINGS_SEED))
    twin_bundle = bundle(folders["bidirectional"], "bidirectional")
    table = Table(
        "model", "parameters", "latency", "τ", "WER %", "CER %",
        "emitted, p50 / p90 ms", "committed, p50 / p90 ms", "real-time factor", "state of a stream",
    )  # fmt: skip
    results, evaluations = [], {}
    for name in STREAMING:
        path = bundle(folders[name], "streaming")
        found = evaluated(folders["bidirectional"], strings, folders[name].name, streaming=path)
        evaluations[name] = found
        heads = {head.frames: head for head in found.summary().heads}
        rtf, size = real_time_factor(path, strings), state_bytes(path)
        for budget_ms in BUDGETS_MS:
            tau = largest_lookahead(budget_ms, found.streaming.heads)
            cells, figures = cells_of(heads[tau])
            table.add_row(
                name,
                f"{found.streaming.parameters:,}",
                f"{found.streaming.heads[tau].worst_ms:g} ms",
                str(tau),
                *cells,
                f"{rtf:.4f}",
                f"{size / 1024:.1f} KiB",
            )
            results.append(
                {"model": name, "budget_ms": budget_ms, "frames": tau, **figures}
                | {"real_time_factor": round(rtf, 5), "state_bytes": size}
            )
    summary = evaluations[STREAMING[0]].summary()
    assert summary.twin is not None
    cells, figures = cells_of(summary.twin)
    rtf = real_time_factor(twin_bundle, strings)
    parameters = Bundle.open(twin_bundle).manifest.parameters
    table.add_row(TWIN, f"{parameters:,}", "the whole utterance", "–", *cells, f"{rtf:.4f}", "–")
    results.append({"model": TWIN, **figures, "real_time_factor": round(rtf, 5)})
    table.caption = (
        f"{summary.utterances} strings of {summary.speakers} speakers, one of them never heard; "
        f"{arguments.steps} steps each, seed {SEED}, no teacher; intervals are 95 % over strings; "
        f"processor time of one thread per duration of the audio"
    )
    emit(table, {"steps": arguments.steps, "models": results})
    if arguments.write:
        plot_error_against_latency(evaluations, PAGES / "families.svg", measure="wer")
        write_page(
            "families",
            {
                "table": f"{markdown(table)}\n\n{table.caption}.",
                "plot": "![Word error rate against latency](families.svg)",
                "provenance": provenance(folders),
            },
        )


if __name__ == "__main__":
    main()
