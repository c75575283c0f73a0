"""A terminal, a file or a pipe: what it cannot print or take, and whoever stops reading."""

import codecs
import errno
import os
import sys
from typing import NoReturn

import rich.console

from nearfuture.cli.flags import explain
from nearfuture.error import NearfutureError
from nearfuture.serving.log import printable

# The signs of tables and messages in ASCII, each as wide as it was.
_PLAIN = str.maketrans(
    {
        "·": "-", "…": "~", "→": ">", "×": "x", "–": "-", "—": "-", "−": "-", "≤": "<", "≥": ">",
        "█": "#", "▒": "+", "░": ".", "◀": "<", "✗": "x", "•": "*", "“": "'", "”": "'", "’": "'",
        "τ": "t", "∞": "~", "Σ": "S", "µ": "u", "²": "2", "└": "`",
    }
)  # fmt: skip
_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


class Console(rich.console.Console):
    """A console that ends quietly when its reader has left, as in `nearfuture … | head`.

    That of rich ends with the exit code 1, as if the command had failed.
    """

    def on_broken_pipe(self) -> None:
        """Print nothing more, and end."""
        self.quiet = True
        reader_left()


def fit_streams() -> None:
    r"""Let standard output and error take every character, even where they were closed.

    A character that the terminal's encoding lacks is written as `\uXXXX`, as JSON does, which
    loses nothing; typographic signs as the nearest of ASCII.
    """
    codecs.register_error("nearfuture", _escaped)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed before this process began
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="nearfuture")


def complain(message: str | NearfutureError) -> None:
    """Print a message on stderr; where that cannot be written either, nothing more can be done.

    Names of files and what a bundle or a server says of itself may be in it: what would move the
    cursor or change colours is shown by its code.
    """
    text = explain(message) if isinstance(message, NearfutureError) else message
    text = "\n".join(map(printable, text.split("\n")))
    try:
        print(f"nearfuture: {text}", file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def disk_full(error: Exception) -> OSError | None:
    """Find the reason behind an error of a library that writes files; None: it is a bug of ours.

    libsndfile, which writes sound, only says "System error"; a recording that cannot be read is an
    `AudioError` by then.
    """
    if type(error).__name__ == "LibsndfileError":
        return OSError(errno.EIO, "the disk is full, or does not take the sound")
    for number in _WRITE_ERRORS:
        if os.strerror(number) in str(error):
            return OSError(number, os.strerror(number))
    return None


def unwritten(error: OSError) -> NoReturn:
    """End because nothing can be written, most often because the disk is full."""
    reason = (error.strerror or type(error).__name__).lower()
    name = "the output" if error.filename is None else os.fsdecode(error.filename)
    verb = "write" if error.filename is None or error.errno in _WRITE_ERRORS else "use"
    _discard(sys.stdout)
    complain(f"cannot {verb} {name}: {reason}")
    sys.exit(1)


def reader_left() -> NoReturn:
    """End as if the broken pipe had ended this process, as in `nearfuture … | head`."""
    _discard(sys.stdout)
    sys.exit(141)


def _discard(stream: object) -> None:
    """Forget what could not be written: Python would try once more at its end, and fail."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(descriptor, stream.fileno())  # type: ignore[attr-defined]
    except (OSError, AttributeError, ValueError):  # it has none, in a test
        pass
    finally:
        os.close(descriptor)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    plain = error.object[error.start : error.end].translate(_PLAIN)
    units = plain.encode("utf-16-be", "surrogatepass")
    if plain.isascii():
        return plain, error.end
    return "".join(
        chr(unit) if unit < 128 else f"\\u{unit:04x}"
        for unit in (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    ), error.end
