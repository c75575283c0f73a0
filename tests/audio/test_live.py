"""The live resampler: any partition gives the same bits, and its reach is what it declares."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.audio import LiveResampler, ResamplerState, live, resample
from tests.errors import refuses

RATES = [8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000, 96000]
# Ratios of numbers too large for a filter each: up, down, a few hertz off, and the extremes.
ODD = [(8001, 16_000), (44_099, 16_000), (48_001, 8000), (191_999, 16_000), (4001, 8000)]
PAIRS = [(rate, to) for rate in RATES for to in (8000, 16000)] + ODD
CHANGING = [(rate, to) for rate, to in PAIRS if rate != to]
EDGE_HZ = 425  # width of the transition below half the lower rate


def whole(resampler: LiveResampler, samples: np.ndarray) -> np.ndarray:
    outputs, state = resampler.step(samples, resampler.start())
    return np.concatenate((outputs, resampler.finish(state)))


def in_chunks(resampler: LiveResampler, samples: np.ndarray, sizes: Any) -> np.ndarray:
    state, outputs, at = resampler.start(), [], 0
    for size in sizes:
        new, state = resampler.step(samples[at : at + size], state)
        outputs.append(new)
        at += size
    assert at >= len(samples)
    return np.concatenate((*outputs, resampler.finish(state)))


def noise(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, n).astype(np.float32)


def tone(hz: float, rate: int, seconds: float = 0.1) -> np.ndarray:
    return np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)


def decibels(ratio: float) -> float:
    return 20 * float(np.log10(ratio))


# Partition


@pytest.mark.parametrize(("rate", "to"), PAIRS)
@pytest.mark.parametrize("size", [1, 7, 441])
def test_chunks_of_one_size_give_the_same_bits(rate: int, to: int, size: int) -> None:
    resampler = LiveResampler(rate, to)
    samples = noise(rate // 20 + 3)
    expected = whole(resampler, samples)
    chunks = in_chunks(resampler, samples, itertools.repeat(size, -(-len(samples) // size)))
    assert chunks.tobytes() == expected.tobytes()


@settings(derandomize=True, max_examples=150, deadline=None)
@given(
    st.sampled_from(PAIRS),
    st.lists(st.one_of(st.integers(0, 3), st.integers(0, 2500)), max_size=12),
    st.integers(0, 9),
)
def test_any_partition_gives_the_same_bits(
    pair: tuple[int, int], sizes: list[int], seed: int
) -> None:
    resampler = LiveResampler(*pair)
    samples = noise(sum(sizes), seed)
    expected = whole(resampler, samples)
    assert in_chunks(resampler, samples, sizes).tobytes() == expected.tobytes()
    assert len(expected) == resampler.total(len(samples))


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.sampled_from(PAIRS), st.lists(st.integers(0, 700), min_size=1, max_size=6))
def test_the_state_does_not_depend_on_the_partition(
    pair: tuple[int, int], sizes: list[int]
) -> None:
    resampler = LiveResampler(*pair)
    samples = noise(sum(sizes))
    _, expected = resampler.step(samples, resampler.start())
    state, at = resampler.start(), 0
    for size in sizes:
        _, state = resampler.step(samples[at : at + size], state)
        at += size
    assert state.phase == expected.phase
    assert state.samples.tobytes() == expected.samples.tobytes()


def test_a_state_is_a_value() -> None:
    resampler = LiveResampler(48000, 8000)
    chunk = noise(1000)
    _, state = resampler.step(chunk, resampler.start())
    before = state.samples.copy()
    first, _ = resampler.step(noise(500, 1), state)
    chunk[:] = 9  # the caller reuses its buffer
    np.testing.assert_array_equal(state.samples, before)
    second, _ = resampler.step(noise(500, 1), state)
    assert first.tobytes() == second.tobytes()
    with pytest.raises(ValueError, match="read-only"):
        state.samples[0] = 1
    saved = ResamplerState(state.samples.copy(), state.phase)
    third, _ = resampler.step(noise(500, 1), saved)
    assert first.tobytes() == third.tobytes()


# Lengths


@pytest.mark.parametrize(("rate", "to"), PAIRS)
def test_outputs_appear_as_soon_as_they_are_final(rate: int, to: int) -> None:
    resampler = LiveResampler(rate, to)
    n = 2 * resampler.right_samples + 50
    state, made = resampler.start(), 0
    for samples in range(1, n + 1):
        new, state = resampler.step(np.ones(1), state)
        made += len(new)
        assert made == resampler.emitted(samples)
        # an output and its last input sample: m · rate / to rounded down, and the right context
        assert made == sum(
            m * rate // to + resampler.right_samples < samples
            for m in range(resampler.total(samples))
        )
    assert made + len(resampler.finish(state)) == resampler.total(n)


def test_ten_seconds_of_cd_in_chunks_give_exactly_160000_samples() -> None:
    out = in_chunks(LiveResampler(44100, 16000), np.zeros(441_000), itertools.repeat(1024, 431))
    assert len(out) == 160_000


@pytest.mark.parametrize(("rate", "to"), PAIRS)
def test_the_smallest_inputs_lose_nothing(rate: int, to: int) -> None:
    resampler = LiveResampler(rate, to)
    assert whole(resampler, np.zeros(0)).shape == (0,)
    assert len(whole(resampler, np.ones(1))) == -(-to // rate)


@pytest.mark.parametrize(("rate", "to"), PAIRS)
def test_nothing_grows_and_nothing_drifts(rate: int, to: int) -> None:
    resampler = LiveResampler(rate, to)
    state, sizes = resampler.start(), set()
    chunk = np.ones(rate)
    for _ in range(5):
        _, state = resampler.step(chunk, state)
        sizes.add((len(state.samples), state.phase))
        assert state.samples.base is None, "a view would hold all of the chunk"
    assert len(sizes) == 1, "whole seconds lead back to the same state"
    assert len(state.samples) <= 2 * resampler.right_samples + 1 + rate // to


# Reach


@pytest.mark.parametrize(("rate", "to"), CHANGING)
def test_declared_right_context_is_the_measured_one(rate: int, to: int) -> None:
    resampler = LiveResampler(rate, to)
    right = resampler.right_samples
    assert 0 < resampler.right_ms <= 5
    assert resampler.right_ms == 1000 * right / rate
    n = 2 * right + 200
    base = noise(n)
    before = whole(resampler, base)
    centres = np.arange(len(before)) * rate // to  # the input sample at or before each output
    reached: dict[str, list[int]] = {"finite": [], "nan": []}  # samples after the output's own
    for at in range(right, n - right, 3 if rate > 30000 else 1):
        for size in (1e-2, 1e3, np.nan):
            probed = base.copy()
            probed[at] += size
            changed = np.flatnonzero(whole(resampler, probed) != before)
            reached["nan" if np.isnan(size) else "finite"] += [*(at - centres[changed])]
    assert max(reached["finite"]) == right, "the declared edge is reached"
    assert max(map(abs, reached["nan"])) == right, "nothing beyond it, not even times zero"


@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_equal_rates_pass_through(rate: int) -> None:
    resampler = LiveResampler(rate, rate)
    assert (resampler.right_samples, resampler.right_ms) == (0, 0.0)
    samples = noise(100)
    out, state = resampler.step(samples, resampler.start())
    assert out.tobytes() == samples.tobytes()
    assert not np.shares_memory(out, samples)
    assert len(resampler.finish(state)) == 0


# Sound


@pytest.mark.parametrize(("rate", "to"), [(r, to) for r, to in CHANGING if r > to])
def test_tones_above_half_the_new_rate_are_60_db_down(rate: int, to: int) -> None:
    resampler = LiveResampler(rate, to)
    margin = resampler.right_samples * to // rate + 1
    levels = {}
    for hz in np.geomspace(to / 2, rate / 2 * 0.999, 40 if rate < 100_000 else 8):
        out = whole(resampler, tone(hz, rate, 0.2))[margin:-margin]
        levels[hz] = decibels(np.sqrt(np.mean(out**2)) / np.sqrt(0.5) + 1e-12)
    assert max(levels.values()) < -60, levels


@pytest.mark.parametrize(("rate", "to"), CHANGING)
def test_tones_that_pass_come_out_as_they_are(rate: int, to: int) -> None:
    """The same sine at the new rate: gain, time, and no image, all within -60 dB."""
    resampler = LiveResampler(rate, to)
    margin = resampler.right_samples * to // rate + 1
    for hz in np.linspace(20, min(rate, to) / 2 - EDGE_HZ, 40):
        out, ideal = whole(resampler, tone(hz, rate)), tone(hz, to)
        error = out[: len(ideal)] - ideal
        assert decibels(abs(error[margin:-margin]).max() + 1e-12) < -60, hz


@pytest.mark.parametrize(("rate", "to"), PAIRS)
def test_a_constant_stays_exactly_itself(rate: int, to: int) -> None:
    resampler = LiveResampler(rate, to)
    out, _ = resampler.step(np.full(rate // 10, 0.3), resampler.start())
    margin = resampler.right_samples * to // rate + 1
    np.testing.assert_allclose(out[margin:], np.float32(0.3), rtol=1e-7)


@pytest.mark.parametrize(("rate", "to"), CHANGING)
def test_live_and_file_sound_the_same(rate: int, to: int) -> None:
    samples = sum(tone(hz, rate, 0.5) for hz in (150, 440, 1234, 2900, 3400)) / 5
    live = whole(LiveResampler(rate, to), samples)
    file = resample(samples, rate, to)
    assert len(live) == len(file)
    assert abs(live - file)[to // 10 : -to // 10].max() < 1e-3


# Bounds


@pytest.mark.parametrize(("rate", "to"), PAIRS)
def test_a_table_takes_a_megabyte_at_most(rate: int, to: int) -> None:
    assert live._filters(rate, to, LiveResampler(rate, to).right_samples).nbytes <= 1 << 20


def test_all_tables_together_are_bounded() -> None:
    assert live._filters.cache_info().maxsize == live.MAX_TABLES
    assert live.MAX_TABLES * live.LARGEST_TABLE * 8 <= 32 << 20


# Refusals


@pytest.mark.parametrize("rate", [0, 3999, 10**6, 8000.0, "8000"])
def test_absurd_rates_are_refused(rate: Any) -> None:
    for rates in [(rate, 8000), (8000, rate)]:
        with refuses("out_of_range", "rate"):
            LiveResampler(*rates)


def test_samples_that_are_not_mono_floats_are_refused() -> None:
    resampler = LiveResampler(16000, 8000)
    with refuses("invalid", "samples", "int16", 32768):
        resampler.step(np.zeros(10, np.int16), resampler.start())
    with refuses("invalid", "samples", (1, 10)):
        resampler.step(np.zeros((1, 10)), resampler.start())
