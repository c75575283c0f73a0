"""Whole recordings at another rate: exact lengths, the right place in time, clear refusals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.audio import resample, resampled_length
from tests.errors import refuses

RATES = [8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000, 96000]


def test_ten_seconds_of_cd_give_exactly_160000_samples() -> None:
    assert len(resample(np.zeros(441_000, np.float32), 44_100, 16_000)) == 160_000


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.integers(0, 3000), st.sampled_from(RATES), st.sampled_from(RATES))
def test_length_is_the_ceiling(n: int, rate: int, to: int) -> None:
    out = resample(np.ones(n, np.float32), rate, to)
    assert len(out) == resampled_length(n, rate, to) == int(np.ceil(n * to / rate))
    assert out.dtype == np.float32


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("to", [8000, 16000])
def test_a_tone_stays_where_it_is_in_time(rate: int, to: int) -> None:
    def tone(at: int) -> np.ndarray:
        return np.sin(2 * np.pi * 1000 * np.arange(at // 2) / at)

    out = resample(tone(rate), rate, to)
    inside = slice(to // 8, -to // 8)
    assert abs(out - tone(to))[inside].max() < 1e-4


def test_equal_rates_copy() -> None:
    samples = np.ones(10, np.float32)
    out = resample(samples, 16000, 16000)
    assert out is not samples
    np.testing.assert_array_equal(out, samples)


@pytest.mark.parametrize("rate", [0, -8000, 3999, 192_001, 2**31, 8000.0, "8000", None])
def test_absurd_rates_are_refused(rate: Any) -> None:
    for rates in [(rate, 8000), (8000, rate)]:
        with refuses("out_of_range", "rate", 4000, 192_000):
            resample(np.zeros(10), *rates)


def test_rates_may_be_numpy_integers() -> None:
    assert len(resample(np.zeros(10), np.int32(8000), np.int64(16000))) == 20


def test_samples_that_are_not_mono_floats_are_refused() -> None:
    with refuses("invalid", "samples", "int16", 32768):
        resample(np.zeros(10, np.int16), 8000, 16000)
    with refuses("invalid", "samples", (10, 2)):
        resample(np.zeros((10, 2)), 8000, 16000)
