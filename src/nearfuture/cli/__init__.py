"""The command line: one file per command; what is heavy is loaded when a command runs."""

import sys
from collections.abc import Sequence

from cyclopts import App

from nearfuture import __version__
from nearfuture.cli.align import align
from nearfuture.cli.audit import audit
from nearfuture.cli.budget import budget
from nearfuture.cli.console import Console, complain, disk_full, fit_streams, reader_left, unwritten
from nearfuture.cli.data import data
from nearfuture.cli.demo import demo
from nearfuture.cli.evaluate import evaluate
from nearfuture.cli.export import export
from nearfuture.cli.flags import running
from nearfuture.cli.lab import lab
from nearfuture.cli.listen import listen
from nearfuture.cli.lm import lm
from nearfuture.cli.measure import measure
from nearfuture.cli.phrases import phrases
from nearfuture.cli.quantize import quantize
from nearfuture.cli.serve import serve
from nearfuture.cli.stream import stream
from nearfuture.cli.train import train
from nearfuture.cli.transcribe import transcribe
from nearfuture.error import NearfutureError

__all__ = ["app", "main"]

app = App(
    name="nearfuture",
    help="Streaming speech recognition with an exact, configurable lookahead.",
    version=__version__,
)

for _command in (
    transcribe,
    listen,
    stream,
    measure,
    align,
    train,
    export,
    audit,
    demo,
    budget,
    evaluate,
    data,
    phrases,
    lm,
    quantize,
    serve,
    lab,
):
    app.command(_command)


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
