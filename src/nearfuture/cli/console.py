"""A terminal, a file or a pipe: whoever reads from a pipe may leave before the end."""

import os
import sys
from typing import NoReturn

import rich.console

__all__ = ["Console", "reader_left"]


class Console(rich.console.Console):
    """A console that knows a reader who has seen enough from a command that failed.

    That of rich ends with the exit code 1 in both cases.
    """

    def on_broken_pipe(self) -> None:
        """Say nothing more, and end."""
        self.quiet = True
        reader_left()


def reader_left() -> NoReturn:
    """End as if the broken pipe had ended this process, as in `nearfuture … | head`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)
