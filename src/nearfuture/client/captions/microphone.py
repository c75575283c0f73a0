"""Where live samples come from: a microphone, or a recording played in its place."""

from __future__ import annotations

import queue
import time
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio import Audio
from nearfuture.error import NearfutureError

Samples = NDArray[np.float32]

BLOCK_MS = 20
BUFFERED_S = 10.0  # of audio kept for a computer that is busy for a moment


class LiveSource(Protocol):
    """A source of samples as they are spoken; a context manager."""

    @property
    def rate(self) -> int:
        """Samples per second."""

    @property
    def lost_s(self) -> float:
        """Seconds of audio that were lost because they were not read in time."""

    def read(self, timeout_s: float) -> Samples | None:
        """The next samples (n,), none if none come within the timeout; None at the end."""

    def stop(self) -> Samples:
        """Record no more: the samples (n,) that were spoken until now and not read yet."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class Microphone:
    """A microphone, through PortAudio; it records while its context is open.

    The device's own rate is used. Samples wait in memory for ten seconds at most; later ones are
    lost, and counted.

    Args:
        device: number or part of a name, as `microphones` lists them; by default the system's.

    Raises:
        NearfutureError: where sounddevice or PortAudio is missing, or there is no such device.
    """

    def __init__(self, device: str | None = None) -> None:
        self._sounddevice = _sounddevice()
        self._device = int(device) if device is not None and device.isdigit() else device
        try:
            about = self._sounddevice.query_devices(self._device, "input")
        except (ValueError, self._sounddevice.PortAudioError) as error:
            raise _no_device(device, error) from error
        self.name = str(about["name"])
        self.rate = int(about["default_samplerate"])
        self.lost_s = 0.0
        self._ended = False
        self._blocks: queue.Queue[Samples] = queue.Queue(maxsize=int(BUFFERED_S * 1000 / BLOCK_MS))
        self._stream: Any = None

    def __enter__(self) -> Self:
        try:
            self._stream = self._sounddevice.InputStream(
                device=self._device,
                samplerate=self.rate,
                channels=1,
                dtype="float32",
                blocksize=self.rate * BLOCK_MS // 1000,
                callback=self._received,
                finished_callback=self._finished,
            )
            self._stream.start()
        except (ValueError, self._sounddevice.PortAudioError) as error:
            reason = " ".join(str(error).split())
            raise NearfutureError(
                f"the microphone {self.name!r} cannot be opened ({reason}): is another program "
                f"using it? Choose another `device` (nearfuture listen --list-devices)",
                code="unavailable",
                parameter="device",
            ) from error
        return self

    def __exit__(self, *error: object) -> None:
        if self._stream is not None:
            self._stream.close()

    def read(self, timeout_s: float) -> Samples | None:
        """The next samples (n,), none if none come within the timeout.

        Raises:
            NearfutureError: when the microphone is gone.
        """
        try:
            return self._blocks.get(timeout=timeout_s)
        except queue.Empty:
            if self._ended:
                raise NearfutureError(
                    f"the microphone {self.name!r} has stopped: was it unplugged?",
                    code="unavailable",
                ) from None
            return np.zeros(0, np.float32)

    def stop(self) -> Samples:
        """Record no more: the samples (n,) that were spoken until now and not read yet."""
        self._stream.close()
        self._stream = None
        waiting = [self._blocks.get_nowait() for _ in range(self._blocks.qsize())]
        return np.concatenate([np.zeros(0, np.float32), *waiting])

    def _received(self, block: NDArray[np.float32], frames: int, when: object, status: Any) -> None:
        """In PortAudio's thread, which must never wait; its buffer is used again."""
        if status and status.input_overflow:
            self.lost_s += frames / self.rate  # PortAudio does not say how much: a block at least
        try:
            self._blocks.put_nowait(block[:, 0].copy())
        except queue.Full:
            self.lost_s += frames / self.rate

    def _finished(self) -> None:
        self._ended = True


class PlayedFile:
    """A recording in place of a microphone: each block comes when it would have been spoken.

    Args:
        audio: what is played.

    >>> with PlayedFile(Audio(np.zeros(1200, np.float32), 8000)) as played:
    ...     print([None if (x := played.read(1.0)) is None else len(x) for _ in range(9)])
    [160, 160, 160, 160, 160, 160, 160, 80, None]
    """

    lost_s = 0.0

    def __init__(self, audio: Audio) -> None:
        self._audio = audio
        self.rate = audio.rate
        self._block = max(1, audio.rate * BLOCK_MS // 1000)
        self._played = 0
        self._began_s = 0.0

    def __enter__(self) -> Self:
        self._began_s = time.monotonic()
        return self

    def __exit__(self, *error: object) -> None: ...

    def read(self, timeout_s: float) -> Samples | None:
        """The next block when it is due; None after the last."""
        block = self._audio.samples[self._played : self._played + self._block]
        if len(block) == 0:
            return None
        due_s = self._began_s + (self._played + len(block)) / self.rate
        wait_s = due_s - time.monotonic()
        if wait_s > timeout_s:
            time.sleep(timeout_s)
            return block[:0]
        time.sleep(max(0.0, wait_s))
        self._played += len(block)
        return block

    def stop(self) -> Samples:
        """Nothing has been spoken that was not read."""
        return np.zeros(0, np.float32)


def microphones() -> list[tuple[int, str, int, int, bool]]:
    """Return number, name, channels and rate of each input device, and if it is the default.

    Raises:
        NearfutureError: where sounddevice or PortAudio is missing.
    """
    sounddevice = _sounddevice()
    try:
        devices = list(sounddevice.query_devices())
        default = sounddevice.default.device[0]
    except sounddevice.PortAudioError as error:
        raise _no_device(None, error) from error
    return [
        (
            number,
            str(device["name"]),
            int(device["max_input_channels"]),
            int(device["default_samplerate"]),
            number == default,
        )
        for number, device in enumerate(devices)
        if device["max_input_channels"] > 0
    ]


def _sounddevice() -> Any:
    try:
        import sounddevice
    except ImportError as error:
        raise NearfutureError(
            "a microphone needs sounddevice, which the base install leaves out; install it with: "
            "pip install 'nearfuture[live]'; or play a recording with `file`",
            code="missing_dependency",
        ) from error
    except OSError as error:  # it is installed, but not the library beneath it
        raise NearfutureError(
            "a microphone needs the PortAudio library (on Debian and Ubuntu: apt install "
            "libportaudio2); or play a recording with `file`",
            code="missing_dependency",
        ) from error
    return sounddevice


def _no_device(device: str | None, error: Exception) -> NearfutureError:
    if device is None:
        message = (
            "there is no microphone that this computer would use by default: plug one in, choose "
            "one with `device` (`list_devices` lists them), or play a recording with `file`"
        )
    else:
        reason = " ".join(str(error).split())
        message = f"`device` {device}: {reason}; nearfuture listen --list-devices lists them"
    return NearfutureError(message, code="not_found", parameter="device")
