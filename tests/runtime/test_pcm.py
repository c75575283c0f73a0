"""Quanta: any cut of the samples gives the same quanta, and nothing is lost."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.audio import LiveResampler
from nearfuture.runtime.pcm import Quanta

QUANTUM, FIRST = 32, 12


@settings(deadline=None, max_examples=40)
@given(
    samples=st.integers(0, 200),
    rate=st.sampled_from([8000, 16_000, 11_025]),
    sizes=st.lists(st.integers(0, 90), max_size=8),
)
def test_any_partition_gives_the_same_quanta(samples: int, rate: int, sizes: list[int]) -> None:
    sound = np.random.default_rng(samples).uniform(-1, 1, samples).astype(np.float32)
    quanta = Quanta(rate, 8000, quantum_samples=QUANTUM, first_samples=FIRST)
    cut, state, at = [], quanta.start(), 0
    for size in [*sizes, samples]:
        part, state = quanta.step(sound[at : at + size], state)
        assert len(state.rest) < QUANTUM
        cut += part
        at += size
    cut += quanta.finish(state)
    widths = [len(quantum) for quantum in cut]
    assert widths[:1] in ([], [FIRST]) or len(widths) == 1
    assert all(width == QUANTUM for width in widths[1:-1])
    resampler = LiveResampler(rate, 8000)
    first, waiting = resampler.step(sound, resampler.start())
    whole = np.concatenate((first, resampler.finish(waiting)))
    np.testing.assert_array_equal(np.concatenate([np.zeros(0, np.float32), *cut]), whole)
