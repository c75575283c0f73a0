"""(a) Connected digits: what each millisecond of lookahead buys, over several seeds.

    python benchmarks/experiments/digits.py [--seeds 0 1 2] [--steps 3000] [--write]

For each seed a bidirectional model and the streaming one that learns from it, with nothing shared
between seeds; test strings of held-out recordings, of speakers known from training and of one never
heard. One process each for single seeds makes use of more cores; what is there is not made again.
"""

import argparse
from pathlib import Path

from _experiment import (
    HEADS,
    PAGES,
    TWIN,
    Experiment,
    evaluated,
    name_of,
    options,
    provenance,
    trained,
    wait_of,
    write_page,
)
from _report import emit
from rich.table import Table

from nearfuture.evaluation import Evaluation, plot_error_against_latency
from nearfuture.training import ArchitectureOptions
from recipes.digits import HELD_OUT, DigitRecordings
from recipes.report import markdown, mean_over_seeds

STRINGS_PER_SPEAKER = 100
SEED = 2024
SETS = {"seen": "speakers known from training", "held-out": f"a speaker never heard ({HELD_OUT})"}


def evaluations(seed: int, steps: int, runs: Path) -> dict[str, Evaluation]:
    folder = trained(
        Experiment(
            model=ArchitectureOptions(preset="small", heads=HEADS),
            options=options(steps=steps, seed=seed),
            folder=runs / f"seed-{seed}",
        )
    )
    recordings = DigitRecordings.load()
    speakers = {"seen": recordings.seen, "held-out": (HELD_OUT,)}
    return {
        name: evaluated(
            folder,
            recordings.strings(speakers[name], "test", STRINGS_PER_SPEAKER, seed=SEED),
            name,
        )
        for name in SETS
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--runs", type=Path, default=Path("runs/experiments/digits"))
    parser.add_argument("--write", action="store_true", help="put the figures into the page")
    arguments = parser.parse_args()

    of_seed = {seed: evaluations(seed, arguments.steps, arguments.runs) for seed in arguments.seeds}
    table = Table(
        "model", "latency", *(f"{kind}: {rate} %" for kind in SETS for rate in ("WER", "CER"))
    )
    results = []
    summaries = {
        seed: {name: one.summary() for name, one in found.items()}
        for seed, found in of_seed.items()
    }
    first = summaries[arguments.seeds[0]]["seen"]
    for place, head in enumerate([*first.heads, first.twin]):
        assert head is not None
        cells, figures = [], {"model": name_of(head)}
        for name in SETS:
            for rate in ("wer", "cer"):
                values = []
                for seed in arguments.seeds:
                    summary = summaries[seed][name]
                    one = [*summary.heads, summary.twin][place]
                    assert one is not None
                    values.append(100 * getattr(one, rate).value)
                mean, half = mean_over_seeds(values)
                cells.append(f"{mean:.2f} ± {half:.2f}")
                figures[f"{name} {rate}"] = [round(value, 3) for value in values]
        table.add_row(name_of(head), wait_of(head), *cells)
        results.append(figures)
    one = of_seed[arguments.seeds[0]]["seen"]
    assert one.twin is not None
    counts = f"{one.streaming.parameters:,} parameters streaming, {one.twin.parameters:,} {TWIN}"
    table.caption = (
        f"mean over seeds {', '.join(map(str, arguments.seeds))} with its 95 % interval (Student's "
        f"t); {first.utterances} strings of {first.speakers} speakers, "
        f"{STRINGS_PER_SPEAKER} of the other; {counts}"
    )
    emit(table, {"seeds": arguments.seeds, "steps": arguments.steps, "heads": results})
    if arguments.write:
        plot_error_against_latency(
            {SETS[name]: found for name, found in of_seed[arguments.seeds[0]].items()},
            PAGES / "digits.svg",
            measure="wer",
        )
        folders = {f"seed {seed}": arguments.runs / f"seed-{seed}" for seed in arguments.seeds}
        write_page(
            "digits",
            {
                "table": f"{markdown(table)}\n\n{table.caption}.",
                "plot": "![Word error rate against latency](digits.svg)",
                "provenance": provenance(folders),
            },
        )


if __name__ == "__main__":
    main()
