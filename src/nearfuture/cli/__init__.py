"""The command line: one file per command; what is heavy is loaded when a command runs."""

import sys
from collections.abc import Sequence

from cyclopts import App

from nearfuture import __version__
from nearfuture.cli.console import Console, complain, disk_full, fit_streams, reader_left, unwritten
from nearfuture.cli.flags import running
from nearfuture.error import NearfutureError

__all__ = ["app", "main"]

app = App(
    name="nearfuture",
    help="Streaming speech recognition with an exact, configurable lookahead.",
    version=__version__,
)

for _name in (
    "transcribe",
    "listen",
    "stream",
    "measure",
    "align",
    "train",
    "export",
    "audit",
    "demo",
    "budget",
    "evaluate",
    "data",
    "phrases",
    "lm",
    "quantize",
    "serve",
    "lab",
):
    # Loaded when it is asked for: a command starts sooner without the others.
    app.command(f"nearfuture.cli.{_name}:{_name}", name=_name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; an error of the user is one line on stderr and exit code 2.

    What the machine refuses, such as a full disk, is one line and exit code 1.

    Args:
        arguments: What was typed after the name of the program; by default that of the process.
    """
    tokens = sys.argv[1:] if arguments is None else arguments
    fit_streams()
    try:
        with running(app, tokens):
            _run(tokens)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        reader_left()
    except OSError as error:
        unwritten(error)
    except Exception as error:
        if refused := disk_full(error):
            unwritten(refused)
        raise


def _run(tokens: Sequence[str]) -> None:
    try:
        app(tokens, console=Console())
    except SystemExit:
        sys.stdout.flush()  # while a reader who has left can still be noticed
        raise
    except NearfutureError as error:
        complain(error)
        sys.exit(2)
