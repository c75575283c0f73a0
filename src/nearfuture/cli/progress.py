"""A progress bar on the terminal's stderr that makes room for what is printed beside it."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from nearfuture.cli.console import Console

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfuture.audio import AudioReader

_EVERY_S = 0.1
_LONGEST_NAME = 24


def clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> clock(59.9), clock(7384)
    ('0:59', '2:03:04')
    """
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


class ReadingProgress:
    """How much of each recording has been heard: nothing where stderr is no terminal.

    Args:
        recordings: how many there are.
        shown: whether to show anything.
    """

    def __init__(self, recordings: int, *, shown: bool) -> None:
        console = Console(stderr=True)
        self._shown = shown and console.is_terminal and not console.is_dumb_terminal
        self._beside = sys.stdout is not None and sys.stdout.isatty()
        self._recordings, self._number = recordings, 0
        self._bar: Progress | None = None
        self._next_s = 0.0

    def watch(self, reader: "AudioReader", name: str) -> Iterator["NDArray[np.float32]"]:
        """The blocks of a recording, about a second each."""
        self._number += 1
        short = name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"
        if self._recordings > 1:
            short = f"{self._number}/{self._recordings} {short}"
        total_s = None if reader.frames is None else reader.frames / reader.rate
        began = time.monotonic()
        try:
            for block in reader.blocks(reader.rate):
                yield block
                now = time.monotonic()
                if self._shown and now >= self._next_s:
                    self._next_s = now + _EVERY_S
                    self._show(short, reader.at / reader.rate, total_s, now - began)
        finally:
            self.hide()

    @contextmanager
    def aside(self, *, stderr: bool = False) -> Iterator[None]:
        """Make room for lines on the same terminal; the bar comes back below them."""
        if self._beside or stderr:
            self.hide()
        yield

    def hide(self) -> None:
        """Take the bar off the screen until there is more to show."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.hide()

    def _show(self, name: str, heard_s: float, total_s: float | None, took_s: float) -> None:
        speed = heard_s / took_s if took_s else 0.0
        told = clock(heard_s) if total_s is None else f"{clock(heard_s)} of {clock(total_s)}"
        if speed:
            told += f", {speed:.0f}×"
            if total_s is not None:
                told += f", {clock(max(0.0, total_s - heard_s) / speed)} left"
        if self._bar is None:  # another each time: one that was hidden would erase what is above it
            console = Console(stderr=True)
            console.width -= 3  # room for the ^C that a terminal writes there, on the same line
            self._bar = _bar(console)
            self._bar.add_task(name, total=total_s, told="")
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=heard_s, told=told, refresh=True)


def _bar(console: Console) -> Progress:
    whole = Column(no_wrap=True)
    return Progress(
        TextColumn("{task.description}", markup=False, style="cyan", table_column=whole),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[told]}", markup=False, table_column=whole),
        console=console,
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
        expand=True,
    )
