"""A whole training: the bidirectional model, then the streaming one that learns from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from nearfuture.budget import RecognizerConfig
from nearfuture.error import NearfutureError
from nearfuture.model import Recognizer
from nearfuture.training.architecture import architectures
from nearfuture.training.bundle import export_best, recognizer_of
from nearfuture.training.checkpoint import BEST, load_model
from nearfuture.training.data import TrainingData
from nearfuture.training.distributed import Group, multiplies_bfloat16
from nearfuture.training.options import (
    BIDIRECTIONAL,
    ArchitectureOptions,
    DistillationOptions,
    TrainingOptions,
)
from nearfuture.training.progress import ProgressEvent, ProgressReporter, StepProgress
from nearfuture.training.teacher import fingerprint, initialise_from_teacher
from nearfuture.training.trainer import Trainer
from nearfuture.training.validation import evaluate

_SLOW_BFLOAT16 = (
    "this processor has no instructions for bfloat16: a step takes longer with --bfloat16 than "
    "without"
)

Report = Callable[[str, ProgressEvent | StepProgress], None]


@dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """The outcome of the training of a model.

    Attributes:
        finished: False where it was interrupted; the checkpoint can be resumed.
        step: The step of the best model, which was kept.
        error_rates: (lookahead in frames, word error rate, character error rate) of every head;
            the lookahead of a bidirectional model is None.
        latency_ms: The worst algorithmic latency of each head; infinite for a bidirectional model.
        validation_name: What the errors were counted on.
        bundle: The exported model, where the training is finished.
    """

    finished: bool
    step: int = 0
    error_rates: tuple[tuple[int | None, float, float], ...] = ()
    latency_ms: tuple[float, ...] = ()
    validation_name: str = ""
    bundle: Path | None = None


def check_options(
    model: ArchitectureOptions, options: TrainingOptions, folder: Path
) -> dict[str, RecognizerConfig]:
    """Refuse what would otherwise fail once data is read or the first model is trained.

    Returns:
        The architecture of each model by its name, without symbols.

    Raises:
        NearfutureError: Options do not fit each other, or there is no teacher.
    """
    configs = architectures(model, options)
    teacher = folder / BIDIRECTIONAL / BEST
    if options.distillation.distill and BIDIRECTIONAL not in configs and not teacher.is_file():
        raise NearfutureError(
            f"there is no bidirectional model to learn from, {teacher}: train both models, or give "
            f"`distill=0`",
            code="not_found",
            parameter="distill",
        )
    options.distillation.resolved(both=len(configs) == 2)
    return configs


def train(
    data: TrainingData,
    model: ArchitectureOptions,
    options: TrainingOptions,
    folder: Path,
    *,
    group: Group | None = None,
    progress: ProgressReporter | None = None,
) -> dict[str, TrainingResult]:
    """Train the models one after another, each by all processes.

    Where one is interrupted, those after it are not begun.

    Args:
        data: What to train on and validate on; the same in all processes.
        model: Which models.
        options: How.
        folder: Each model has a folder of its name in there, for its checkpoints and its bundle.
        group: The processes.
        progress: Receives what happens, in the main process, and may stop the training.

    Returns:
        The result by the name of the model.

    Raises:
        NearfutureError: The options do not fit each other, or a checkpoint is of another training.
    """
    group, progress = group or Group(), progress or ProgressReporter()
    check_options(model, options, folder)
    configs = architectures(model, options, data.symbols)
    torch.set_num_threads(options.hardware.thread_count)
    report: Report = progress.report if group.is_main else lambda *_: None
    if options.hardware.bfloat16 and not multiplies_bfloat16(group.device):
        report(next(iter(configs)), ProgressEvent(activity="beginning", notes=(_SLOW_BFLOAT16,)))
    options = _completed(options, model, data, both=len(configs) == 2)
    results: dict[str, TrainingResult] = {}
    for name, config in configs.items():
        trainer = _trainer(config, data, model, options, folder / name, group)
        step, steps = trainer.checkpoint.step, trainer.options.schedule.total_steps
        activity = f"from step {step}"
        report(name, ProgressEvent(activity=activity, steps=steps, step=step, notes=trainer.notes))
        with progress.interruption() as stop:
            finished = trainer.run(partial(report, name), stop=stop)
        results[name] = TrainingResult(finished=finished)
        if finished and group.is_main:
            results[name] = _finish(name, data, trainer, report)
        group.barrier()  # those that come next read what the main process has written
        if not finished:
            break
    return results


def _completed(
    options: TrainingOptions, model: ArchitectureOptions, data: TrainingData, *, both: bool
) -> TrainingOptions:
    """Fill in what depends on the data and on which models are trained."""
    schedule, optimizer = options.schedule, options.optimizer
    steps = schedule.total_steps
    if schedule.epochs is not None:
        if data.steps is None:
            raise NearfutureError(
                "these batches have no epochs: give `steps`", code="conflict", parameter="epochs"
            )
        steps = data.steps(schedule.epochs)
    return dataclasses.replace(
        options,
        schedule=schedule.scaled(steps),
        optimizer=optimizer if model.init_from is None else optimizer.fine_tuning(),
        distillation=options.distillation.resolved(both=both),
    )


def _trainer(
    config: RecognizerConfig,
    data: TrainingData,
    model_options: ArchitectureOptions,
    options: TrainingOptions,
    folder: Path,
    group: Group,
) -> Trainer:
    """Build a model and its trainer, which may have been interrupted before."""
    teacher = None
    if config.bidirectional:
        options = dataclasses.replace(options, distillation=DistillationOptions(distill=0.0))
    elif options.distillation.weight:
        teacher, _ = load_model(folder.parent / BIDIRECTIONAL / BEST)
    torch.manual_seed(options.seed)
    model = Recognizer(config)
    if model_options.init_from is not None:
        pretrained = recognizer_of(model_options.init_from)
        model.load_state_dict(pretrained.state_dict())
        about = {**data.about, "init_from": fingerprint(pretrained)}
        data = dataclasses.replace(data, about=about)
    elif teacher is not None:
        initialise_from_teacher(model, teacher)
    return Trainer(model, data, options, folder, teacher=teacher, group=group)


def _finish(name: str, data: TrainingData, trainer: Trainer, report: Report) -> TrainingResult:
    """Evaluate and export the best model."""
    report(name, ProgressEvent(activity="evaluating"))
    path = trainer.best_path if trainer.best_path.is_file() else trainer.path
    model, header = load_model(path)
    rates = evaluate(model, data.validation)
    report(name, ProgressEvent(activity="exporting"))
    bundle, _ = export_best(trainer.folder)
    report(name, ProgressEvent(activity="done"))
    return TrainingResult(
        finished=True,
        step=header["step"],
        error_rates=tuple((head, words.rate, chars.rate) for head, (words, chars) in rates.items()),
        latency_ms=tuple(model.config.latency(head).worst_ms for head in rates),
        validation_name=data.validation_name,
        bundle=bundle,
    )
