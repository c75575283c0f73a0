"""`nearfuture train`: a bidirectional model, and the streaming one that learns from it."""

import contextlib
import math
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.cli.extra import HOW_TO_TRAIN
from nearfuture.cli.training_progress import BarReporter, LineReporter
from nearfuture.error import MissingDependency, NearfutureError
from nearfuture.training import ArchitectureOptions, DataOptions, ProgressReporter, TrainingOptions

if TYPE_CHECKING:
    from nearfuture.budget import RecognizerConfig
    from nearfuture.training import Group, TrainingResult

_NOTHING_LEARNT = 0.9  # characters in error


def train(
    *,
    data: DataOptions = DataOptions(),  # noqa: B008
    model: ArchitectureOptions = ArchitectureOptions(),  # noqa: B008
    options: TrainingOptions = TrainingOptions(),  # noqa: B008
    processes: int = 1,
    out: Annotated[Path, Parameter(name="--out")] = Path("runs/model"),
) -> None:
    """Train a streaming model with a head for every budget, and its bidirectional twin.

    The twin comes first, and the streaming model learns from it. Ctrl-C stops after the current
    step and keeps a checkpoint; the same command resumes from there with the same result, and
    nearfuture export makes a bundle of the best weights so far.

    Args:
        data: What to train on.
        model: Which models.
        options: How.
        processes: Processes that share each batch; torchrun sets its own number.
        out: Folder for checkpoints and bundles.
    """
    if not data.data:
        raise NearfutureError("`data` is missing: name recordings to train on", parameter="data")
    if processes < 1:
        raise NearfutureError(
            f"`processes` is at least 1, not {processes}",
            code="out_of_range",
            parameter="processes",
        )
    job = _Job(data, model, options, out)
    let_idle_threads_sleep()
    try:
        job.check()
    except ModuleNotFoundError as error:
        raise MissingDependency("training", error.name, HOW_TO_TRAIN) from error
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NearfutureError(
            f"`out={out}` cannot be made: {error.strerror}", parameter="out"
        ) from error
    console = Console()
    results = _run(job, processes, console)
    if results is not None:
        _print_results(results, out, console)


def let_idle_threads_sleep() -> None:
    """Let threads without work sleep; it has an effect only before torch is loaded.

    Those of OpenMP spin for a while instead, which is faster on a machine that does nothing else,
    and takes a core from whoever shares one. What the environment says stays.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("KMP_BLOCKTIME", "0")  # the same for Intel's and LLVM's runtime


@dataclass(frozen=True)
class _Job:
    """The work of every process of a training."""

    data: DataOptions
    model: ArchitectureOptions
    options: TrainingOptions
    folder: Path

    def check(self) -> "dict[str, RecognizerConfig]":
        """Refuse options that do not fit each other; return the models by name."""
        from nearfuture.training.run import check_options

        return check_options(self.model, self.options, self.folder)

    def run(
        self, group: "Group", progress: ProgressReporter | None = None
    ) -> "dict[str, TrainingResult]":
        """Read the data and train on it."""
        from nearfuture.training import read_training_data, train

        name, config = next(iter(self.check().items()))
        progress = progress or _SilentReporter()
        data = read_training_data(
            self.data,
            config,
            seed=self.options.seed,
            group=group,
            report=partial(progress.report, name),
        )
        return train(data, self.model, self.options, self.folder, group=group, progress=progress)


class _SilentReporter(ProgressReporter):
    """Finishes the current step like the main process, which does the reporting."""

    def interruption(self) -> AbstractContextManager[Callable[[], bool]]:
        from nearfuture.training import graceful_interrupt

        return graceful_interrupt(lambda: None)


def _run(job: _Job, processes: int, console: Console) -> "dict[str, TrainingResult] | None":
    """Train in so many processes; None in a process that is not the main one."""
    from nearfuture.training import init_group
    from nearfuture.training.distributed import started_by_torchrun
    from nearfuture.training.worker_group import worker_group

    if started_by_torchrun() and processes > 1:
        raise NearfutureError(
            "torchrun has started processes already: leave `processes` out",
            code="conflict",
            parameter="processes",
        )
    with contextlib.ExitStack() as stack:
        # The main process asks the others to stop. SIGTERM is no request to them: it has to end one
        # that waits for the rest in a sum, where no handler in Python runs.
        work = partial(job.run, progress=ProgressReporter())
        workers = stack.enter_context(worker_group(work, processes))
        group = stack.enter_context(init_group(world_size=processes, rendezvous=workers.rendezvous))
        if not group.is_main:
            job.run(group)
            return None
        reporter = stack.enter_context(
            BarReporter(job.check(), console) if console.is_terminal else LineReporter(console)
        )
        try:
            results = job.run(group, reporter)
            reporter.print_summary()
            return results
        except RuntimeError as error:
            if not workers.failed():
                workers.terminate()
                raise
            raise NearfutureError(
                "a process that shares the work ended unexpectedly; the last checkpoint is kept, "
                "the same command resumes from there",
                code="unavailable",
            ) from error
        except KeyboardInterrupt:
            workers.terminate()
            reporter.print(
                "stopped; the same command resumes from the checkpoint, or begins without one"
            )
            raise
        except BaseException:
            workers.terminate()  # before they find that this process has left
            raise


def _print_results(results: "dict[str, TrainingResult]", out: Path, console: Console) -> None:
    if not all(result.finished for result in results.values()):
        text = f"stopped; checkpoints are in {out}. The same command resumes from there; "
        text += "a bundle of the best weights so far comes with:"
        console.print(Text(text), soft_wrap=True)
        console.print(Text(f"nearfuture export {out}"), soft_wrap=True)
        raise KeyboardInterrupt
    validation = next(iter(results.values())).validation_name
    table = Table("model", "waits for", "WER %", "CER %", title=f"errors on {validation}")
    table.caption = "waits for: at the models' own rate; at another a resampler adds to it"
    rates = [
        (name, latency_ms, words, characters)
        for name, result in results.items()
        for (_, words, characters), latency_ms in zip(
            result.error_rates, result.latency_ms, strict=True
        )
    ]
    for name, latency_ms, words, characters in rates:
        waits_for = "everything" if latency_ms == math.inf else f"{latency_ms:g} ms"
        table.add_row(name, waits_for, f"{100 * words:.2f}", f"{100 * characters:.2f}")
    console.print(table)
    if min(characters for *_, characters in rates) >= _NOTHING_LEARNT:
        text = "The models have learnt next to nothing yet: they need more steps (--epochs), or "
        text += "more recordings."
        console.print(Text(text, style="bold yellow"), soft_wrap=True)
    for result in results.values():
        console.print(Text(f"nearfuture transcribe --model {result.bundle} FILE …"), soft_wrap=True)
