"""Whole recordings at another sample rate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import soxr
from numpy.typing import ArrayLike, NDArray

from nearfuture.audio.limits import HIGHEST_RATE, LOWEST_RATE
from nearfuture.error import NearfutureError


def resampled_length(samples: int, rate: int, to: int) -> int:
    """Count the samples at rate `to` that stand for `samples` at `rate`: ⌈samples · to / rate⌉.

    >>> resampled_length(441000, 44100, 16000), resampled_length(1, 48000, 8000)
    (160000, 1)
    """
    return -(-samples * to // rate)


def resample(samples: ArrayLike, rate: int, to: int) -> NDArray[np.float32]:
    """Convert a whole recording to another sample rate, in soxr's high quality.

    Its right context is far too long for live audio, up to 115 ms; see `LiveResampler` for that.

    Args:
        samples: (n,) mono, floating point in [-1, 1].
        rate: sample rate of `samples`, in Hz.
        to: sample rate wanted, in Hz.

    Returns:
        (⌈n · to / rate⌉,) float32; a copy where the rates are equal.

    Raises:
        NearfutureError: for samples that are not mono floating point, or a rate that is not a
            whole number from 4000 to 192000.

    >>> resample(np.zeros(441_000), 44_100, 16_000).shape
    (160000,)
    """
    rate, to = check_rate(rate), check_rate(to)
    mono = as_mono(samples)
    if rate == to:
        return mono.copy()
    # soxr rounds the number of outputs; silence behind the end lets it make the last one too
    padded = np.concatenate((mono, np.zeros(-(-rate // to), np.float32)))
    resampled: NDArray[np.float32] = soxr.resample(padded, rate, to, "HQ")
    return resampled[: resampled_length(len(mono), rate, to)].copy()


def resample_blocks(
    blocks: Iterable[ArrayLike], rate: int, to: int
) -> Iterator[NDArray[np.float32]]:
    """Convert a recording that comes in blocks: together they are what `resample` gives.

    Args:
        blocks: (n,) each, mono, floating point in [-1, 1].
        rate: Their sample rate, in Hz.
        to: The sample rate of the output, in Hz.

    Raises:
        NearfutureError: as `resample`.

    >>> noise = np.random.default_rng(0).standard_normal(9000).astype(np.float32)
    >>> parts = resample_blocks(np.split(noise, [10, 5000]), 44_100, 8000)
    >>> np.array_equal(np.concatenate(list(parts)), resample(noise, 44_100, 8000))
    True
    """
    rate, to = check_rate(rate), check_rate(to)
    if rate == to:
        yield from map(as_mono, blocks)
        return
    resampler = soxr.ResampleStream(rate, to, 1, dtype="float32", quality="HQ")
    inputs = outputs = 0
    for block in blocks:
        mono = as_mono(block)
        inputs += len(mono)
        resampled = resampler.resample_chunk(mono)
        outputs += len(resampled)
        yield resampled
    rest = resampler.resample_chunk(np.zeros(-(-rate // to), np.float32), last=True)
    yield rest[: resampled_length(inputs, rate, to) - outputs]


def check_rate(rate: Any) -> int:
    """Return the rate as an int, if it is a whole number of Hz that audio can have."""
    if not isinstance(rate, (int, np.integer)) or not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise NearfutureError(
            f"sample rate {rate!r}: it must be a whole number of Hz from {LOWEST_RATE} to "
            f"{HIGHEST_RATE}, such as 8000, 16000 or 44100",
            code="out_of_range",
            parameter="rate",
        )
    return int(rate)


def as_mono(samples: ArrayLike) -> NDArray[np.float32]:
    """Return the samples as float32, if they are one channel of floating point."""
    array = np.asarray(samples)
    if array.ndim != 1:
        raise NearfutureError(
            f"samples have shape {array.shape}: one channel, shape (samples,), is expected; "
            "average the channels first",
            parameter="samples",
        )
    if array.size and not np.issubdtype(array.dtype, np.floating):
        raise NearfutureError(
            f"samples are {array.dtype}: floating point in [-1, 1] is expected; divide int16 by "
            f"32768",
            parameter="samples",
        )
    return array.astype(np.float32, copy=False)
