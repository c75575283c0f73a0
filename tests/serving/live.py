"""A server as clients of others' protocols see it, and bundled recordings to send it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

from nearfuture.audio import read, resample
from nearfuture.runtime import Dispatcher
from nearfuture.serving.service import Service
from tests.serving.served import SAMPLES, Served, running, soon

CLIPS = ("flite-slt-720", "flite-rms-991", "espeak-ng-en-us-f2-503")
"""All at 8 kHz."""


@dataclass(frozen=True)
class Live:
    """Where it listens, and what it serves."""

    served: Served
    address: str  # host:port
    vosk: str  # host:port of vosk's own

    @property
    def service(self) -> Service:
        return self.served.service

    def is_alive(self) -> bool:
        return self.served.get("/health")[0] == 200

    def wait_until_free(self) -> None:
        """Until no stream is open, which must not take long."""
        assert soon(lambda: self.service.streams == 0, 30), "streams are still open"


@contextmanager
def live(engine: Dispatcher, **options: Any) -> Iterator[Live]:
    """A server of the digits, with a port for vosk's clients; options as for `running`."""
    with running(engine, roots=("vosk",), **options) as served:
        yield Live(served, *(f"127.0.0.1:{port}" for port in served.ports))


def clip(name: str) -> tuple[NDArray[np.float32], int]:
    """The samples of a bundled clip, and their rate."""
    audio = read(SAMPLES / f"{name}.flac")
    return audio.samples, audio.rate


def as_int16(samples: NDArray[np.float32]) -> NDArray[np.int16]:
    """What a microphone gives."""
    return np.clip(np.round(samples * 32767), -32768, 32767).astype("<i2")


def spoken(*names: str, pause_s: float, rate: int = 8000) -> NDArray[np.int16]:
    """Clips with silence behind each."""
    silence = np.zeros(round(pause_s * rate), np.float32)
    parts = []
    for name in names:
        samples, its_rate = clip(name)
        parts += [resample(samples, its_rate, rate), silence]
    return as_int16(np.concatenate(parts))


def wav(samples: NDArray[np.int16], rate: int) -> bytes:
    """A WAV file."""
    file = BytesIO()
    soundfile.write(file, samples, rate, format="WAV", subtype="PCM_16")
    return file.getvalue()
