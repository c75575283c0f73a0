"""A recording of one's own: any file that the library's reader takes, as the server takes uploads.

Shapes: `n` samples.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from nearfuture.lab.page import Media
from nearfuture.lab.refusal import Refusal

SHORTEST_S, LONGEST_S = 0.2, 30

_FLOAT = 3  # WAVE_FORMAT_IEEE_FLOAT


def decode(body: bytes) -> tuple[NDArray[np.float32], int]:
    """Return the samples (n,) of a recording, its channels mixed as everywhere, and their rate.

    Raises:
        Refusal: for what is no recording, or a damaged one, and for one that is too short or too
            long.

    >>> samples, rate = decode(as_wav(np.ones(8000, np.float32), 8000).content)
    >>> len(samples), rate
    (8000, 8000)
    """
    from nearfuture.audio import AudioError, open_audio

    if not body:
        raise Refusal("no-recording", "no recording came")
    try:
        with open_audio(body) as reader:
            rate, blocks, count = reader.rate, [], 0
            for block in reader.blocks(reader.rate):
                count += len(block)
                if count > LONGEST_S * rate:
                    raise Refusal(
                        "too-long",
                        f"the recording is longer than {LONGEST_S} s",
                        code="too_large",
                        most=LONGEST_S,
                    )
                blocks.append(block)
            damaged = reader.damage is not None
    except AudioError as error:
        raise Refusal("unreadable", str(error), code="damaged") from error
    if damaged:
        raise Refusal("cut-off", "the recording is damaged or cut off", code="damaged")
    if count < SHORTEST_S * rate:
        raise Refusal(
            "too-short",
            f"the recording is shorter than {SHORTEST_S} s",
            code="out_of_range",
            least=SHORTEST_S,
        )
    return np.concatenate(blocks), rate


def as_wav(samples: NDArray[np.float32], rate: int) -> Media:
    """Return samples (n,) as a WAV of float32 behind a header of 44 bytes: nothing is rounded.

    >>> wav = as_wav(np.zeros(2, np.float32), 8000).content
    >>> wav[:4], wav[8:16], len(wav)
    (b'RIFF', b'WAVEfmt ', 52)
    """
    data = np.ascontiguousarray(samples, "<f4").tobytes()
    kind = struct.pack("<HHIIHH", _FLOAT, 1, rate, 4 * rate, 4, 32)
    head = b"WAVEfmt " + struct.pack("<I", len(kind)) + kind
    body = head + b"data" + struct.pack("<I", len(data)) + data
    return Media(b"RIFF" + struct.pack("<I", len(body)) + body, "audio/wav")
