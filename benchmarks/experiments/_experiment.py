"""What the experiments share: train what is not trained yet, evaluate it once, write the page.

Everything lies under `runs/experiments/NAME`: a training that was interrupted goes on, a model that
is there is not trained again, an evaluation that is there is read. Hardware, commit and duration
are those of the training, kept beside it.
"""

import json
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1]))
from _report import about

from nearfuture.data import Cut, Utterance
from nearfuture.evaluation import Evaluation, HeadMetrics, evaluate_bundles
from nearfuture.training import (
    ArchitectureOptions,
    DataOptions,
    DistillationOptions,
    Group,
    HardwareOptions,
    OptimizerOptions,
    ProgressEvent,
    ProgressReporter,
    ScheduleOptions,
    StepProgress,
    TrainingOptions,
    architectures,
    read_training_data,
    train,
)
from recipes.digits import training_data
from recipes.report import fill_page

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "experiments"
HEADS = (0, 4, 8, 19)
DISTILLATION = DistillationOptions(distill=3.0, shifts={0: 2})
REGULARISE = False
"""How the streaming model learns from its twin; `recipe.py` compares it with other ways."""

TWIN = "bidirectional twin"

_console = Console()


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A training: which models, how, and where; on connected digits without recordings."""

    model: ArchitectureOptions
    options: TrainingOptions
    folder: Path
    data: DataOptions = field(default_factory=DataOptions)


def options(
    *,
    steps: int | None = None,
    epochs: int | None = None,
    seed: int = 0,
    muon_lr: float | None = None,
    regularise: bool = REGULARISE,
    distillation: DistillationOptions = DISTILLATION,
) -> TrainingOptions:
    """How the experiments train, but for what one of them changes."""
    return TrainingOptions(
        schedule=ScheduleOptions(steps=steps, epochs=epochs),
        optimizer=OptimizerOptions(muon_lr=muon_lr),
        regularise=regularise,
        distillation=distillation,
        hardware=HardwareOptions(threads=1),
        seed=seed,
    )


class Printer(ProgressReporter):
    """Prints what happens, a line a minute and one at each validation."""

    def __init__(self, name: str) -> None:
        self._name, self._printed_at = name, 0.0

    def report(self, model: str, event: ProgressEvent | StepProgress) -> None:
        if isinstance(event, ProgressEvent):
            _console.print(f"{self._name} {model} {event.activity}", markup=False)
            return
        if event.validation or time.time() - self._printed_at > 60:
            self._printed_at = time.time()
            _console.print(f"{self._name} {model} {event}", markup=False)
        for line in event.skipped:
            _console.print(f"skipped: {line}", markup=False)


def trained(experiment: Experiment) -> Path:
    """The folder of the models of an experiment, trained if they are not there yet."""
    model, options, folder = experiment.model, experiment.options, experiment.folder
    configs = architectures(model, options)
    if all(bundle(folder, name).exists() for name in configs):
        return folder
    note = folder / "trained.json"
    folder.mkdir(parents=True, exist_ok=True)
    began = time.time()
    before = json.loads(note.read_text("utf-8")) if note.exists() else {**about(), "seconds": 0.0}
    note.write_text(json.dumps(before) + "\n", "utf-8")
    try:
        config = next(iter(configs.values()))
        if experiment.data.data:
            data = read_training_data(experiment.data, config, seed=options.seed, group=Group())
        else:
            data = training_data(config, seed=options.seed)
        train(data, model, options, folder, progress=Printer(folder.name))
    finally:
        seconds = before["seconds"] + time.time() - began
        note.write_text(json.dumps({**before, "seconds": seconds}) + "\n", "utf-8")
    return folder


def bundle(folder: Path, name: str) -> Path:
    """Where a training leaves a model."""
    return folder / name / "bundle"


def evaluated(
    folder: Path,
    items: Iterable[Cut | Utterance],
    name: str = "test",
    *,
    streaming: Path | None = None,
) -> Evaluation:
    """The evaluation of both models of a folder, made once; or of its twin beside another model."""
    path = folder / f"{name}.json"
    if not path.exists():
        evaluation = evaluate_bundles(
            streaming or bundle(folder, "streaming"), bundle(folder, "bidirectional"), items
        )
        for problem in evaluation.problems:
            _console.print(problem, markup=False)
        evaluation.save(path)
    return Evaluation.load(path)


def name_of(head: HeadMetrics) -> str:
    """A head as the tables call it."""
    return TWIN if head.frames is None else f"τ = {head.frames}"


def wait_of(head: HeadMetrics) -> str:
    """How long it waits, in words."""
    return "the whole utterance" if head.latency is None else f"{head.latency.worst_ms:g} ms"


def provenance(folders: Mapping[str, Path]) -> str:
    """When, where and for how long the models were trained, as a Markdown list."""
    lines = []
    for name, folder in folders.items():
        note: dict[str, Any] = json.loads((folder / "trained.json").read_text("utf-8"))
        lines.append(
            f"* {name}: commit {note['commit']}, {note['processor']}, one thread, "
            f"{note['seconds'] / 60:.0f} minutes"
        )
    return "\n".join(lines)


def write_page(name: str, parts: Mapping[str, str]) -> None:
    """Put the measured parts into the page, between its markers; the words around them stay."""
    fill_page(PAGES / f"{name}.md", parts)
