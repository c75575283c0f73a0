"""Levels, noise, rooms, ends and speed, measured."""

import numpy as np
import pytest

from nearfuture.data.augmentation.noise import add_noise, mix
from nearfuture.data.augmentation.rooms import in_room, simulated_room
from nearfuture.data.augmentation.sound import at_level, at_speed, without_silent_ends
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
    assert at_speed(x, 0.9).size == round(samples / 0.9)
    silence = np.zeros(samples, np.float32)
    np.testing.assert_array_equal(add_noise(silence, 20.0, 1.0, np.random.default_rng(0)), silence)


@pytest.mark.parametrize("factor", [0.5, 0.85, 1.0, 1.15, 2.0])
def test_speed_changes_length_and_pitch(factor: float) -> None:
    got = at_speed(tone(400, 1.0), factor)
    assert (got.size, got.dtype) == (round(8000 / factor), np.float32)
    hertz = np.argmax(abs(np.fft.rfft(got))) * 8000 / got.size
    assert hertz == pytest.approx(400 * factor, abs=2)
    assert abs(got[100:-100]).max() <= 0.3 + 1e-3


def test_speed_1_changes_nothing() -> None:
    x = tone(400, 0.1)
    np.testing.assert_array_equal(at_speed(x, 1.0), x)


@pytest.mark.parametrize("factor", [0.9, 1.07])
def test_speed_distorts_little(factor: float) -> None:
    x = tone(3000, 1.0)
    got = at_speed(x, factor)[400:-400]
    spectrum = abs(np.fft.rfft(got * np.hanning(got.size))) ** 2
    top = int(np.argmax(spectrum))
    rest = np.concatenate([spectrum[: top - 8], spectrum[top + 9 :]]).sum()
    assert 10 * np.log10(rest / spectrum.sum()) < -50  # linear interpolation: -9
    assert decibels(got) == pytest.approx(decibels(x), abs=0.1)  # and 3.7 lower


# Recorded noise


@pytest.mark.parametrize("snr", [0.0, 5.0, 30.0])
@pytest.mark.parametrize("length", [1, 7, 4000, 100_000])
def test_recorded_noise_is_as_loud_as_said(snr: float, length: int) -> None:
    clean = tone(440, 1.0, level=0.1)
    noise = np.random.default_rng(1).integers(-30_000, 30_000, length).astype(np.int16)
    for seed in range(5):
        noisy = mix(clean, noise, snr, np.random.default_rng(seed))
        assert (noisy.dtype, noisy.size) == (np.float32, clean.size)
        assert decibels(clean) - decibels(noisy - clean) == pytest.approx(snr, abs=0.05)


def test_recorded_noise_is_cut_or_looped_from_a_random_place() -> None:
    clean, noise = tone(440, 1.0, level=0.1), np.arange(1, 12_001, dtype=np.float32)
    begins = set()
    for seed in range(40):
        heard = mix(clean, noise, 20.0, np.random.default_rng(seed)) - clean
        steps = np.diff(heard.astype(np.float64))
        unit = np.median(steps)  # the noise rises by one unit a sample, and falls where it ends
        falls = np.nonzero(steps < -100 * unit)[0]
        assert falls.size <= 1
        begins.add(round(heard[0] / unit / 100))
        if falls.size:
            assert heard[falls[0]] / unit == pytest.approx(12_000, rel=1e-2)
            assert heard[falls[0] + 1] / unit == pytest.approx(1, abs=60)
    assert len(begins) > 20


def test_silence_and_nothing_add_no_noise() -> None:
    clean, rng = tone(440, 0.1), np.random.default_rng(0)
    np.testing.assert_array_equal(mix(clean, np.zeros(9), 0.0, rng), clean)
    np.testing.assert_array_equal(mix(clean, np.zeros(0), 0.0, rng), clean)
    assert mix(clean[:0], np.ones(9), 0.0, rng).size == 0
    silence = np.zeros(100, np.float32)
    np.testing.assert_array_equal(mix(silence, np.ones(9), 0.0, rng), silence)
    assert abs(mix(np.ones(50, np.float32), np.ones(3), 0.0, rng)).max() == 1.0


