"""The command line: one file per command, loaded when it is called."""

import sys
from collections.abc import Sequence

from cyclopts import App

from nearfuture import __version__
from nearfuture.error import NearfutureError

__all__ = ["app", "main"]

app = App(
    name="nearfuture",
    help="Recognisers that look exactly as far into the future as you allow, and no further.",
    version=__version__,
)

for _command, _help in {
    "transcribe": "Transcribe recordings within a latency budget.",
    "train": "Train a model inside a latency budget.",
    "demo": "Transcribe a bundled recording at every budget of the bundled model.",
    "budget": "What a model waits for and what it costs, from its sizes alone.",
}.items():
    app.command(f"nearfuture.cli.{_command}:{_command}", name=_command, help=_help)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a mistake of the user is one line on stderr and exit code 2.

    Args:
        arguments: those of the process unless given.
    """
    try:
        app(sys.argv[1:] if arguments is None else arguments)
    except NearfutureError as error:
        print(f"nearfuture: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
