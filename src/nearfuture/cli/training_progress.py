"""Shows how a training goes: bars on a terminal, a line now and then anywhere else."""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.cli.remaining_time import RemainingTime, remaining_text
from nearfuture.training import ProgressEvent, ProgressReporter, StepProgress

if TYPE_CHECKING:
    from nearfuture.data import Skipped

_MAX_NAMED = 20  # recordings that are skipped, before the rest is only counted


class ConsoleReporter(ProgressReporter):
    """Prints what a training reports; names each recording that is skipped once, and counts them.

    A context manager. Ctrl-C stops the training after the current step.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._named: set[str] = set()
        self._skipped, self._unusable = set[str](), 0
        self._skipped_in_steps: set[str] = set()
        self._remaining: dict[str, RemainingTime] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave what stays on the screen."""

    def interruption(self) -> AbstractContextManager[Callable[[], bool]]:
        """Let Ctrl-C end the training after the current step."""
        from nearfuture.training import graceful_interrupt

        return graceful_interrupt(lambda: self.print("stopping after this step"))

    def report(self, model: str, event: ProgressEvent | StepProgress) -> None:
        """Show what happens to a model, by its name."""
        for recording in event.skipped:
            self._name(recording)
        names = {recording.name for recording in event.skipped}
        if isinstance(event, ProgressEvent):
            for source in event.reports:
                self._unusable += source.rows - len(source.cuts)
                self._print_all(source.lines())
            self._print_all(event.notes)
            self._skipped |= names
            self._show_event(model, event)
        else:
            self._skipped_in_steps |= names - {f"step {event.step - 1}"}  # which is no recording
            estimate = self._remaining.setdefault(model, RemainingTime())
            remaining = remaining_text(estimate.after(event.step, event.steps))
            self._show_step(model, event, remaining)

    def print_summary(self) -> None:
        """Print how many recordings were not used."""
        from nearfuture.text import plural

        skipped = plural(len(self._skipped) + self._unusable, "recording")
        self.print(f"{skipped} skipped, {len(self._skipped_in_steps)} more in some steps")

    def print(self, line: str, *, style: str = "") -> None:
        """Print a line that stays."""
        self.console.print(Text(line, style=style), soft_wrap=True)

    def _print_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.print(line)

    def _name(self, recording: "Skipped") -> None:
        if recording.name in self._named:
            return
        self._named.add(recording.name)
        if len(self._named) <= _MAX_NAMED:
            self.print(f"skipped: {recording}", style="yellow")
        elif len(self._named) == _MAX_NAMED + 1:
            self.print("more is skipped, and only counted", style="yellow")

    @abstractmethod
    def _show_event(self, model: str, event: ProgressEvent) -> None:
        """Show what is done besides training steps."""

    @abstractmethod
    def _show_step(self, model: str, step: StepProgress, remaining: str) -> None:
        """Show how far the training is."""


class BarReporter(ConsoleReporter):
    """Shows a progress bar for each model."""

    def __init__(self, models: Iterable[str], console: Console) -> None:
        super().__init__(console)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[remaining]}"),
        )
        self.bars = Progress(*columns, console=console)
        self.tasks = {
            name: self.bars.add_task(name, total=None, start=False, status="waiting", remaining="")
            for name in models
        }
        self._errors: dict[str, float] = {}

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Put away the bars that do not move."""
        for task in self.bars.tasks:
            self.bars.update(task.id, visible=task.started)  # others would never move again
        self.bars.stop()

    def _show_event(self, model: str, event: ProgressEvent) -> None:
        count = "" if event.count is None else " {}/{}".format(*event.count)
        self.bars.update(self.tasks[model], status=event.activity + count)
        if event.steps is not None:
            self.bars.start_task(self.tasks[model])
            self.bars.update(self.tasks[model], total=event.steps, completed=event.step)

    def _show_step(self, model: str, step: StepProgress, remaining: str) -> None:
        if step.validation:
            self._errors[model] = step.validation["cer"]
        status = [f"epoch {step.epoch + 1}", f"loss {step.loss:.3f}"]
        if model in self._errors:
            status.append(f"CER {100 * self._errors[model]:.2f} %")
        if step.skipped_total:
            status.append(f"skipped {step.skipped_total}")
        self.bars.update(
            self.tasks[model],
            completed=step.step,
            status=", ".join(status),
            remaining=remaining,
        )


class LineReporter(ConsoleReporter):
    """Prints a line at each validation, for a file or a pipe."""

    def _show_event(self, model: str, event: ProgressEvent) -> None:
        if event.count is None:
            steps = "" if event.steps is None else f" of {event.steps}"
            self.print(f"{model}: {event.activity}{steps}")

    def _show_step(self, model: str, step: StepProgress, remaining: str) -> None:
        if step.validation:
            self.print(f"{model}: {step}" + (remaining and f", {remaining}"))
