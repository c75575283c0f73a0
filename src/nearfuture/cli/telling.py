"""What a training tells while it goes on: bars on a terminal, a line now and then anywhere else."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.cli.time_left import TimeLeft, in_words

if TYPE_CHECKING:
    from nearfuture.data import Skipped
    from nearfuture.training.session import Note
    from nearfuture.training.trainer import Progress as Step

_MOST_NAMED = 20  # recordings that are left out, before the rest is only counted


class Telling(ABC):
    """Says what a training tells; names each recording that is left out once, and counts them."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._named: set[str] = set()
        self._left_out, self._unusable = set[str](), 0
        self._skipped: set[str] = set()
        self._times: dict[str, TimeLeft] = {}

    def __enter__(self) -> "Telling":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027
        """Put away what does not stay."""

    def tell(self, name: str, message: "Note | Step") -> None:
        """Say what is told about a model."""
        from nearfuture.training.session import Note

        for one in message.skipped:
            self._name(one)
        names = {one.name for one in message.skipped}
        if isinstance(message, Note):
            for report in message.reports:
                self._unusable += report.rows - len(report.cuts)
                self.say("\n".join(report.lines()))
            for line in message.said:
                self.say(line)
            self._left_out |= names
            self._note(name, message)
        else:
            self._skipped |= names - {f"step {message.step - 1}"}  # which is no recording
            self._step(name, message)

    def _left(self, name: str, step: "Step") -> float | None:
        """Seconds to the last step of a model."""
        if name not in self._times:
            self._times[name] = TimeLeft()
        return self._times[name].after(step.step, step.steps)

    def stopping(self) -> None:
        """Say that the wish to stop was heard."""
        self.say("stopping after this step")

    def summary(self) -> None:
        """Say how many recordings were not used."""
        from nearfuture.text import counted

        left_out = counted(len(self._left_out) + self._unusable, "recording")
        self.say(f"{left_out} left out, {len(self._skipped)} skipped in some steps")

    def say(self, line: str, *, style: str = "") -> None:
        """Say a line that stays."""
        self.console.print(Text(line, style=style), soft_wrap=True)

    def _name(self, one: "Skipped") -> None:
        if one.name in self._named:
            return
        self._named.add(one.name)
        if len(self._named) <= _MOST_NAMED:
            self.say(f"left out: {one}", style="yellow")
        elif len(self._named) == _MOST_NAMED + 1:
            self.say("more is left out, and only counted", style="yellow")

    @abstractmethod
    def _note(self, name: str, note: "Note") -> None:
        """Show what is done besides training."""

    @abstractmethod
    def _step(self, name: str, step: "Step") -> None:
        """Show how far it is."""


class Bars(Telling):
    """A progress bar for each model."""

    def __init__(self, models: tuple[str, ...], console: Console) -> None:
        super().__init__(console)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[told]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self.bars = Progress(*columns, console=console)
        self.tasks = {
            name: self.bars.add_task(name, total=None, start=False, told="waiting", left="")
            for name in models
        }
        self.errors: dict[str, float] = {}

    def __enter__(self) -> "Telling":
        self.bars.start()
        return self

    def close(self) -> None:
        """Put away the bars that do not move."""
        for task in self.bars.tasks:
            self.bars.update(task.id, visible=task.started)  # others would never move again
        self.bars.stop()

    def _note(self, name: str, note: "Note") -> None:
        far = "" if note.far is None else " {}/{}".format(*note.far)
        self.bars.update(self.tasks[name], told=note.doing + far)
        if note.steps is not None:
            self.bars.start_task(self.tasks[name])
            self.bars.update(self.tasks[name], total=note.steps, completed=note.step)

    def _step(self, name: str, step: "Step") -> None:
        self.errors |= {name: step.watched["cer"]} if step.watched else {}
        parts = [f"epoch {step.epoch + 1}", f"loss {step.loss:.3f}"]
        if name in self.errors:
            parts.append(f"CER {100 * self.errors[name]:.2f} %")
        if step.left_out:
            parts.append(f"skipped {step.left_out}")
        left = in_words(self._left(name, step))
        self.bars.update(self.tasks[name], completed=step.step, told=", ".join(parts), left=left)


class Lines(Telling):
    """A line at each look at the recordings kept apart, for a file or a pipe."""

    def _note(self, name: str, note: "Note") -> None:
        if note.far is None:
            of = "" if note.steps is None else f" of {note.steps}"
            self.say(f"{name}: {note.doing}{of}")

    def _step(self, name: str, step: "Step") -> None:
        left = in_words(self._left(name, step))
        if not step.watched:
            return
        figures = dict(step.watched)
        if len(figures) == 2:  # the mean of one head is that head
            figures.popitem()
        watched = ", ".join(f"{what} {100 * rate:.2f} %" for what, rate in figures.items())
        self.say(
            f"{name}: step {step.step} of {step.steps}, epoch {step.epoch + 1}, "
            f"loss {step.loss:.3f}, {watched.replace('cer', 'CER')}" + (left and f", {left}")
        )
