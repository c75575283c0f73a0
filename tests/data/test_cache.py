"""Decoded audio in memory: the same whether it was kept or not, and never more than the limit."""

import numpy as np
import pytest

from nearfuture.data.batching.cache import AudioCache


def noise(samples: int, level: float) -> np.ndarray:
    return np.random.default_rng(samples).uniform(-level, level, samples).astype(np.float32)


@pytest.mark.parametrize("level", [1e-6, 0.01, 1.0, 40.0])
def test_what_is_kept_is_what_was_put(level: float) -> None:
    samples = noise(1000, level)
    cache = AudioCache(megabytes=1.0)
    put = cache.put(1, samples)
    got = cache.get(1)
    assert got is not None
    np.testing.assert_array_equal(put, got)
    assert got.dtype == np.float32
    assert abs(got - samples).max() <= abs(samples).max() / 32767 * 0.501


def test_a_full_cache_returns_the_same_and_keeps_nothing_more() -> None:
    cache, none = AudioCache(megabytes=0.005), AudioCache(megabytes=0.0)
    for number in range(4):  # 2000 bytes each
        samples = noise(1000 + number, 0.3)[:1000]
        np.testing.assert_array_equal(cache.put(number, samples), none.put(number, samples))
    assert [cache.get(number) is not None for number in range(4)] == [True, True, False, False]
    assert (cache.size, none.size) == (4000, 0)
    cache.put(4, noise(500, 0.1))  # a shorter one still fits
    assert cache.get(4) is not None
    assert cache.size == 5000


def test_nothing_and_silence_are_kept_too() -> None:
    cache = AudioCache(megabytes=1.0)
    for samples in (np.zeros(0, np.float32), np.zeros(9, np.float32)):
        np.testing.assert_array_equal(cache.put(samples.size, samples), samples)


def test_what_is_put_twice_counts_once() -> None:
    cache = AudioCache(megabytes=1.0)
    for _ in range(2):
        cache.put("a", noise(100, 0.5))
    assert cache.size == 200
