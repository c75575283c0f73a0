"""What a recording may claim, checked before anything is allocated for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio.error import AudioError

LOWEST_RATE, HIGHEST_RATE = 4000, 192_000
"""Samples per second of any audio that is read or resampled, in Hz."""

MAX_CHANNELS = 64
"""Channels of one recording: arrays of microphones have as many."""

BLOCK_SAMPLES = 1 << 18
"""Samples that are decoded at once, over all channels: 1 MB of float32."""

MAX_SAMPLES = 1 << 29
"""Samples of one channel that are held in memory at once: 2 GB, nine hours at 16 kHz."""

LOUDEST = 1000.0
"""Full scale is 1; beyond this, samples are surely integers that somebody did not scale."""


def check_form(name: str, rate: int, channels: int) -> None:
    """Refuse a rate or a number of channels that no recording of speech has.

    Raises:
        AudioError: which names the value and the limit.
    """
    if not 1 <= channels <= MAX_CHANNELS:
        raise AudioError(
            f"{name} has {channels} channels: 1 to {MAX_CHANNELS} can be read; split it first",
            code="out_of_range",
        )
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise AudioError(
            f"{name} has {rate} samples per second: {LOWEST_RATE} to {HIGHEST_RATE} can be read",
            code="out_of_range",
        )


def check_levels(samples: NDArray[Any], name: str = "the audio", *, first: int = 0) -> None:
    """Refuse samples that are no sound: not finite, or integers that were stored as floats.

    Full scale is [-1, 1]; a little more, which decoders give and loud mixes have, is kept.

    Args:
        samples: (n,) or (n, channels) floating point.
        name: The name of the recording in messages.
        first: The index of the first of them in the recording.

    Raises:
        AudioError: which names the first such sample, and its value.

    >>> check_levels(np.array([0.5, -2.0]))
    >>> check_levels(np.array([0.5, 1e20]), "a.wav")
    Traceback (most recent call last):
        ...
    nearfuture.audio.error.AudioError: a.wav has a sample of 1e+20 at 1, but full scale is 1: ...
    """
    if samples.size == 0 or -LOUDEST <= samples.min() <= samples.max() <= LOUDEST:
        return  # NaN compares false, and goes on
    wrong = ~(np.abs(samples) <= LOUDEST)
    row = int(np.argmax(wrong.reshape(len(wrong), -1).any(axis=1)))
    value = float(samples[row][wrong[row]].flat[0]) if samples.ndim > 1 else float(samples[row])
    if np.isfinite(value):
        raise AudioError(
            f"{name} has a sample of {value:g} at {first + row}, but full scale is 1: divide "
            f"integers by their largest value (32768 for 16 bit) before storing them as floats",
            code="out_of_range",
        )
    raise AudioError(
        f"{name} has a sample at {first + row} that is no finite number ({value}): write it again "
        f"without such samples",
        code="invalid",
    )
