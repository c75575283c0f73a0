"""(b) Sentences by two hundred people: how close a fixed look ahead comes to the whole utterance.

    python benchmarks/experiments/speechocean762.py [--write]
    python benchmarks/experiments/speechocean762.py --only real      # one of the two trainings

A bidirectional model and the streaming one that learns from it, trained on the training speakers,
with and without synthetic speech; tested on the 46 test speakers. Differences to the twin
are paired, and drawn by speaker.
"""

import argparse
import dataclasses
from pathlib import Path

from _experiment import (
    HEADS,
    PAGES,
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

from nearfuture.data import Cut, corpus_folder, read_source
from nearfuture.evaluation import Evaluation, plot_error_against_latency
from nearfuture.training import ArchitectureOptions, DataOptions
from recipes.report import markdown

RATE = 16000
KINDS = {"mixed": ("speechocean762", "kokoro"), "real": ("speechocean762",)}
EPOCHS = 12  # 9,255 steps of the mixed ones, 3,900 of the real ones
NAMES = {"mixed": "with synthetic speech", "real": "real recordings alone"}


def corpus(name: str) -> Path:
    folder = corpus_folder(name)
    if folder is None:
        raise SystemExit(f"the corpus {name} is not under NEARFUTURE_CORPORA")
    return folder / "manifest.tsv"


def experiment(kind: str, runs: Path) -> Experiment:
    return Experiment(
        data=DataOptions(data=tuple(corpus(name) for name in KINDS[kind])),
        model=ArchitectureOptions(preset="small", rate=RATE, heads=HEADS),
        options=options(epochs=EPOCHS),
        folder=runs / kind,
    )


def test_items() -> list[Cut]:
    return [item for item in read_source(corpus("speechocean762")).cuts if item.split == "test"]


def part(whole: Evaluation, names: frozenset[str]) -> Evaluation:
    chosen = tuple(one for one in whole.results if one.name in names)
    return dataclasses.replace(whole, results=chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=sorted(KINDS))
    parser.add_argument("--runs", type=Path, default=Path("runs/experiments/speechocean762"))
    parser.add_argument("--write", action="store_true", help="put the figures into the page")
    arguments = parser.parse_args()

    kinds = [arguments.only] if arguments.only else list(KINDS)
    found = {
        kind: evaluated(trained(experiment(kind, arguments.runs)), test_items()) for kind in kinds
    }
    source = read_source(corpus("speechocean762")).cuts
    heard = {item.text for item in source if item.split == "train"}
    test = test_items()
    subsets = {
        "all": frozenset(item.name for item in test),
        "clear": frozenset(item.name for item in test if item.fields["clear"] == "1"),
        "new": frozenset(item.name for item in test if item.text not in heard),
    }
    table = Table(
        "training", "model", "latency", "CER %", "to the twin, %", "WER %",
        "clear speakers: CER %", "to the twin, %", "new sentences: CER %", "to the twin, %",
    )  # fmt: skip
    results = []
    for kind, whole in found.cuts():
        summaries = {name: part(whole, names).summary("speaker") for name, names in subsets.cuts()}
        everything = summaries["all"]
        for place, head in enumerate([*everything.heads, everything.twin]):
            assert head is not None
            cells, figures = [], {"training": kind, "model": name_of(head)}
            for name, summary in summaries.cuts():
                one = [*summary.heads, summary.twin][place]
                assert one is not None
                cells.append(
                    f"{100 * one.cer.value:.2f} ({100 * one.cer.low:.1f}–{100 * one.cer.high:.1f})"
                )
                relative = one.cer_to_twin
                cells.append(
                    "" if relative is None
                    else f"{relative.value:+.1f} ({relative.low:+.1f} to {relative.high:+.1f})"
                )  # fmt: skip
                figures[name] = {
                    "cer": round(100 * one.cer.value, 3),
                    "wer": round(100 * one.wer.value, 3),
                    "to twin": None if relative is None else dataclasses.astuple(relative),
                }
                if name == "all":
                    cells.append(f"{100 * one.wer.value:.1f}")
            table.add_row(NAMES[kind], name_of(head), wait_of(head), *cells)
            results.append(figures)
        assert whole.twin is not None
        table.caption = (
            f"{everything.utterances} utterances, {everything.characters:,} characters, "
            f"{everything.speakers} speakers; 95 % intervals by speaker; "
            f"{whole.streaming.parameters:,} parameters streaming, {whole.twin.parameters:,} twin"
        )
    emit(table, results)
    if arguments.write:
        plot_error_against_latency(
            {NAMES[kind]: one for kind, one in found.cuts()},
            PAGES / "speechocean762.svg",
            by="speaker",
        )
        write_page(
            "speechocean762",
            {
                "table": f"{markdown(table)}\n\n{table.caption}.",
                "plot": "![Character error rate against latency](speechocean762.svg)",
                "provenance": provenance({NAMES[kind]: arguments.runs / kind for kind in found}),
            },
        )


if __name__ == "__main__":
    main()
