"""Levels, noise and speed, measured."""

import numpy as np
import pytest

from nearfuture.data.sound import add_noise, at_level, at_speed
from tests.data.fixtures import tone


def decibels(samples: np.ndarray) -> float:
    return 10 * float(np.log10(np.mean(np.square(samples, dtype=np.float64))))


@pytest.mark.parametrize("dbfs", [-35.0, -20.0, -10.0])
@pytest.mark.parametrize("level", [1e-6, 0.01, 1.0])
def test_a_level_is_reached(dbfs: float, level: float) -> None:
    got = at_level(tone(440, 0.5, level=level), dbfs)
    assert decibels(got) == pytest.approx(dbfs, abs=1e-3)
    assert got.dtype == np.float32


def test_a_level_does_not_clip() -> None:
    click = np.zeros(1000, np.float32)
    click[500] = 0.1
    got = at_level(click, -15.0)
    assert abs(got).max() == pytest.approx(1.0)
    assert decibels(got) < -15.0


@pytest.mark.parametrize("level", [0.0, 1e-12, 1e-42])
def test_silence_stays_silence(level: float) -> None:
    silence = np.full(100, level, np.float32)
    np.testing.assert_array_equal(at_level(silence, -20.0), silence)
    assert at_level(silence[:0], -20.0).size == 0


@pytest.mark.parametrize("snr", [0.0, 15.0, 40.0])
@pytest.mark.parametrize("tilt", [0.0, 1.5])
@pytest.mark.parametrize("samples", [1000, 8192, 20001])
def test_the_noise_is_as_loud_as_said(snr: float, tilt: float, samples: int) -> None:
    clean = tone(440, samples / 8000, level=0.1)
    noisy = add_noise(clean, snr, tilt, np.random.default_rng(0))
    assert noisy.dtype == np.float32
    assert decibels(clean) - decibels(noisy - clean) == pytest.approx(snr, abs=0.05)


def test_the_noise_falls_with_frequency() -> None:
    clean = tone(440, 4.0, level=0.1)
    noise = add_noise(clean, 20.0, 1.0, np.random.default_rng(0)) - clean
    power = abs(np.fft.rfft(noise)) ** 2
    low, high = power[400:800].mean(), power[4000:8000].mean()
    assert 10 * np.log10(low / high) == pytest.approx(10.0, abs=1.0)  # ten times the frequency


def test_noise_follows_from_its_generator_and_never_clips_over() -> None:
    clean = tone(440, 0.2, level=1.0)
    one, two = (add_noise(clean, 0.0, 1.0, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert (one != add_noise(clean, 0.0, 1.0, np.random.default_rng(4))).any()
    assert abs(one).max() == 1.0


@pytest.mark.parametrize("samples", [0, 1, 2])
def test_little_and_nothing_are_no_problem(samples: int) -> None:
    x = np.full(samples, 0.5, np.float32)
    assert np.isfinite(add_noise(x, 20.0, 1.0, np.random.default_rng(0))).all()
    assert at_speed(x, 0.9).size == int(samples / 0.9)
    silence = np.zeros(samples, np.float32)
    np.testing.assert_array_equal(add_noise(silence, 20.0, 1.0, np.random.default_rng(0)), silence)


@pytest.mark.parametrize("factor", [0.5, 0.85, 1.0, 1.15, 2.0])
def test_speed_changes_length_and_pitch(factor: float) -> None:
    got = at_speed(tone(400, 1.0), factor)
    assert (got.size, got.dtype) == (int(8000 / factor), np.float32)
    hertz = np.argmax(abs(np.fft.rfft(got))) * 8000 / got.size
    assert hertz == pytest.approx(400 * factor, abs=2)
    assert abs(got).max() <= 0.3 + 1e-6


def test_speed_1_changes_nothing() -> None:
    x = tone(400, 0.1)
    np.testing.assert_array_equal(at_speed(x, 1.0), x)
