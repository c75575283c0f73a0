"""What a preset learns in the same time: ten words, one core, a streaming model alone.

    python benchmarks/experiments/presets.py [--seconds 240] [--presets tiny,base,small]

The single recordings of the Free Spoken Digit Dataset as anybody would train on them: those of its
split train, of which one speaker is set aside to watch; judged by its 300 test recordings, through
the bundle. Each preset is trained for so many seconds of the processor, of all threads together, so
that a busy machine is no worse than a quiet one; its steps are as many as a short trial says will
fit, looks at the recordings set aside included.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, get_args

import torch
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))
from _report import emit

from nearfuture.budget import Preset
from nearfuture.data import Cut, corpus_folder, read_source
from nearfuture.evaluation import evaluate_bundles
from nearfuture.runtime import load
from nearfuture.training import (
    ArchitectureOptions,
    DataOptions,
    Group,
    HardwareOptions,
    ProgressEvent,
    ProgressReporter,
    ScheduleOptions,
    StepProgress,
    TrainingOptions,
    architectures,
    read_training_data,
    train,
)

TRIED = 12
"""Steps of the trial, of which every other one is followed by a validation."""
VALIDATIONS = 10
BATCH_S = 20.0
BUDGET_FRAMES = 8


def run(
    preset: Any, steps: int, folder: Path, source: Path, progress: ProgressReporter | None = None
) -> None:
    model = ArchitectureOptions(preset=preset, models="streaming")
    options = TrainingOptions(
        schedule=ScheduleOptions(steps=steps),
        regularise=False,
        hardware=HardwareOptions(threads=1),
    )
    config = architectures(model, options)["streaming"]
    recordings = DataOptions(data=(source,), batch_seconds=BATCH_S)
    data = read_training_data(recordings, config, seed=0, group=Group())
    train(data, model, options, folder, progress=progress)


class Stopwatch(ProgressReporter):
    """Takes the time of steps, and of those that are followed by a validation."""

    def __init__(self) -> None:
        self.took: dict[bool, list[float]] = {False: [], True: []}
        self._last = time.process_time()

    def report(self, model: str, event: ProgressEvent | StepProgress) -> None:
        now = time.process_time()
        if isinstance(event, StepProgress):
            self.took[bool(event.validation)].append(now - self._last)
        self._last = now


def steps_in(seconds: float, preset: str, folder: Path, source: Path) -> int:
    """How many steps there is time for, with the ten validations set aside."""
    stopwatch = Stopwatch()
    run(preset, TRIED, folder, source, stopwatch)
    step, validated = (statistics.median(stopwatch.took[what]) for what in (False, True))
    return max(10, round((seconds - VALIDATIONS * (validated - step)) / step))


def learnt(preset: str, seconds: float, source: Path, test_cuts: list[Cut]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        steps = steps_in(seconds, preset, Path(name) / "trial", source)
        began = time.process_time()
        run(preset, steps, Path(name) / "run", source)
        took = time.process_time() - began
        bundle = Path(name) / "run" / "streaming" / "bundle"
        model = load(bundle)
        began = time.process_time()
        summary = evaluate_bundles(bundle, None, test_cuts, heads=(BUDGET_FRAMES,)).summary()
        spoken = sum(one.duration_s or 0.0 for one in test_cuts)
        head = next(head for head in summary.heads if head.frames == BUDGET_FRAMES)
        return {
            "preset": preset,
            "parameters": model.manifest.parameters,
            "steps": steps,
            "minutes": took / 60,
            "wer": 100 * head.wer.value,
            "wer_low": 100 * head.wer.low,
            "wer_high": 100 * head.wer.high,
            "cer": 100 * head.cer.value,
            "real_time_factor": (time.process_time() - began) / spoken,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--presets", default="tiny,base,small")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = corpus_folder("fsdd")
    assert folder is not None, "let NEARFUTURE_CORPORA name a folder with fsdd in it"
    source = folder / "manifest.tsv"
    test_cuts = [cut.probed() for cut in read_source(source).cuts if cut.split == "test"]
    presets = [name for name in options.presets.split(",") if name in get_args(Preset)]
    results = [learnt(preset, options.seconds, source, test_cuts) for preset in presets]
    table = Table("preset", "parameters", "steps", "minutes", "WER %", "RTF")
    table.title = f"one core, {len(test_cuts)} recordings of a word, τ = {BUDGET_FRAMES}"
    for row in results:
        table.add_row(
            row["preset"],
            f"{row['parameters']:,}",
            str(row["steps"]),
            f"{row['minutes']:.1f}",
            f"{row['wer']:.2f} ({row['wer_low']:.2f}–{row['wer_high']:.2f})",
            f"{row['real_time_factor']:.4f}",
        )
    emit(table, results)


if __name__ == "__main__":
    main()
