"""Text files as people's programs write them: byte order marks, any line ends, other encodings."""

from __future__ import annotations

from pathlib import Path

from nearfuture.error import NearfutureError

__all__ = ["NotUTF8", "decoded", "lines", "read_text"]

_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class NotUTF8(NearfutureError):  # noqa: N818 - what it says, not that it failed
    """A text file in another encoding: which byte shows it, and how to convert it."""


def read_text(path: Path) -> str:
    r"""A UTF-8 file without its byte order mark; line ends of any kind are `\n`.

    Raises:
        NotUTF8: naming the byte that is not, or UTF-16.
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
    if data.startswith(_UTF16):
        raise NotUTF8(f"{path} is UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise NotUTF8(
            f"{path} is not UTF-8 (byte 0x{data[error.start]:02x} in line {line}): save it as "
            f"UTF-8, e.g. iconv -f cp949 -t UTF-8 for Korean, -f cp1252 for English"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def lines(text: str) -> list[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1.

    Unlike `splitlines`, no character that may stand in a transcript ends a line.
    """
    return [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
