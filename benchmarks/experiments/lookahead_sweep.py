"""(c) A lookahead of 0 to 30 frames on connected digits: does more future always help?

    python benchmarks/experiments/lookahead_sweep.py [--steps 3000] [--write]

One streaming checkpoint with thirteen heads over one encoder, which learns from the bidirectional
model of experiment (a), seed 0. The heads differ in nothing but their lookahead.
"""

import argparse
import dataclasses
import shutil
from pathlib import Path

from _experiment import (
    DISTILLATION,
    PAGES,
    Experiment,
    bundle,
    evaluated,
    name_of,
    options,
    provenance,
    trained,
    wait_of,
    write_page,
)  # fmt: skip
from _report import emit
from rich.table import Table

from nearfuture.evaluation import paired_bootstrap, plot_error_against_latency
from nearfuture.training import ArchitectureOptions
from recipes.digits import HELD_OUT, DigitRecordings
from recipes.report import markdown

HEADS = (0, 1, 2, 3, 4, 6, 8, 10, 12, 15, 19, 25, 30)
STRINGS_PER_SPEAKER = 300
SEED = 2025


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--runs", type=Path, default=Path("runs/experiments"))
    parser.add_argument("--write", action="store_true", help="put the figures into the page")
    arguments = parser.parse_args()

    teacher, folder = arguments.runs / "digits" / "seed-0", arguments.runs / "sweep"
    if not bundle(teacher, "bidirectional").exists():
        raise SystemExit("the bidirectional model is that of experiment (a): run digits.py first")
    if not (folder / "bidirectional").exists():
        shutil.copytree(teacher / "bidirectional", folder / "bidirectional")
    distillation = dataclasses.replace(DISTILLATION, shifts={0: 2, 1: 1})
    trained(
        Experiment(
            model=ArchitectureOptions(preset="small", heads=HEADS, models="streaming"),
            options=options(steps=arguments.steps, distillation=distillation),
            folder=folder,
        )
    )
    recordings = DigitRecordings.load()
    strings = recordings.strings(
        (*recordings.seen, HELD_OUT), "test", STRINGS_PER_SPEAKER, seed=SEED
    )
    found = evaluated(folder, strings)
    summary = found.summary()
    table = Table("model", "latency", "WER %", "CER %", "CER to the head before it, %")
    results, before = [], None
    assert summary.twin is not None
    for head in (*summary.heads, summary.twin):
        change = ""
        readings = [
            one.twin if head.frames is None else one.heads[head.frames] for one in found.results
        ]
        errors = [reading.character_errors for reading in readings if reading]
        if before is not None and head.frames is not None:
            step = paired_bootstrap(errors, before)
            change = f"{step.value:+.1f} ({step.low:+.1f} to {step.high:+.1f})"
        before = errors
        table.add_row(
            name_of(head),
            wait_of(head),
            f"{100 * head.wer.value:.2f} ({100 * head.wer.low:.2f}–{100 * head.wer.high:.2f})",
            f"{100 * head.cer.value:.2f} ({100 * head.cer.low:.2f}–{100 * head.cer.high:.2f})",
            change,
        )
        results.append(
            {"frames": head.frames, "wer": 100 * head.wer.value, "cer": 100 * head.cer.value}
        )
    table.caption = (
        f"{summary.utterances} strings of {summary.speakers} speakers, one of them never heard"
    )
    emit(table, results)
    if arguments.write:
        plot_error_against_latency({"connected digits": found}, PAGES / "lookahead-sweep.svg")
        write_page(
            "lookahead-sweep",
            {
                "table": f"{markdown(table)}\n\n{table.caption}.",
                "plot": "![Character error rate against latency](lookahead-sweep.svg)",
                "provenance": provenance({"all heads": folder}),
            },
        )


if __name__ == "__main__":
    main()
