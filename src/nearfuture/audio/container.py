"""Containers that libavformat reads (m4a, webm, wma, …), decoded in a process that can be ended.

A demuxer that is chosen by content may open other files, sockets and devices, and native code that
hangs cannot be interrupted. So the signature chooses the one demuxer, which is given the bytes of
the file and may open nothing; and it works in a process that has a deadline. Processes are kept for
the next file while nothing goes wrong.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio.error import AudioError, Damage
from nearfuture.audio.limits import MAX_CHANNELS

DEMUXERS = {
    "MPEG-4 (m4a, mp4)": "mov",
    "QuickTime": "mov",
    "WebM or Matroska": "matroska",
    "Windows Media": "asf",
    "AAC": "aac",
    "AMR": "amr",
    "FLAC in Ogg": "ogg",
}
"""The one demuxer for each signature, by the names of `nearfuture.audio.signature`."""

TIMEOUT_S = 20.0
"""How long a process may take for the next block of samples."""

_START_S = 60.0  # a busy machine needs a while to start a process
_SHARE = 0.5  # seconds of work for each second of audio: decoders need a hundredth
_MAX_IDLE = 2
_MAX_BLOCK = 1 << 24


def has_media() -> bool:
    """Whether the extra `media` is installed."""
    return importlib.util.find_spec("av") is not None


class ContainerDecoder:
    """A file that another process decodes.

    Args:
        source: A path, or the bytes of the file.
        demuxer: The only demuxer that may read it.
        name: What the file is called in messages.

    Raises:
        AudioError: if it cannot be read, or not in time.
    """

    def __init__(self, source: str | bytes, *, demuxer: str, name: str) -> None:
        self.frames: int | None = None
        self.floats = True
        self.damage: Damage | None = None
        self._name = name
        self._waited_s = self._decoded_s = 0.0
        self._worker: _Worker | None = None
        self._worker = _Worker.take()
        try:
            request: dict[str, Any] = {"demuxer": demuxer, "channels": MAX_CHANNELS}
            request |= {"bytes": len(source)} if isinstance(source, bytes) else {"path": source}
            with self._deadline(_START_S) as worker:
                worker.send(json.dumps(request).encode() + b"\n")
                if isinstance(source, bytes):
                    worker.send(source)
                answer = worker.line()
            if "error" in answer:
                self._release()
                raise AudioError(f"{name} {answer['error']}")
            self.rate, self.channels = int(answer["rate"]), int(answer["channels"])
        except BaseException:
            self.close()
            raise
        self._block = np.zeros((0, self.channels), np.float32)

    def read(self, frames: int) -> NDArray[np.float32]:
        """Read at most so many samples, (n, channels); n = 0 at the end.

        Raises:
            AudioError: if they do not come in time.
        """
        if len(self._block) == 0 and self._worker is not None:
            self._block = self._next_block()
        block, self._block = self._block[:frames], self._block[frames:]
        return block

    def _next_block(self) -> NDArray[np.float32]:
        with self._deadline(TIMEOUT_S) as worker:
            block = worker.block()
            answer = {} if block else worker.line()
        if not block:
            if reason := answer.get("damage"):
                self.damage = Damage(reason, self._decoded_s)
            self._release()
        samples = np.frombuffer(block, "<f4").reshape(-1, self.channels)
        self._decoded_s += len(samples) / self.rate
        return cast("NDArray[np.float32]", samples)

    def seek(self, frame: int) -> bool:
        """Stay: only reading leads to a sample."""
        return frame == 0

    def __del__(self) -> None:
        """End the process for a file that nobody reads any more, as when a client has left."""
        self.close()

    def close(self) -> None:
        """End the process, unless it has finished with this file."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def _release(self) -> None:
        if self._worker is not None:
            self._worker.give_back()
            self._worker = None

    @contextmanager
    def _deadline(self, timeout_s: float) -> Iterator[_Worker]:
        """Wait for the process only so long: for this answer, and in all for so much audio."""
        worker = self._worker
        assert worker is not None
        remaining_s = _START_S + _SHARE * self._decoded_s - self._waited_s
        timer = threading.Timer(max(0.0, min(timeout_s, remaining_s)), worker.kill)
        timer.daemon = True
        began = time.monotonic()
        timer.start()
        try:
            yield worker
        except (OSError, EOFError, ValueError) as error:
            late = worker.killed
            self.close()
            why = "took too long" if late else "made its decoder fail"
            raise AudioError(f"{self._name} {why}: it is damaged, or no recording") from error
        finally:
            timer.cancel()
            self._waited_s += time.monotonic() - began


class _Worker:
    """One process, and the pipes to it."""

    _idle: list[_Worker] = []  # noqa: RUF012 - shared on purpose
    _lock = threading.Lock()

    def __init__(self) -> None:
        command = [sys.executable, "-P", "-m", "nearfuture.audio.container_process"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self.killed = False
        self._owner = os.getpid()

    @classmethod
    def take(cls) -> _Worker:
        """Take an idle process, or start one."""
        with cls._lock:
            while cls._idle:
                worker = cls._idle.pop()
                if worker._owner == os.getpid() and worker._process.poll() is None:
                    return worker
        return cls()

    def give_back(self) -> None:
        """Keep the process for the next file, unless enough are idle."""
        with self._lock:
            if not self.killed and len(self._idle) < _MAX_IDLE:
                self._idle.append(self)
                return
        self.kill()

    @classmethod
    def end_all(cls) -> None:
        """End the idle processes."""
        with cls._lock:
            workers, cls._idle = cls._idle, []
        for worker in workers:
            if worker._owner == os.getpid():
                worker.kill()

    def send(self, data: bytes) -> None:
        """Send bytes to the process."""
        self._requests.write(data)
        self._requests.flush()

    def line(self) -> dict[str, Any]:
        """Receive a line of JSON."""
        line = self._answers.readline(1 << 16)
        if not line.endswith(b"\n"):
            raise EOFError
        return cast("dict[str, Any]", json.loads(line))

    def block(self) -> bytes:
        """Receive the next samples; none at the end."""
        count = int.from_bytes(self._exactly(4), "little")
        if count > _MAX_BLOCK:
            raise EOFError
        return self._exactly(count)

    def _exactly(self, count: int) -> bytes:
        data = self._answers.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def kill(self) -> None:
        """End the process, whatever it does."""
        self.killed = True
        self._process.kill()
        self._process.wait()
        for pipe in (self._requests, self._answers):
            with contextlib.suppress(OSError):
                pipe.close()


atexit.register(_Worker.end_all)
