"""A training as a job that runs in a process of its own and tells how it goes.

Messages of a job: `Note` and `Progress`, then one `Outcome`, or a `Failure`.
"""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import torch

from nearfuture.data import (
    ConnectedDigits,
    DigitRecordings,
    Recordings,
    Utterance,
    corpus_strings,
    read_manifest,
    synthesised_strings,
)
from nearfuture.error import NearfutureError
from nearfuture.export import export_bundle
from nearfuture.speech import Recognizer, RecognizerConfig
from nearfuture.training.evaluation import evaluate
from nearfuture.training.trainer import Batches, Progress, Trainer, TrainingOptions

__all__ = ["Failure", "Job", "Message", "Note", "Outcome", "run"]

_DEV_PER_SPEAKER = 20
_DEV_SEED = 1
_WATCHED = 100


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to train, on what, how, and where to keep it.

    Attributes:
        name: what to call it; the bundle gets this name.
        config: the model.
        options: the training.
        manifest: a user's own recordings; None for connected digits.
        folder: the checkpoint and the bundle go there.
        threads: of torch.
    """

    name: str
    config: RecognizerConfig
    options: TrainingOptions
    manifest: Path | None
    folder: Path
    threads: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a job ended.

    Attributes:
        done: False where it was interrupted; the checkpoint can be resumed.
        rates: (τ, word error rate, character error rate) of every head; τ is None for a
            bidirectional model.
        watched: on which recordings.
        bundle: the exported model, where the training is done.
    """

    done: bool
    rates: tuple[tuple[int | None, float, float], ...] = ()
    watched: str = ""
    bundle: Path | None = None


@dataclass(frozen=True)
class Failure:
    """Why a job could not go on."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Note:
    """What a job is doing besides training, and what it left out on the way."""

    doing: str
    skipped: tuple[str, ...] = ()


Message = Note | Progress | Outcome | Failure


class _Stopped(Exception):  # noqa: N818 - nothing went wrong
    """Told to stop before the training began."""


@dataclass(frozen=True, kw_only=True)
class _Task:
    """What to train on, what to watch it with, and what to remember of both."""

    batches: Batches
    watched: list[Utterance]
    watched_name: str
    about: dict[str, Any]


def run(job: Job, messages: Queue[tuple[str, Message]], stop: Event) -> None:
    """Train until done, told to stop or left alone; the body of a worker process.

    The parent decides what Ctrl-C means: it starts its workers with that signal ignored.
    """
    torch.set_num_threads(job.threads)
    parent = multiprocessing.parent_process()

    def stopped() -> bool:
        return stop.is_set() or (parent is not None and not parent.is_alive())

    def tell(message: Message) -> None:
        messages.put((job.name, message))

    try:
        tell(_train(job, tell, stopped))
    except _Stopped:
        tell(Outcome(done=False))
    except NearfutureError as error:
        tell(Failure(str(error)))


def _train(job: Job, tell: Callable[[Message], None], stop: Callable[[], bool]) -> Outcome:
    tell(Note(doing="loading"))
    task = _digits(job) if job.manifest is None else _recordings(job, job.manifest, tell, stop)
    torch.manual_seed(job.options.seed)
    model = Recognizer(job.config)
    trainer = Trainer(model, task.batches, job.folder, job.options, task=task.about)
    tell(Note(doing=f"from step {trainer.checkpoint.step}"))
    if not trainer.run(tell, stop=stop):
        return Outcome(done=False)
    tell(Note(doing="evaluating"))
    rates = evaluate(model, task.watched)
    tell(Note(doing="exporting"))
    bundle = export_bundle(
        model,
        job.folder / "bundle",
        name=f"{job.folder.parent.name}-{job.name}",
        description=f"The {job.name} model of a training on {task.about['task']}.",
        training={**task.about, "steps": job.options.steps, "seed": job.options.seed},
    )
    return Outcome(
        done=True,
        rates=tuple((head, words.rate, chars.rate) for head, (words, chars) in rates.items()),
        watched=task.watched_name,
        bundle=bundle,
    )


def _digits(job: Job) -> _Task:
    rate, seed = job.config.rate, job.options.seed
    recordings = DigitRecordings.load(rate=rate)
    corpus = corpus_strings("kokoro", rate=rate)
    voices = synthesised_strings(rate=rate, seed=seed)
    about = {
        "task": "digits",
        "data": [
            "Free Spoken Digit Dataset, recordings 6-49 of 5 speakers (CC BY-SA 4.0)",
            *([f"kokoro, {len(corpus)} synthetic strings (Apache-2.0 model)"] if corpus else []),
            *([f"espeak-ng and flite, {len(voices)} synthetic strings"] if voices else []),
        ],
    }
    return _Task(
        batches=ConnectedDigits(recordings=recordings, others=[*corpus, *voices], seed=seed),
        watched=recordings.strings(recordings.seen, "dev", _DEV_PER_SPEAKER, seed=_DEV_SEED),
        watched_name="strings of recordings kept apart (number 5 of each)",
        about=about,
    )


def _recordings(
    job: Job, manifest: Path, tell: Callable[[Message], None], stop: Callable[[], bool]
) -> _Task:
    def load(split: str) -> Recordings:
        def progress(done: int, total: int) -> None:
            if stop():
                raise _Stopped
            if done % 50 == 0:
                tell(Note(doing=f"loading {split} {done}/{total}"))

        loaded = Recordings.load(
            manifest, rate=job.config.rate, seed=job.options.seed, split=split, progress=progress
        )
        tell(Note(doing=f"loaded {split}", skipped=loaded.skipped))
        return loaded

    batches = load("train")
    has_dev = any(entry.fields.get("split") == "dev" for entry in read_manifest(manifest))
    watched = (load("dev") if has_dev else batches).utterances[:_WATCHED]
    kind = "of the split dev" if has_dev else "that were trained on, since no row has the split dev"
    return _Task(
        batches=batches,
        watched=list(watched),
        watched_name=f"{len(watched)} recordings {kind}",
        about={
            "task": manifest.name,
            "manifest_sha256": hashlib.sha256(manifest.read_bytes()).hexdigest(),
            "data": [f"{len(batches.utterances)} own recordings"],
        },
    )
