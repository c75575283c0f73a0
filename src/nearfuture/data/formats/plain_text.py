"""Text files as people's programs write them: byte order marks, any line ends, other encodings."""

from __future__ import annotations

from pathlib import Path

from nearfuture.data.item import Collector, Kind
from nearfuture.error import NearfutureError

_UTF16 = (b"\xff\xfe", b"\xfe\xff")


_LFS = b"version https://git-lfs"


class NotText(NearfutureError):  # noqa: N818 - what it says, not that it failed
    """A text file that is none, or in another encoding; `kind` is what a fault calls it."""

    def __init__(self, message: str, kind: Kind = "not UTF-8") -> None:
        super().__init__(message)
        self.kind: Kind = kind


def check_pointer(data: bytes, path: Path) -> None:
    """Refuse the few lines that Git leaves in place of a file which its LFS keeps.

    >>> check_pointer(b"version https://git-lfs.github.com/spec/v1", Path("all.tsv"))
    Traceback (most recent call last):
    ...
    nearfuture.data.formats.plain_text.NotText: all.tsv is a Git LFS pointer, not the file itself: \
fetch it with git lfs pull
    """
    if data.startswith(_LFS):
        raise NotText(
            f"{path} is a Git LFS pointer, not the file itself: fetch it with git lfs pull",
            "Git LFS pointer",
        )


def read_text(path: Path) -> str:
    r"""A UTF-8 file without its byte order mark; line ends of any kind are `\n`.

    Raises:
        NotText: naming the byte that is not, or UTF-16, or a Git LFS pointer.
        NearfutureError: where the file cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NearfutureError(f"cannot read {path}: {error.strerror or error}") from error
    return decoded(data, path)


def decoded(data: bytes, path: Path) -> str:
    r"""What `read_text` makes of the bytes of a file.

    >>> decoded(b"\xef\xbb\xbfone\r\ntwo", Path("a.txt"))
    'one\ntwo'
    """
    check_pointer(data, path)
    if data.startswith(_UTF16):
        raise NotText(f"{path} is UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise NotText(
            f"{path} is not UTF-8 (byte 0x{data[error.start]:02x} in line {line}): save it as "
            f"UTF-8, e.g. iconv -f cp949 -t UTF-8 for Korean, -f cp1252 for English"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def lines(text: str) -> list[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1.

    Unlike `splitlines`, no character that may stand in a transcript ends a line.
    """
    return [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]


class Said:
    """What lines say of ids: first word → the rest of its line, each id once.

    An id that is given twice is a fault. Where both lines say the same the first counts; otherwise
    neither does, since nobody can tell which is right.

    Attributes:
        by_id: what is said, but for what is contradicted.
        contradicted: ids of which two lines say different things.
    """

    def __init__(self) -> None:
        self.by_id: dict[str, str] = {}
        self.contradicted: set[str] = set()
        self._where: dict[str, str] = {}

    def read(self, path: Path, found: Collector, *, of: str = "") -> None:
        """Add the lines of a file, if it is there.

        Args:
            path: the file.
            found: gathers the faults.
            of: what stands behind an id in the name of a fault, e.g. " of folder".
        """
        if not path.is_file():
            return
        for number, line in lines(read_text(path)):
            name, rest = [*line.strip().split(None, 1), ""][:2]
            where = f"line {number} of {path.name}"
            if name not in self._where:
                self.by_id[name], self._where[name] = rest, where
                continue
            if name not in self.contradicted and self.by_id[name] == rest:
                reason = f"{where} says again what {self._where[name]} says"
            else:
                reason = f"{where} says {rest!r}, and {self._where[name]} another thing: keep one"
                self.contradicted.add(name)
                self.by_id.pop(name, None)
            found.fault("given twice", f"{name}{of}", reason)
