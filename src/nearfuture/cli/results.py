"""Where results are written: standard output, one file for all, or a folder with one for each."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from nearfuture.error import NearfutureError

Write = Callable[[str], None]

SUFFIXES: Mapping[str, str] = {
    "txt": ".txt",
    "srt": ".srt",
    "vtt": ".vtt",
    "json": ".json",
    "ctm": ".ctm",
    "textgrid": ".TextGrid",
}
_FORMATS = {suffix.lower(): form for form, suffix in SUFFIXES.items()} | {".jsonl": "json"}
_SINGLE = {"srt": "subtitle file", "vtt": "subtitle file", "textgrid": "TextGrid"}


def choose_format(form: str | None, out: Path | None, formats: tuple[str, ...]) -> str:
    """Choose the format: the one asked for, that of the file, or the first of all.

    Args:
        form: The format asked for.
        out: The file or the folder to write to.
        formats: The formats of the command, the default first.

    Raises:
        NearfutureError: where both are there and differ, and for a file of another format.
    """
    special = out is not None and out.exists() and not out.is_file()  # a folder, a device, a pipe
    if out is None or special:
        return form or formats[0]
    named = _FORMATS.get(out.suffix.lower())
    if (out.suffix or out.is_file()) and named not in formats:
        suffixes = ", ".join(SUFFIXES[known] for known in formats)
        raise NearfutureError(
            f"`out` {out}: a file is one of {suffixes}, and a folder with such a name must be "
            f"there already",
            code="unsupported",
            parameter="out",
        )
    if form and named and form != named:
        raise NearfutureError(
            f"`form` {form} does not go with `out` {out}: omit one of them",
            code="conflict",
            parameter="form",
        )
    return form or named or formats[0]


class ResultFiles:
    """The destination of a command's results; a context manager.

    A file is there when it is complete, and not before: what fails leaves nothing behind. Neither
    does a file for all recordings if none of them had a result.

    Args:
        form: The format.
        out: A file for all recordings, if it has a suffix; otherwise a folder with a file for each;
            standard output if None.
        recordings: How many recordings there are.

    Raises:
        NearfutureError: where one file cannot hold them all, or the folder cannot be made.
        OSError: which names the file that cannot be written.
    """

    def __init__(self, form: str, out: Path | None, *, recordings: int) -> None:
        self._form = form
        self._stack = ExitStack()
        self._owners: dict[Path, str] = {}
        self._has_results = False
        is_folder = out is not None and (out.is_dir() if out.exists() else not out.suffix)
        self._folder = out if is_folder else None
        if form in _SINGLE and recordings > 1 and not is_folder:
            raise NearfutureError(
                f"a {_SINGLE[form]} is of one recording, not of {recordings}: name a folder with "
                f"`out`",
                code="conflict",
                parameter="out",
            )
        self._write: Write = _print
        if self._folder is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise NearfutureError(
                    f"cannot write to {out}: {error.strerror}", parameter="out"
                ) from error
        elif out is not None:
            self._write = self._stack.enter_context(replaced(out))

    @property
    def separate(self) -> bool:
        """Whether each recording has a file of its own."""
        return self._folder is not None

    @contextmanager
    def open(self, name: str, stem: str) -> Iterator[Write]:
        """Open the place for the result of one recording.

        Args:
            name: The name of the recording in messages.
            stem: The stem of its file, if it has a file of its own.
        """
        if self._folder is None:
            yield self._write
            self._has_results = True
            return
        path = self._folder / f"{stem}{SUFFIXES[self._form]}"
        owner = self._owners.setdefault(path, name)
        if owner != name:
            raise NearfutureError(
                f"{name}: {path} is that of {owner}; rename one of them", code="conflict"
            )
        with replaced(path) as write:
            yield write

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and not self._has_results:
            kind, error = NearfutureError, NearfutureError("nothing to write")
        self._stack.__exit__(kind, error, trace)


def check_writable(path: Path, parameter: str) -> None:
    """Make the folders above a file, and refuse what could not be written there later.

    Args:
        path: The file, which may be there already.
        parameter: The option that names it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NearfutureError(
            f"`{parameter}={path}` cannot be written: {error.strerror}", parameter=parameter
        ) from error
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise NearfutureError(
            f"`{parameter}={path}` cannot be written: name a file in a folder of yours",
            parameter=parameter,
        )


@contextmanager
def replaced(path: Path) -> Iterator[Write]:
    """Write text to a file that is replaced once all of it is there; until then the old one stays.

    Folders above it are made.

    Raises:
        OSError: which names the file that cannot be written.
    """
    plain = not path.exists() or path.is_file()  # not a device or a pipe
    path = Path(os.path.realpath(path)) if plain else path
    part = path.with_name(f".{path.name}.{os.getpid()}.part") if plain else path
    with _names(path):
        if not path.parent.exists():
            path.parent.mkdir(parents=True)
        file = part.open("w", encoding="utf-8", newline="\n")

    def write(text: str) -> None:
        with _names(path):
            file.write(text)

    try:
        yield write
        with _names(path):
            file.close()
            if plain:
                part.replace(path)
    except BaseException:
        with suppress(OSError):  # it has been reported
            file.close()
        if plain:
            part.unlink(missing_ok=True)
        raise


@contextmanager
def _names(path: Path) -> Iterator[None]:
    """Let an error of writing name the file as the user knows it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _print(text: str) -> None:
    print(text, end="", flush=True)
