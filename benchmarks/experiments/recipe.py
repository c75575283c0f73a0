"""What was tried: ways to train the twin, and ways for the streaming model to learn from it.

    python benchmarks/experiments/recipe.py [--steps 1000] [--write]

Connected digits. The first rows are bidirectional models; the others are streaming models that
differ in one thing from the way that the experiments use, all with one teacher: the first of the
bidirectional ones.
"""

import argparse
import shutil
from pathlib import Path

from _experiment import (
    DISTILLATION,
    HEADS,
    Experiment,
    bundle,
    evaluated,
    name_of,
    options,
    provenance,
    trained,
    write_page,
)
from _report import emit
from rich.table import Table

from nearfuture.data import Utterance
from nearfuture.training import ArchitectureOptions, DistillationOptions
from recipes.digits import HELD_OUT, DigitRecordings
from recipes.report import markdown

STRINGS_PER_SPEAKER = 100
SEED = 2026
TEACHER = "twin, Muon"
TWINS = {
    TEACHER: {},
    "twin, AdamW": {"muon_lr": 0.0},
    "twin, regularised": {"regularise": True},
}
WAYS = {
    "as used": DISTILLATION,
    "without a teacher": DistillationOptions(),
    "divergence × 1/3": DistillationOptions(distill=1.0, shifts=DISTILLATION.shifts),
    "no shift": DistillationOptions(distill=3.0),
    "without a teacher, delay penalty 0.1": DistillationOptions(delay_penalty=0.1),
}


def strings() -> list[Utterance]:
    recordings = DigitRecordings.load()
    speakers = (*recordings.seen, HELD_OUT)
    return recordings.strings(speakers, "dev", STRINGS_PER_SPEAKER, seed=SEED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--runs", type=Path, default=Path("runs/experiments/recipe"))
    parser.add_argument("--write", action="store_true", help="put the figures into the page")
    arguments = parser.parse_args()

    folders = {
        name: arguments.runs / name.replace(" ", "-").replace(",", "").replace("/", "-")
        for name in (*TWINS, *WAYS)
    }
    for name, folder in folders.items():
        twin = name in TWINS
        if not twin and not (folder / "bidirectional").exists():
            shutil.copytree(folders[TEACHER] / "bidirectional", folder / "bidirectional")
        changes = TWINS[name] if twin else {"distillation": WAYS[name]}
        changes = {"distillation": DistillationOptions(), **changes}
        trained(
            Experiment(
                model=ArchitectureOptions(
                    preset="small",
                    heads=None if twin else HEADS,
                    models="bidirectional" if twin else "streaming",
                ),
                options=options(steps=arguments.steps, **changes),
                folder=folder,
            )
        )

    test_set = strings()
    table = Table("model", "head", "WER %", "CER %", "emitted, p50 / p90 ms", "revisions")
    table.caption = (
        f"{len(test_set)} strings of recordings kept apart; {arguments.steps} steps each; emitted: "
        f"from the end of a word to the frame that writes its last character; revisions of shown "
        f"text per 100 words"
    )
    results = []
    for name, folder in folders.items():
        # The errors of a twin are found beside any streaming model.
        streaming = bundle(folders["as used"] if name in TWINS else folder, "streaming")
        summary = evaluated(folder, test_set, streaming=streaming).summary()
        heads = [summary.twin] if name in TWINS else list(summary.heads)
        for head in heads:
            assert head is not None
            late = head.emission_ms
            table.add_row(
                name,
                name_of(head),
                f"{100 * head.wer.value:.2f} ({100 * head.wer.low:.2f}–{100 * head.wer.high:.2f})",
                f"{100 * head.cer.value:.2f}",
                f"{late.p50:.0f} / {late.p90:.0f}",
                "" if head.frames is None else f"{head.revisions:.1f}",
            )
            results.append(
                {
                    "model": name,
                    "frames": head.frames,
                    "wer": 100 * head.wer.value,
                    "cer": 100 * head.cer.value,
                    "emission_p50_ms": late.p50,
                    "emission_p90_ms": late.p90,
                    "revisions": head.revisions,
                }
            )
    emit(table, results)
    if arguments.write:
        write_page(
            "recipe",
            {"table": f"{markdown(table)}\n\n{table.caption}.", "provenance": provenance(folders)},
        )


if __name__ == "__main__":
    main()