# Rooms


@pytest.mark.parametrize("samples", [1, 2, 100, 3001])
@pytest.mark.parametrize("length", [1, 2, 50, 4000])
def test_a_room_is_a_convolution(samples: int, length: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, samples).astype(np.float32)
    response = rng.uniform(-0.5, 0.5, length).astype(np.float32)
    response[0] = 1.0
    cut = response[:samples].astype(np.float64)
    expected = np.convolve(x, cut / np.sqrt(np.sum(cut**2)))[:samples]
    got = in_room(x, response)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_words_stay_where_they_are_in_time() -> None:
    click = np.zeros(4000, np.float32)
    click[1000] = 0.5
    response = np.concatenate(
        [np.zeros(777), simulated_room(8000, 0.3, 6.0, np.random.default_rng(0))]
    )
    heard = in_room(click, response.astype(np.float32))
    assert np.argmax(abs(heard)) == 1000
    assert abs(heard[:1000]).max() < 1e-6
    assert np.sum(heard**2) == pytest.approx(0.25, rel=1e-3)


def test_a_room_that_is_none_changes_nothing() -> None:
    x = tone(440, 0.1)
    for response in (np.zeros(0, np.float32), np.zeros(9, np.float32)):
        np.testing.assert_array_equal(in_room(x, response), x)
    assert in_room(x[:0], np.ones(9, np.float32)).size == 0


@pytest.mark.parametrize("rt60_s", [0.15, 0.6])
@pytest.mark.parametrize("drr_db", [0.0, 12.0])
def test_a_simulated_room_dies_away_as_said(rt60_s: float, drr_db: float) -> None:
    room = simulated_room(16000, rt60_s, drr_db, np.random.default_rng(0))
    assert room.dtype == np.float32
    assert (room[0], np.argmax(abs(room))) == (1.0, 0)
    assert not room[1:40].any()  # 2.5 ms
    assert decibels(room[1:]) + 10 * np.log10(room.size - 1) == pytest.approx(-drr_db, abs=0.01)
    # Schroeder's decay: the energy that is still to come, from −5 to −25 dB.
    left = 10 * np.log10(np.cumsum(room[:0:-1].astype(np.float64) ** 2)[::-1])
    left -= left[0]
    fast, slow = (int(np.argmax(left < level)) / 16000 for level in (-5.0, -25.0))
    assert 3 * (slow - fast) == pytest.approx(rt60_s, rel=0.1)


# Ends


@pytest.mark.parametrize("begin", [True, False])
@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("floor", [0.0, 0.001])
def test_silent_ends_are_cut(begin: bool, end: bool, floor: float) -> None:
    rng = np.random.default_rng(0)
    said = np.concatenate([tone(400, 0.3), np.zeros(4000), tone(400, 0.3)])
    x = np.concatenate([np.zeros(1610), said, np.zeros(905)])
    x = (x + floor * rng.standard_normal(x.size)).astype(np.float32)
    got = without_silent_ends(x, 8000, begin=begin, end=end)
    first, last = (1600 if begin else 0), (1610 + said.size + 70 if end else x.size)
    assert abs(got.size - (last - first)) <= 80
    np.testing.assert_array_equal(got, x[first : first + got.size])


def test_a_loud_background_is_no_silence() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([np.zeros(1600), tone(400, 0.3), np.zeros(1600)])
    x = (x + 0.01 * rng.standard_normal(x.size)).astype(np.float32)
    np.testing.assert_array_equal(without_silent_ends(x, 8000), x)


@pytest.mark.parametrize("samples", [0, 1, 79, 80, 81])
@pytest.mark.parametrize("level", [0.0, 0.5])
def test_little_has_no_ends(samples: int, level: float) -> None:
    x = np.full(samples, level, np.float32)
    np.testing.assert_array_equal(without_silent_ends(x, 8000), x)
