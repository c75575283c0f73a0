"""A whole training: the bidirectional twin, then the streaming model that learns from it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import torch

from nearfuture.budget.presets import Preset
from nearfuture.data import Limits, Skipped, Utterance
from nearfuture.data.digits import symbols
from nearfuture.data.limits import LONGEST_S
from nearfuture.data.report import Report
from nearfuture.error import NearfutureError
from nearfuture.export import export_bundle
from nearfuture.speech import PRESETS, Recognizer, RecognizerConfig
from nearfuture.training import material
from nearfuture.training.augmentation import SpecAugment
from nearfuture.training.checkpoint import load_model
from nearfuture.training.distributed import Group
from nearfuture.training.evaluation import evaluate
from nearfuture.training.material import Material, select
from nearfuture.training.options import TrainingOptions
from nearfuture.training.teacher import inherit
from nearfuture.training.trainer import Progress, Trainer

__all__ = ["Interruption", "Note", "Outcome", "Request", "train"]

BIDIRECTIONAL, STREAMING = "bidirectional", "streaming"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to train, on what, how, and where to keep it; the same for every process.

    Attributes:
        data: sources of recordings; none for connected digits.
        preset: the size of the models.
        rate: that they hear; None for the preset's own.
        heads: lookahead frames of the streaming model; None for the preset's own.
        models: those to train, in this order.
        steps: of each; None where epochs say how many.
        epochs: passes over the recordings; None where steps say how many.
        batch_seconds: audio in a batch, at most.
        longest: seconds of a recording; longer ones are left out.
        seed: everything random follows from it.
        learning_rate: the greatest.
        matrix_rate: the greatest of the encoder's matrices, which Muon moves; 0 for AdamW.
        regularise: with SpecAugment and dropout. A training that is too short to learn its
            recordings by heart is better without.
        distill: how much the streaming model learns from the bidirectional one in the same folder.
        shifts: by how many frames each of its heads follows it later.
        delay_penalty: how much it is drawn to earlier frames.
        bfloat16: matrix products of the encoders in bfloat16, for machines that are faster so.
        threads: of torch, in each process.
        folder: each model has its own in there.
    """

    data: tuple[Path, ...]
    preset: Preset
    rate: int | None = None
    heads: tuple[int, ...] | None = None
    models: tuple[str, ...] = (BIDIRECTIONAL, STREAMING)
    steps: int | None = None
    epochs: int | None = None
    batch_seconds: float = LONGEST_S
    longest: float = LONGEST_S
    seed: int = 0
    learning_rate: float = 2e-3
    matrix_rate: float = 3e-3
    regularise: bool = True
    distill: float = 0.0
    shifts: Mapping[int, int] = field(default_factory=dict)
    delay_penalty: float = 0.0
    bfloat16: bool = False
    threads: int = 1
    folder: Path

    def configs(self, symbols: tuple[str, ...]) -> dict[str, RecognizerConfig]:
        """The models by name.

        Raises:
            NearfutureError: for a streaming model of a preset that has none.
        """
        config = PRESETS[self.preset](symbols=symbols)
        config = config if self.rate is None else dataclasses.replace(config, rate=self.rate)
        config = config if self.regularise else dataclasses.replace(config, dropout=0.0)
        if STREAMING in self.models and config.bidirectional:
            raise NearfutureError(
                f"{self.preset} reads every recording to its end before its first output and "
                f"cannot stream; choose --preset deep-speech-2-deployed, or --models bidirectional"
            )
        if self.heads is not None and not config.bidirectional:
            config = dataclasses.replace(config, frames=self.heads)
        configs = {STREAMING: config, BIDIRECTIONAL: config.twin()}
        return {name: configs[name] for name in self.models}

    def options(self, name: str, steps: int) -> TrainingOptions:
        """How a model is trained for so many steps."""
        plain = TrainingOptions(
            steps=steps,
            learning_rate=self.learning_rate,
            matrix_rate=self.matrix_rate,
            augmentation=SpecAugment() if self.regularise else SpecAugment.none(),
            bfloat16=self.bfloat16,
            seed=self.seed,
            warmup=min(300, math.ceil(steps / 10)),
            watch_every=min(500, math.ceil(steps / 10)),
            report_every=min(50, math.ceil(steps / 100)),
        )
        if name != STREAMING:
            return plain
        return dataclasses.replace(
            plain,
            distill=self.distill,
            shift_frames=self.shifts,
            delay_penalty=self.delay_penalty,
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How the training of a model ended.

    Attributes:
        done: False where it was interrupted; the checkpoint can be resumed.
        step: of the model that was kept, the best one.
        rates: (τ, word error rate, character error rate) of every head; τ is None for a
            bidirectional model.
        wait_ms: what each of them waits for at most; infinity for a bidirectional model.
        watched: on which recordings.
        bundle: the exported model, where the training is done.
    """

    done: bool
    step: int = 0
    rates: tuple[tuple[int | None, float, float], ...] = ()
    wait_ms: tuple[float, ...] = ()
    watched: str = ""
    bundle: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Note:
    """What is done besides training.

    Attributes:
        doing: in a few words.
        skipped: each recording that is left out.
        far: what is done of it, and all there is to do, where it takes long.
        steps: how many a model is trained for, where that has become clear.
        step: how many of them are done.
        reports: what the recordings are, once they have been looked through.
        said: lines that are worth saying once: what is not used, what is kept apart.
    """

    doing: str
    skipped: tuple[Skipped, ...] = ()
    far: tuple[int, int] | None = None
    steps: int | None = None
    step: int = 0
    reports: tuple[Report, ...] = ()
    said: tuple[str, ...] = ()


class Interruption(Protocol):
    """A wish to stop: within its context it is only noted."""

    def __call__(self) -> AbstractContextManager[Callable[[], bool]]:
        """A context that gives a function which says whether somebody wishes to stop."""


def _never() -> AbstractContextManager[Callable[[], bool]]:
    return nullcontext(lambda: False)


def train(
    request: Request,
    group: Group,
    *,
    tell: Callable[[str, Note | Progress], None] = lambda *_: None,
    interruption: Interruption = _never,
) -> dict[str, Outcome]:
    """Train the models one after another, each by all processes; what came of each.

    Where one is interrupted, those after it are not begun.

    Args:
        request: the same one in all processes.
        group: the processes.
        tell: what happens, by the name of the model; in the first process.
        interruption: how somebody says that it is to stop.

    Raises:
        NearfutureError: where there is nothing to train on, or a checkpoint is of something else.
    """
    _check(request)
    torch.set_num_threads(request.threads)
    say = tell if group.first else lambda *_: None
    given, configs = _given(request, group, lambda note: say(request.models[0], note))
    outcomes: dict[str, Outcome] = {}
    for name, config in configs.items():
        outcomes[name] = _train(name, config, request, given, group, say, interruption)
        if not outcomes[name].done:
            break
    return outcomes


def _check(request: Request) -> None:
    """Refuse what would otherwise fail once the first model is trained."""
    for name, config in request.configs(("a",)).items():
        options = request.options(name, 1)
        if unknown := sorted(set(options.shift_frames) - set(config.frames)):
            raise NearfutureError(
                f"shifts are told for heads of {', '.join(map(str, unknown))} frames; the model "
                f"has heads of {', '.join(map(str, config.frames))}"
            )
    teacher = request.folder / BIDIRECTIONAL / "best.safetensors"
    if request.distill and BIDIRECTIONAL not in request.models and not teacher.is_file():
        raise NearfutureError(
            f"there is no bidirectional model to learn from, {teacher}: train both models, or set "
            f"distill to 0"
        )


def _given(
    request: Request, group: Group, say: Callable[[Note], None]
) -> tuple[Material, dict[str, RecognizerConfig]]:
    """What is trained on, and the models by name."""

    def looking(done: int, total: int) -> None:
        if done % 100 == 0:
            say(Note(doing="looking through recordings", far=(done, total)))

    say(Note(doing="reading"))
    if not request.data:
        configs = request.configs(symbols())
        given = material.digits(configs[request.models[0]], seed=request.seed)
        say(Note(doing="loaded", said=given.said))
        return given, configs
    # How long a recording must be does not depend on the symbols.
    plan = request.configs(("a",))[request.models[0]].blueprint()
    limits = Limits(longest_s=request.longest, model=plan)
    selection = select(request.data, seed=request.seed, limits=limits, progress=looking)
    configs = request.configs(selection.symbols)
    say(Note(doing="loading", reports=selection.reports, said=selection.notes))
    given = material.recordings(
        selection,
        configs[request.models[0]],
        seed=request.seed,
        batch_seconds=request.batch_seconds,
        limits=limits,
        group=group,
    )
    watched = f"watched: {given.watched_name}"
    say(Note(doing="loaded", skipped=given.left_out, said=(*given.said, watched)))
    return given, configs


def _train(
    name: str,
    config: RecognizerConfig,
    request: Request,
    given: Material,
    group: Group,
    say: Callable[[str, Note | Progress], None],
    interruption: Interruption,
) -> Outcome:
    folder, teacher = request.folder / name, None
    options = request.options(name, _steps(request, given))
    if options.distill:
        teacher, _ = load_model(request.folder / BIDIRECTIONAL / "best.safetensors")
    torch.manual_seed(request.seed)
    model = Recognizer(config)
    if teacher is not None:
        inherit(model, teacher)
    trainer = Trainer(
        model,
        given.batches,
        folder,
        options,
        task=given.about,
        watch=lambda model: _figures(model, given.watched),
        teacher=teacher,
        group=group,
    )
    step = trainer.checkpoint.step
    say(name, Note(doing=f"from step {step}", steps=options.steps, step=step))
    with interruption() as stop:
        done = trainer.run(lambda progress: say(name, progress), stop=stop)
    outcome = Outcome(done=False)
    if done and group.first:
        say(name, Note(doing="evaluating"))
        outcome = _finished(name, request, given, trainer, say)
    group.wait()  # those that come next read what the first has written
    return outcome if group.first else Outcome(done=done)


def _steps(request: Request, given: Material) -> int:
    if request.epochs is None:
        return request.steps or 0
    if given.steps is None:
        raise NearfutureError("connected digits are made afresh and have no epochs: say --steps")
    return given.steps(request.epochs)


def _figures(model: Recognizer, watched: list[Utterance]) -> dict[str, float]:
    """Character error rates, of every head and their mean."""
    rates = {head: characters.rate for head, (_, characters) in evaluate(model, watched).items()}
    named = {
        "cer of everything" if head is None else f"cer of {head} frames": rate
        for head, rate in rates.items()
    }
    return {"cer": sum(rates.values()) / len(rates), **named}


def _finished(
    name: str,
    request: Request,
    given: Material,
    trainer: Trainer,
    say: Callable[[str, Note | Progress], None],
) -> Outcome:
    """Evaluate and export the best model."""
    model, about = load_model(trainer.best_path)
    rates = evaluate(model, given.watched)
    say(name, Note(doing="exporting"))
    bundle = export_bundle(
        model,
        trainer.folder / "bundle",
        name=f"{request.folder.resolve().name}-{name}",
        description=f"The {name} model of a training on {given.about['task']}.",
        training={
            **given.about,
            "steps": trainer.options.steps,
            "best_step": about["step"],
            "seed": request.seed,
        },
        trainable=False,
    )
    say(name, Note(doing="done"))
    return Outcome(
        done=True,
        step=about["step"],
        rates=tuple((head, words.rate, chars.rate) for head, (words, chars) in rates.items()),
        wait_ms=tuple(model.config.blueprint().latency(head).worst_ms for head in rates),
        watched=given.watched_name,
        bundle=bundle,
    )
