"""A whole training: the bidirectional twin, then the streaming model that learns from it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from nearfuture.budget import RecognizerConfig
from nearfuture.data import CorpusReport, CutFilter, Skipped, Utterance
from nearfuture.error import NearfutureError
from nearfuture.model import Recognizer
from nearfuture.training.best import export_best, recognizer_of
from nearfuture.training.bfloat16 import multiplies_bfloat16
from nearfuture.training.checkpoint import load_model
from nearfuture.training.distributed import Group
from nearfuture.training.evaluation import evaluate
from nearfuture.training.material import Material, recordings, select
from nearfuture.training.request import BIDIRECTIONAL, Request
from nearfuture.training.teacher import fingerprint, inherit
from nearfuture.training.trainer import Progress, Trainer

_SLOW_BFLOAT16 = (
    "this processor has no instructions for bfloat16: a step takes longer with --bfloat16 than "
    "without"
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
    reports: tuple[CorpusReport, ...] = ()
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
    material: Material | None = None,
    tell: Callable[[str, Note | Progress], None] = lambda *_: None,
    interruption: Interruption = _never,
) -> dict[str, Outcome]:
    """Train the models one after another, each by all processes; what came of each.

    Where one is interrupted, those after it are not begun.

    Args:
        request: the same one in all processes.
        group: the processes.
        material: what to train on instead of the request's sources.
        tell: what happens, by the name of the model; in the first process.
        interruption: how somebody says that it is to stop.

    Raises:
        NearfutureError: where there is nothing to train on, or a checkpoint is of something else.
    """
    _check(request)
    torch.set_num_threads(request.threads)
    say = tell if group.first else lambda *_: None
    if request.bfloat16 and not multiplies_bfloat16(group.device):
        say(request.models[0], Note(doing="beginning", said=(_SLOW_BFLOAT16,)))
    given = material or _loaded(request, group, lambda note: say(request.models[0], note))
    configs = request.configs(given.symbols)
    outcomes: dict[str, Outcome] = {}
    for name, config in configs.items():
        outcomes[name] = _train(name, config, request, given, group, say, interruption)
        if not outcomes[name].done:
            break
    return outcomes


def _check(request: Request) -> None:
    """Refuse what would otherwise fail once the first model is trained."""
    for name, config in request.configs(()).items():
        options = request.options(name, 1)
        if unknown := sorted(set(options.shift_frames) - set(config.heads)):
            raise NearfutureError(
                f"shifts are told for heads of {', '.join(map(str, unknown))} frames; the model "
                f"has heads of {', '.join(map(str, config.heads))}"
            )
    teacher = request.folder / BIDIRECTIONAL / "best.safetensors"
    if request.distill and BIDIRECTIONAL not in request.models and not teacher.is_file():
        raise NearfutureError(
            f"there is no bidirectional model to learn from, {teacher}: train both models, or set "
            f"distill to 0"
        )


def _loaded(request: Request, group: Group, say: Callable[[Note], None]) -> Material:
    """The recordings of the request's sources."""

    def looking(done: int, total: int) -> None:
        if done % 100 == 0:
            say(Note(doing="looking through recordings", far=(done, total)))

    say(Note(doing="reading"))
    # How long a recording must be does not depend on the symbols.
    config = request.configs(())[request.models[0]]
    cut_filter = CutFilter(longest_s=request.longest, model=config)
    selection = select(request.data, seed=request.seed, cut_filter=cut_filter, progress=looking)
    configs = request.configs(selection.symbols)
    say(Note(doing="loading", reports=selection.reports, said=selection.notes))
    given = recordings(
        selection,
        configs[request.models[0]],
        seed=request.seed,
        batch_seconds=request.batch_seconds,
        cut_filter=cut_filter,
        group=group,
    )
    watched = f"watched: {given.watched_name}"
    say(Note(doing="loaded", skipped=given.left_out, said=(*given.said, watched)))
    return given


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
    model, about = Recognizer(config), given.about
    if request.begin_with is not None:
        begun = recognizer_of(request.begin_with)
        model.load_state_dict(begun.state_dict())
        about = {**about, "begin_with": fingerprint(begun)}
    elif teacher is not None:
        inherit(model, teacher)
    trainer = Trainer(
        model,
        given.batches,
        folder,
        options,
        task=about,
        watch=lambda model: _figures(model, given.watched),
        teacher=teacher,
        group=group,
    )
    step = trainer.checkpoint.step
    doing = f"from step {step}"
    say(name, Note(doing=doing, steps=options.steps, step=step, said=trainer.said))
    with interruption() as stop:
        done = trainer.run(lambda progress: say(name, progress), stop=stop)
    outcome = Outcome(done=False)
    if done and group.first:
        say(name, Note(doing="evaluating"))
        outcome = _finished(name, given, trainer, say)
    group.wait()  # those that come next read what the first has written
    return outcome if group.first else Outcome(done=done)


def _steps(request: Request, given: Material) -> int:
    if request.epochs is None:
        return request.steps or 0
    if given.steps is None:
        raise NearfutureError("these batches are made afresh and have no epochs: set `steps`")
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
    given: Material,
    trainer: Trainer,
    say: Callable[[str, Note | Progress], None],
) -> Outcome:
    """Evaluate and export the best model."""
    model, _ = load_model(trainer.best_path)
    rates = evaluate(model, given.watched)
    say(name, Note(doing="exporting"))
    bundle, about = export_best(trainer.folder)
    say(name, Note(doing="done"))
    return Outcome(
        done=True,
        step=about["step"],
        rates=tuple((head, words.rate, chars.rate) for head, (words, chars) in rates.items()),
        wait_ms=tuple(model.config.latency(head).worst_ms for head in rates),
        watched=given.watched_name,
        bundle=bundle,
    )
