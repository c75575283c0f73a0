"""A training as a job that runs in a process of its own and tells how it goes.

Messages of a job: `Progress`, then one `Outcome`, or a `Failure`.
"""

from __future__ import annotations

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
    synthesised_strings,
)
from nearfuture.error import NearfutureError
from nearfuture.export import export_bundle
from nearfuture.speech import Recognizer, RecognizerConfig
from nearfuture.training.evaluation import evaluate
from nearfuture.training.trainer import Batches, Progress, Trainer, TrainingOptions

__all__ = ["Failure", "Job", "Message", "Outcome", "run"]

_DEV_PER_SPEAKER = 20
_DEV_SEED = 1


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
        rates: (τ, word error rate, character error rate) of every head on recordings that were kept
            apart to watch the training; τ is None for a bidirectional model.
        bundle: the exported model, where the training is done.
    """

    done: bool
    rates: tuple[tuple[int | None, float, float], ...] = ()
    bundle: Path | None = None


@dataclass(frozen=True)
class Failure:
    """Why a job could not go on."""

    reason: str


Message = Progress | Outcome | Failure


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
    except NearfutureError as error:
        tell(Failure(str(error)))


def _train(job: Job, tell: Callable[[Message], None], stop: Callable[[], bool]) -> Outcome:
    batches, dev, about = _digits(job) if job.manifest is None else _recordings(job)
    torch.manual_seed(job.options.seed)
    model = Recognizer(job.config)
    trainer = Trainer(model, batches, job.folder, job.options, task=about)
    if not trainer.run(tell, stop=stop):
        return Outcome(done=False)
    rates = evaluate(model, dev)
    bundle = export_bundle(
        model,
        job.folder / "bundle",
        name=job.name,
        description=f"{job.name}, trained by nearfuture train",
        training={**about, "steps": job.options.steps, "seed": job.options.seed},
    )
    return Outcome(
        done=True,
        rates=tuple((head, words.rate, chars.rate) for head, (words, chars) in rates.items()),
        bundle=bundle,
    )


def _digits(job: Job) -> tuple[Batches, list[Utterance], dict[str, Any]]:
    rate, seed = job.config.rate, job.options.seed
    recordings = DigitRecordings.load(rate=rate)
    corpus = corpus_strings("kokoro", rate=rate)
    voices = synthesised_strings(rate=rate, seed=seed)
    batches = ConnectedDigits(recordings=recordings, others=[*corpus, *voices], seed=seed)
    dev = recordings.strings(recordings.seen, "dev", _DEV_PER_SPEAKER, seed=_DEV_SEED)
    about = {
        "task": "digits",
        "data": [
            "Free Spoken Digit Dataset, recordings 6-49 of 5 speakers (CC BY-SA 4.0)",
            *([f"kokoro, {len(corpus)} synthetic strings (Apache-2.0 model)"] if corpus else []),
            *([f"espeak-ng and flite, {len(voices)} synthetic strings"] if voices else []),
        ],
    }
    return batches, dev, about


def _recordings(job: Job) -> tuple[Batches, list[Utterance], dict[str, Any]]:
    assert job.manifest is not None
    rate, seed = job.config.rate, job.options.seed
    batches = Recordings.load(job.manifest, rate=rate, seed=seed, split="train")
    try:
        dev = Recordings.load(job.manifest, rate=rate, split="dev").utterances
    except NearfutureError:  # no such split: watch some of what is trained on
        dev = batches.utterances
    about = {"task": str(job.manifest), "data": [f"{len(batches.utterances)} own recordings"]}
    return batches, list(dev[:100]), about
