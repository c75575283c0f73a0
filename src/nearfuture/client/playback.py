"""A recording played as a microphone would give it: by an absolute clock, chunk by chunk."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio import resample
from nearfuture.client.protocols import Pcm
from nearfuture.error import NearfutureError

CHUNK_MS = 20.0  # as telephones and browsers send
MIN_CHUNK_MS, MAX_CHUNK_MS = 1.0, 10_000.0


@dataclass(frozen=True, eq=False)
class PcmChunk:
    """Samples that lie next to each other.

    Args:
        pcm: (n,) int16.
        due_s: when the last of them has been spoken, in seconds from the start of the recording;
            no microphone has them earlier.
    """

    pcm: Pcm
    due_s: float


def chunks(pcm: Pcm, rate: int, *, chunk_ms: float = CHUNK_MS) -> Iterator[PcmChunk]:
    """Cut a recording up, the last chunk shorter; each is due at its place on one absolute clock.

    Waiting until `due_s` instead of waiting between chunks keeps delays from adding up: after an
    hour the last chunk is as punctual as the first.

    Raises:
        NearfutureError: for chunks of less than a sample or more than ten seconds.

    >>> [(len(chunk.pcm), chunk.due_s) for chunk in chunks(np.zeros(400, np.int16), 8000)]
    [(160, 0.02), (160, 0.04), (80, 0.05)]
    """
    size = round(rate * chunk_ms / 1000) if chunk_ms <= MAX_CHUNK_MS else 0
    if size < 1:
        raise NearfutureError(
            f"`chunk_ms` {chunk_ms:g} at {rate} Hz cannot be played: choose {MIN_CHUNK_MS:g} to "
            f"{MAX_CHUNK_MS:g} ms",
            code="out_of_range",
            parameter="chunk_ms",
        )
    for begin in range(0, len(pcm), size):
        part = pcm[begin : begin + size]
        yield PcmChunk(part, (begin + len(part)) / rate)


def to_pcm(samples: NDArray[np.float32], rate: int, to: int) -> Pcm:
    """Return samples (n,) in [-1, 1] as int16 at another rate, clipped at full scale.

    >>> to_pcm(np.array([0.5, -2.0], np.float32), 8000, 8000).tolist()
    [16384, -32768]
    """
    resampled = samples if rate == to else resample(samples, rate, to)
    return np.clip(np.round(resampled * 32768.0), -32768, 32767).astype(np.int16)


@dataclass
class Pacing:
    """The delays with which the chunks of a recording were sent.

    A chunk that the client begins to send after it was due, although the one before had been taken,
    is the client's own delay; a chunk that the connection takes only after a while is the server's
    or the network's.

    Attributes:
        late_ms: the client's own delay, of every chunk.
        blocked_ms: how long the connection blocked the client, all chunks together; what is shorter
            than a chunk is not counted.
    """

    late_ms: array[float] = field(default_factory=lambda: array("f"))
    blocked_ms: float = 0.0
    _free_s: float = 0.0

    def sent(self, *, due_s: float, began_s: float, taken_s: float, chunk_s: float) -> None:
        """Record one chunk and how long it is; times in seconds on the clock of the recording."""
        self.late_ms.append(1000 * max(0.0, began_s - max(due_s, self._free_s)))
        if taken_s - began_s >= chunk_s:
            self.blocked_ms += 1000 * (taken_s - began_s)
        self._free_s = taken_s
