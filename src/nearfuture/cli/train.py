"""`nearfuture train`: one streaming model for every budget, and its bidirectional twin."""

import dataclasses
import math
import multiprocessing
import os
import queue
import signal
from collections.abc import Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from nearfuture.budget.presets import Preset
from nearfuture.cli.console import Console
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.training import TrainingOptions
    from nearfuture.training.session import Job, Outcome

__all__ = ["train"]

_FAREWELL_SECONDS = 10


def train(
    *,
    task: Literal["digits"] | None = None,
    manifest: Path | None = None,
    preset: Preset = "small",
    rate: int | None = None,
    models: Literal["both", "streaming", "bidirectional"] = "both",
    steps: int = 6000,
    seed: int = 0,
    out: Annotated[Path, Parameter(name="--out")] = Path("runs/model"),
) -> None:
    """Train a streaming model with a head for every budget, and its bidirectional twin.

    Each model trains in a process of its own. Ctrl-C stops after the step at hand and keeps a
    checkpoint; the same command goes on from there, as if it had never stopped.

    Args:
        task: "digits": strings of 3 to 7 spoken digits, made from the Free Spoken Digit Dataset.
        manifest: Your own recordings instead: a tab-separated file with a header and the columns
            path and transcript; with a column split, rows of "train" are trained on and rows of
            "dev" are watched.
        preset: Size of the models. The research model of Deep Speech 2 is bidirectional and has no
            streaming twin.
        rate: Samples per second the models hear, the preset's own unless given; recordings are
            resampled.
        models: Which of the two to train.
        steps: Training steps of the streaming model; the bidirectional one takes two thirds as
            many, which cost as much time.
        seed: Everything random follows from it.
        out: Folder for checkpoints and bundles.
    """
    if (task is None) == (manifest is None):
        raise NearfutureError(
            "say what to train on: either --task digits or --manifest FILE, not "
            f"{'both' if task else 'neither'}"
        )
    if steps < 1:
        raise NearfutureError(f"a training has at least 1 step, not {steps}")
    console = Console()
    try:
        from nearfuture.speech import PRESETS
        from nearfuture.training.session import Job
    except ModuleNotFoundError as error:
        raise NearfutureError(
            f"training needs {error.name}, which the base install leaves out; "
            f"install it with: pip install 'nearfuture[train]'"
        ) from error

    config = PRESETS[preset](symbols=_symbols(manifest))
    config = config if rate is None else dataclasses.replace(config, rate=rate)
    configs = {} if config.bidirectional else {"streaming": config}
    configs["bidirectional"] = config.twin()
    if models == "streaming" and config.bidirectional:
        raise NearfutureError(
            f"{preset} reads every recording to its end before its first output and cannot stream; "
            f"choose --preset deep-speech-2-deployed, or --models bidirectional"
        )
    names = list(configs) if models == "both" else [models]
    threads = max(1, (os.cpu_count() or 1) // len(names))
    jobs = [
        Job(
            name=name,
            config=configs[name],
            options=_options(steps if name == "streaming" else math.ceil(steps * 2 / 3), seed),
            manifest=manifest,
            folder=out / name,
            threads=threads,
        )
        for name in names
    ]
    outcomes = _run(jobs, console)
    _print(outcomes, manifest, out, console)


def _options(steps: int, seed: int) -> "TrainingOptions":
    from nearfuture.training import TrainingOptions

    return TrainingOptions(steps=steps, seed=seed, warmup=min(300, math.ceil(steps / 10)))


def _symbols(manifest: Path | None) -> tuple[str, ...]:
    from nearfuture.data import read_manifest
    from nearfuture.data.digits import symbols
    from nearfuture.text import Vocabulary, normalise

    if manifest is None:
        return symbols()
    texts = [normalise(entry.transcript) for entry in read_manifest(manifest)]
    if not any(texts):
        raise NearfutureError(f"{manifest} has no transcript to learn from")
    return Vocabulary.from_texts(texts).symbols


def _run(jobs: "list[Job]", console: Console) -> "dict[str, Outcome]":
    """Every job in a process of its own, with a progress bar each."""
    from nearfuture.training.session import run

    context = multiprocessing.get_context("spawn")
    messages: Any = context.Queue()
    stop = context.Event()
    workers = {
        job.name: context.Process(target=run, args=(job, messages, stop), name=job.name)
        for job in jobs
    }
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bars:
        # Ctrl-C reaches every process of a terminal; what is ignored here is ignored there too.
        heeded = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for worker in workers.values():
            worker.start()
        signal.signal(signal.SIGINT, heeded)
        tasks = {
            job.name: bars.add_task(job.name, total=job.options.steps, loss="starting")
            for job in jobs
        }
        try:
            return _follow(workers, messages, bars, tasks)
        except KeyboardInterrupt:
            # Impatience must not cost a checkpoint; this process is about to end anyway.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            bars.console.print("stopping after this step")
            stop.set()
            return _follow(workers, messages, bars, tasks)
        finally:
            for worker in workers.values():
                worker.join(timeout=_FAREWELL_SECONDS)
                worker.terminate()


def _follow(
    workers: Mapping[str, BaseProcess], messages: Any, bars: Progress, tasks: dict[str, Any]
) -> "dict[str, Outcome]":
    """Show what the jobs tell until each has an outcome."""
    from nearfuture.training.session import Failure, Note, Outcome

    outcomes: dict[str, Outcome] = {}
    named: set[str] = set()
    while len(outcomes) < len(workers):
        try:
            name, message = messages.get(timeout=1.0)
        except queue.Empty:
            for name, worker in workers.items():
                if name not in outcomes and not worker.is_alive() and messages.empty():
                    raise NearfutureError(
                        f"the training of {name} ended unexpectedly (exit code {worker.exitcode}); "
                        f"its last checkpoint is kept, the same command goes on from there"
                    ) from None
            continue
        if isinstance(message, Failure):
            raise NearfutureError(f"{name}: {message.reason}")
        if isinstance(message, Outcome):
            outcomes[name] = message
            bars.update(tasks[name], loss="done" if message.done else "stopped")
            if message.done:  # also where nothing was left to do
                bars.update(tasks[name], completed=bars.tasks[tasks[name]].total)
            continue
        if isinstance(message, Note):
            bars.update(tasks[name], loss=message.doing)
        else:
            bars.update(tasks[name], completed=message.step, loss=f"loss {message.loss:.3f}")
        for line in message.skipped:
            what = line.split(": ")[0]  # each recording is named once, however often it comes
            if what not in named:
                named.add(what)
                bars.console.print(Text(f"left out: {line}", style="yellow"))
    return outcomes


def _print(
    outcomes: "dict[str, Outcome]", manifest: Path | None, out: Path, console: Console
) -> None:
    if not all(outcome.done for outcome in outcomes.values()):
        text = f"stopped; checkpoints are in {out}. The same command goes on from there."
        console.print(Text(text))
        raise KeyboardInterrupt
    watched = next(iter(outcomes.values())).watched
    table = Table("model", "lookahead", "WER %", "CER %", title=f"errors on {watched}")
    for name, outcome in outcomes.items():
        for head, words, characters in outcome.rates:
            frames = "everything" if head is None else f"{head} frames"
            table.add_row(name, frames, f"{100 * words:.2f}", f"{100 * characters:.2f}")
    console.print(table)
    for outcome in outcomes.values():
        console.print(Text(f"nearfuture transcribe --model {outcome.bundle} FILE …"))
