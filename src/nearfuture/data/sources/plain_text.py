"""Text files as people's programs write them: byte order marks, any line ends, other encodings."""

from __future__ import annotations

from pathlib import Path

from nearfuture.data.cut import SkipCode
from nearfuture.data.sources.builder import SourceBuilder
from nearfuture.error import NearfutureError

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_LFS = b"version https://git-lfs"


class TextError(NearfutureError):
    """A file is not UTF-8 text.

    Attributes:
        reason: the message without the file's name.
        skip_code: the code of rows that are skipped for it.
    """

    def __init__(self, path: Path, reason: str, skip_code: SkipCode = "not UTF-8") -> None:
        super().__init__(f"{path} {reason}", code="unsupported", parameter="path")
        self.reason = reason
        self.skip_code: SkipCode = skip_code


def check_pointer(data: bytes, path: Path) -> None:
    """Refuse the few lines that Git leaves in place of a file which its LFS keeps.

    >>> check_pointer(b"version https://git-lfs.github.com/spec/v1", Path("all.tsv"))
    Traceback (most recent call last):
    ...
    nearfuture.data.sources.plain_text.TextError: all.tsv is a Git LFS pointer, not the file \
itself: fetch it with git lfs pull
    """
    if data.startswith(_LFS):
        raise TextError(
            path,
            "is a Git LFS pointer, not the file itself: fetch it with git lfs pull",
            "Git LFS pointer",
        )


def read_text(path: Path) -> str:
    r"""A UTF-8 file without its byte order mark; line ends of any kind are `\n`.

    Raises:
        TextError: naming the byte that is not UTF-8, or UTF-16, or a Git LFS pointer.
        NearfutureError: where the file cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NearfutureError(
            f"cannot read {path}: {error.strerror or error}", code="not_found", parameter="path"
        ) from error
    return decoded(data, path)


def decoded(data: bytes, path: Path) -> str:
    r"""The text that `read_text` makes of the bytes of a file.

    >>> decoded(b"\xef\xbb\xbfone\r\ntwo", Path("a.txt"))
    'one\ntwo'
    """
    check_pointer(data, path)
    if data.startswith(_UTF16):
        raise TextError(path, "is UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TextError(
            path,
            f"is not UTF-8 (byte 0x{data[error.start]:02x} in line {line}): save it as UTF-8, "
            f"e.g. iconv -f cp949 -t UTF-8 for Korean, -f cp1252 for English",
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def lines(text: str) -> list[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1.

    Unlike `splitlines`, no character that may stand in a transcript ends a line.
    """
    return [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]


class LinesById:
    """Files whose lines are an id and its value: first word → the rest of its line.

    An id that is listed twice is named. Where both lines agree the first counts; otherwise neither
    does, since nobody can tell which is right.

    Attributes:
        values: id → value, without the contradicted ids.
        contradicted: ids of which two lines state different values.
    """

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.contradicted: set[str] = set()
        self._where: dict[str, str] = {}

    def read(self, path: Path, builder: SourceBuilder, *, suffix: str = "") -> None:
        """Add the lines of a file, if it exists.

        Args:
            path: the file.
            builder: gathers the ids that are listed twice.
            suffix: follows an id in the name of what is skipped, e.g. " of folder".
        """
        if not path.is_file():
            return
        for number, line in lines(read_text(path)):
            name, value = [*line.strip().split(None, 1), ""][:2]
            where = f"line {number} of {path.name}"
            if name not in self._where:
                self.values[name], self._where[name] = value, where
                continue
            if name not in self.contradicted and self.values[name] == value:
                reason = f"{where} repeats {self._where[name]}"
            else:
                reason = f"{where} says {value!r}, {self._where[name]} something else: keep one"
                self.contradicted.add(name)
                self.values.pop(name, None)
            builder.skip("listed twice", f"{name}{suffix}", reason)
