"""Where a recording comes from: a path, bytes, an open file or a pipe."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, cast

from nearfuture.audio.error import AudioError
from nearfuture.audio.window import Window

AudioSource = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
"""What recordings are read from."""


class Source:
    """An open recording.

    Attributes:
        name: for messages.
        file: its bytes; in a pipe they can be read once.
        whole: the path of all of it, or its bytes, for a decoder in another process.
        seekable: whether `file` is not a pipe.
    """

    def __init__(
        self, name: str, file: BinaryIO, *, seekable: bool, whole: str | bytes | None = None
    ) -> None:
        self.name, self.file, self.seekable, self.whole = name, file, seekable, whole


def open_source(source: AudioSource, stack: ExitStack) -> Source:
    """Open a recording; what is opened here is closed with the stack, and nothing else.

    Raises:
        AudioError: if there is no such file, it may not be read, or it is open as text.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
        return Source("the recording", io.BytesIO(data), seekable=True, whole=data)
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        try:
            file = stack.enter_context(path.open("rb"))
            seekable = file.seekable()
        except (OSError, ValueError) as error:
            raise _unopened(os.fspath(source), error) from error
        return Source(os.fspath(source), file, seekable=seekable, whole=str(path))
    name = str(getattr(source, "name", None) or "the recording")
    if isinstance(source, io.TextIOBase):
        raise AudioError(f"{name} is open as text: open it in binary mode, open(path, 'rb')")
    try:
        begin = source.tell() if source.seekable() else None
        if begin is None:
            return Source(name, source, seekable=False)
        end = source.seek(0, os.SEEK_END)
    except OSError as error:
        raise _unopened(name, error) from error
    return Source(name, cast(BinaryIO, Window(source, begin, end)), seekable=True)


def spooled(source: Source, begun: bytes, stack: ExitStack) -> Source:
    """A pipe as a file: read to its end, onto the disk.

    Args:
        source: a pipe.
        begun: what has been read of it.
        stack: closes the file, which is then gone.
    """
    file = stack.enter_context(tempfile.NamedTemporaryFile())  # noqa: SIM115
    try:
        file.write(begun)
        shutil.copyfileobj(source.file, file)
        file.flush()
    except OSError as error:
        raise _unopened(source.name, error) from error
    return Source(source.name, cast(BinaryIO, file), seekable=True, whole=file.name)


def _unopened(name: str, error: Exception) -> AudioError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return AudioError(f"cannot read {name}: {reason[:1].lower()}{reason[1:]}")
