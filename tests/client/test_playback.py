"""Samples keep their values, and chunks their places."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearfuture.client.playback import chunks, to_pcm
from nearfuture.error import NearfutureError


def test_every_16_bit_value_is_sent_as_it_was_recorded() -> None:
    values = np.arange(-32768, 32768, dtype=np.int16)
    assert np.array_equal(to_pcm(values.astype(np.float32) / 32768, 8000, 8000), values)


@given(
    length=st.integers(0, 5000),
    rate=st.sampled_from([8000, 11025, 16000, 24000]),
    chunk_ms=st.floats(1, 200),
)
def test_chunks_joined_are_the_recording_and_none_is_due_before_it_is_spoken(
    length: int, rate: int, chunk_ms: float
) -> None:
    pcm = np.arange(length, dtype=np.int16)
    found = list(chunks(pcm, rate, chunk_ms=chunk_ms))
    assert np.array_equal(np.concatenate([pcm[:0], *(one.pcm for one in found)]), pcm)
    spoken = np.cumsum([len(one.pcm) for one in found]) / rate
    assert [one.due_s for one in found] == pytest.approx(spoken.tolist())


@pytest.mark.parametrize("chunk_ms", [0.0, -20.0, 0.01, 10_001.0, float("inf"), float("nan")])
def test_chunks_that_cannot_be_played_are_refused(chunk_ms: float) -> None:
    with pytest.raises(NearfutureError, match="ms"):
        list(chunks(np.zeros(100, np.int16), 8000, chunk_ms=chunk_ms))
