"""Archives of others: their files are written below one folder, or the archive is refused."""

from __future__ import annotations

import io
import lzma
import os
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO

from nearfuture.error import NearfutureError


def unpack(
    archive: Path, folder: Path, *, progress: Callable[[int, int], None] | None = None
) -> None:
    """Write the files of a tar archive into a folder. Links and devices are skipped.

    Args:
        archive: compressed or not; or a Debian package, which holds one.
        folder: made if it does not exist.
        progress: called with the bytes of the archive read, and all of them.

    Raises:
        NearfutureError: where it is no archive, was cut off, or names a file outside the folder.
    """
    size = archive.stat().st_size

    def regular_file(member: tarfile.TarInfo, destination: str) -> tarfile.TarInfo | None:
        if not _stays_inside(member.name):  # the data filter makes absolute names relative
            raise NearfutureError(
                f"{archive} has a file {member.name!r}, outside its own folder: do not trust it",
                code="unsupported",
            )
        if progress:
            progress(raw.tell(), size)
        return tarfile.data_filter(member, destination) if member.isreg() else None

    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _tar(archive) as raw, tarfile.open(fileobj=raw, mode="r:*") as tar:
            tar.extractall(folder, filter=regular_file)
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        raise NearfutureError(f"{archive} cannot be unpacked: {error}", code="damaged") from error


def _tar(archive: Path) -> BinaryIO:
    """The archive itself, or the one with the files inside a Debian package."""
    raw = archive.open("rb")
    if raw.read(8) != b"!<arch>\n":
        raw.seek(0)
        return raw
    with raw:
        while len(header := raw.read(60)) == 60 and header[48:58].strip().isdigit():
            length = int(header[48:58])
            if header.startswith(b"data.tar"):
                return io.BytesIO(raw.read(length))
            raw.seek(length + length % 2, os.SEEK_CUR)
    raise tarfile.ReadError("there are no files in this package")


def _stays_inside(name: str) -> bool:
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    absolute = posix.is_absolute() or windows.is_absolute() or windows.drive or windows.root
    return not absolute and ".." not in posix.parts and ".." not in windows.parts
