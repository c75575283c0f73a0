"""Whole recordings of any kind as mono samples in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio.error import AudioError
from nearfuture.audio.input import AudioSource
from nearfuture.audio.limits import MAX_SAMPLES
from nearfuture.audio.reader import AudioReader, open_audio


@dataclass(frozen=True, eq=False)
class Audio:
    """A recording as one channel of samples.

    Args:
        samples: (n,) float32; full scale is [-1, 1].
        rate: Samples per second.

    >>> Audio(np.zeros(4000, np.float32), 8000).seconds
    0.5
    """

    samples: NDArray[np.float32]
    rate: int

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return len(self.samples) / self.rate


def read(source: AudioSource) -> Audio:
    """Read a whole recording of any rate, width and number of channels, as one (see `Mixdown`).

    `open_audio` lists the formats. Half a sample at the end is dropped. Samples of a float file a
    little beyond [-1, 1] are kept as they are. A file that has a header and no samples is a
    recording of no samples. The samples take 4 bytes each in memory, 230 MB for an hour of 16 kHz;
    read longer recordings block by block with `open_audio`.

    Args:
        source: A path, the bytes of a file, or an open binary file (read to its end, not closed).

    Raises:
        AudioError: if there is no such file or it may not be read, if it is empty or no audio, if a
            sample is not a number or absurdly large, or if there are more than 2²⁹ samples.
        TruncatedAudioError: if it was cut off or is damaged; `open_audio` reads what is there.

    >>> import io, soundfile
    >>> file = io.BytesIO()
    >>> soundfile.write(file, np.array([[0.5, 0.0], [0.25, -0.25]]), 44100, format="WAV")
    >>> audio = read(file.getvalue())
    >>> audio.samples.tolist(), audio.rate
    ([0.25, 0.0], 44100)
    """
    with open_audio(source) as reader:
        reader.check()
        audio = read_rest(reader)
        reader.check()
    return audio


def read_rest(
    reader: AudioReader, *, samples: int | None = None, channel: int | None = None
) -> Audio:
    """Read an open recording from its position on.

    Args:
        reader: The recording.
        samples: How many samples of each channel to read; by default all.
        channel: Which channel, from 0; by default all of them are mixed.

    Raises:
        AudioError: as `AudioReader.blocks`, and for more than 2²⁹ samples.
    """
    blocks, count = [], 0
    if samples != 0:
        for block in reader.blocks(channel=channel):
            blocks.append(block)
            count += len(block)
            if samples is not None and count >= samples:
                break
            if count > MAX_SAMPLES:
                raise AudioError(
                    f"{reader.name} has more than {MAX_SAMPLES} samples, the most that are held "
                    f"in memory: cut it into files, or read it block by block with open_audio",
                    code="too_large",
                )
    joined = np.concatenate(blocks) if blocks else np.zeros(0, np.float32)
    return Audio(joined[:samples], reader.rate)
