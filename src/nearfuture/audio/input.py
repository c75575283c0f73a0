"""Where a recording comes from: a path, bytes, an open file or a pipe."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from nearfuture.audio.error import AudioError
from nearfuture.audio.window import Window

AudioSource = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
"""The kinds of object that recordings are read from."""

_ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


@dataclass(frozen=True)
class AudioInput:
    """An open recording.

    Attributes:
        name: Its name in messages.
        file: Its bytes; those of a pipe can be read once.
        whole: The path of all of it, or its bytes, for a decoder in another process.
    """

    name: str
    file: BinaryIO
    whole: str | bytes | None = None

    def to_disk(self, begun: bytes, stack: ExitStack) -> AudioInput:
        """Copy a pipe to a temporary file, which is gone when the stack is closed.

        Args:
            begun: What has been read of the pipe.
            stack: Closes the file.
        """
        file = stack.enter_context(tempfile.NamedTemporaryFile())  # noqa: SIM115
        try:
            file.write(begun)
            shutil.copyfileobj(self.file, file)
            file.flush()
        except OSError as error:
            raise _unreadable(self.name, error) from error
        return AudioInput(self.name, cast(BinaryIO, file), whole=file.name)


def open_input(source: AudioSource, stack: ExitStack) -> AudioInput:
    """Open a recording; what is opened here is closed with the stack, and nothing else.

    Raises:
        AudioError: if there is no such file, it may not be read, or it is open as text.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
        return AudioInput("the recording", io.BytesIO(data), whole=data)
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        try:
            file = stack.enter_context(path.open("rb"))
            return AudioInput(os.fspath(source), file, whole=str(path))
        except (OSError, ValueError) as error:
            raise _unreadable(os.fspath(source), error) from error
    name = str(getattr(source, "name", None) or "the recording")
    if isinstance(source, io.TextIOBase):
        raise AudioError(
            f"{name} is open as text: open it in binary mode, open(path, 'rb')", code="invalid"
        )
    try:
        if not source.seekable():
            return AudioInput(name, source)
        begin = source.tell()
        end = source.seek(0, os.SEEK_END)
    except OSError as error:
        raise _unreadable(name, error) from error
    return AudioInput(name, cast(BinaryIO, Window(source, begin, end)))


def _unreadable(name: str, error: Exception) -> AudioError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    absent = isinstance(error, (*_ABSENT, ValueError))
    return AudioError(
        f"cannot read {name}: {reason[:1].lower()}{reason[1:]}",
        code="not_found" if absent else "unavailable",
    )
