"""Where results are written: standard output, one file for all, or a folder with one for each."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
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
_OF_ONE = {"srt": "subtitle file", "vtt": "subtitle file", "textgrid": "TextGrid"}


def chosen_format(form: str | None, out: Path | None, formats: tuple[str, ...]) -> str:
    """The format asked for, or that of the file; the first of them unless one is given.

    Raises:
        NearfutureError: where both are given and differ, and for a file of another kind.
    """
    if out is None or out.is_dir():
        return form or formats[0]
    if out.exists() and not out.is_file():  # a device or a pipe: its name says nothing
        return form or formats[0]
    named = _FORMATS.get(out.suffix.lower())
    if (out.suffix or out.is_file()) and named not in formats:
        there = ", ".join(SUFFIXES[one] for one in formats)
        raise NearfutureError(
            f"--out {out}: a file is one of {there}, and a folder with such a name must be there "
            f"already"
        )
    if form and named and form != named:
        raise NearfutureError(f"--format {form} does not go with --out {out}: leave one out")
    return form or named or formats[0]


class Output:
    """Where the results of a command go; a context manager.

    A file is there when it is complete, and not before: what fails leaves nothing behind. Neither
    does a file for all of which none had a result.

    Args:
        form: of what is written.
        out: a file for all recordings, by its suffix; otherwise a folder with a file for each;
            standard output unless given.
        recordings: how many there are.

    Raises:
        NearfutureError: where one file cannot hold them all, or the folder cannot be made.
        OSError: with the name of what cannot be written.
    """

    def __init__(self, form: str, out: Path | None, *, recordings: int) -> None:
        self._form = form
        self._stack = ExitStack()
        self._owners: dict[Path, str] = {}
        self._filled = False
        self._folder = out if out is not None and _is_folder(out) else None
        if form in _OF_ONE and recordings > 1 and self._folder is None:
            raise NearfutureError(
                f"a {_OF_ONE[form]} is of one recording, not of {recordings}: name a folder with "
                f"--out"
            )
        if self._folder is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise NearfutureError(f"cannot write to {out}: {error.strerror}") from error
        elif out is not None:
            self._write = self._stack.enter_context(written(out))
        else:
            self._write = _print

    @property
    def apart(self) -> bool:
        """Whether each recording has a file of its own."""
        return self._folder is not None

    @contextmanager
    def of(self, name: str, stem: str) -> Iterator[Write]:
        """What writes the result of one recording.

        Args:
            name: of the recording, for messages.
            stem: of the file for it, where it has one.
        """
        if self._folder is None:
            yield self._write
            self._filled = True
            return
        path = self._folder / f"{stem}{SUFFIXES[self._form]}"
        owner = self._owners.setdefault(path, name)
        if owner != name:
            raise NearfutureError(f"{name}: {path} is that of {owner}; rename one of them")
        with written(path) as write:
            yield write

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and not self._filled:
            kind, error = NearfutureError, NearfutureError("nothing to write")
        self._stack.__exit__(kind, error, trace)


@contextmanager
def written(path: Path) -> Iterator[Write]:
    """Text that becomes a file once all of it is there; until then the old one stays.

    Folders that are missing above it are made.

    Raises:
        OSError: with the name of the file, where it cannot be written.
    """
    plain = not path.exists() or path.is_file()
    path = Path(os.path.realpath(path)) if plain else path
    part = path.with_name(f".{path.name}.{os.getpid()}.part") if plain else path
    with _named(path):
        if not path.parent.exists():
            path.parent.mkdir(parents=True)
        file = part.open("w", encoding="utf-8", newline="\n")
    try:
        try:

            def write(text: str) -> None:
                with _named(path):
                    file.write(text)

            yield write
            with _named(path):
                file.flush()
        finally:
            with _named(path):
                file.close()
        if plain:
            with _named(path):
                part.replace(path)
    except BaseException:
        if plain:
            part.unlink(missing_ok=True)
        raise


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """An error of writing names the file as the user knows it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _print(text: str) -> None:
    print(text, end="", flush=True)


def _is_folder(out: Path) -> bool:
    if out.exists():
        return out.is_dir()
    return not out.suffix
