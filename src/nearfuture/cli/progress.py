"""A progress bar on the terminal's stderr that makes room for text beside it."""

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

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
    """Format hours, minutes and seconds.

    >>> clock(59.9), clock(7384)
    ('0:59', '2:03:04')
    """
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


class ReadingProgress:
    """A progress bar of reading recordings; nothing where stderr is no terminal.

    Args:
        recordings: How many recordings there are.
        shown: Whether to show anything.
    """

    def __init__(self, recordings: int, *, shown: bool) -> None:
        console = Console(stderr=True)
        self._shown = shown and console.is_terminal and not console.is_dumb_terminal
        self._with_stdout = sys.stdout is not None and sys.stdout.isatty()
        self.recordings, self._number = recordings, 0
        self._bar: Progress | None = None
        self._next_s = 0.0

    def blocks(self, reader: "AudioReader", name: str) -> Iterator["NDArray[np.float32]"]:
        """Yield the blocks of a recording, about a second each, and show how far they are."""
        self._number += 1
        title = name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"
        if self.recordings > 1:
            title = f"{self._number}/{self.recordings} {title}"
        began = time.monotonic()
        try:
            for block in reader.blocks(reader.rate):
                yield block
                now = time.monotonic()
                if self._shown and now >= self._next_s:
                    self._next_s = now + _EVERY_S
                    self._show(title, reader, now - began)
        finally:
            self.close()

    def make_room(self, *, stderr: bool = False) -> None:
        """Hide the bar before a line of text on the same terminal; it comes back below it."""
        if self._with_stdout or stderr:
            self.close()

    def close(self) -> None:
        """Hide the bar until there is more to show."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _show(self, title: str, reader: "AudioReader", elapsed_s: float) -> None:
        read_s = reader.at / reader.rate
        total_s = None if reader.frames is None else reader.frames / reader.rate
        status = clock(read_s) if total_s is None else f"{clock(read_s)} of {clock(total_s)}"
        if speed := elapsed_s and read_s / elapsed_s:
            status += f", {speed:.0f}×"
            if total_s is not None:
                status += f", {clock(max(0.0, total_s - read_s) / speed)} left"
        if self._bar is None:  # a bar that was hidden would erase what is above it
            self._bar = _bar()
            self._bar.add_task(title, total=total_s, status="")
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=read_s, status=status, refresh=True)


def _bar() -> Progress:
    console = Console(stderr=True)
    console.width -= 3  # room for the ^C that a terminal writes on the same line
    whole = Column(no_wrap=True)
    return Progress(
        TextColumn("{task.description}", markup=False, style="cyan", table_column=whole),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[status]}", markup=False, table_column=whole),
        console=console,
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
        expand=True,
    )
