"""Text grown frame by frame is the text read at once, and work does not grow with it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.decoding import Greedy, text, words
from nearfuture.error import NearfutureError
from nearfuture.runtime.transcript import Transcript
from nearfuture.text import Vocabulary

VOCABULARY = Vocabulary((" ", "a", "b"))
EMPTY = Transcript(vocabulary=VOCABULARY, frame_ms=40.0, centre_ms=27.5)
FRAMES = st.lists(st.integers(0, len(VOCABULARY) - 1), max_size=40)


def read(best: list[int]) -> np.ndarray:
    peaks = np.eye(len(VOCABULARY), dtype=np.float32)[best] if best else np.zeros((0, 4))
    return np.log(0.05 + 0.85 * peaks).astype(np.float32)


@settings(deadline=None, max_examples=40)
@given(best=FRAMES, sizes=st.lists(st.integers(0, 9), max_size=12))
def test_any_partition_is_the_text_at_once(best: list[int], sizes: list[int]) -> None:
    transcript = EMPTY
    at = 0
    for size in [*sizes, len(best)]:
        transcript = transcript.step(read(best[at : at + size]))
        at += size
    tokens, _ = Greedy().step(read(best), Greedy().start())
    assert transcript.committed == text(tokens, VOCABULARY)
    assert list(transcript.words) == words(tokens, VOCABULARY, frame_ms=40.0, centre_ms=27.5)
    assert transcript.provisional == ""


@settings(deadline=None, max_examples=40)
@given(slow=FRAMES, fast=FRAMES, ahead=st.integers(0, 8))
def test_the_tail_is_what_the_fast_head_reads_later(
    slow: list[int], fast: list[int], ahead: int
) -> None:
    frames = min(len(slow), len(fast) - ahead)
    transcript = EMPTY
    for t in range(-ahead, frames):
        transcript = transcript.step(
            read(slow[t : t + 1] if t >= 0 else []), preview=read(fast[t + ahead : t + ahead + 1])
        )
    if frames < 0:
        return
    settled, _ = Greedy().step(read(slow[:frames]), Greedy().start())
    seen, _ = Greedy().step(read(fast[: frames + ahead]), Greedy().start())
    later = [token for token in seen if token.frame >= frames]
    assert transcript.committed == text(settled, VOCABULARY)
    spaces = [i for i, token in enumerate(settled) if VOCABULARY.decode([token.index]) == " "]
    opened = [token.index for token in settled[spaces[-1] if spaces else 0 :]]
    repeats = [
        n
        for n in range(len(later) + 1)
        if n == 0 or opened[-n:] == [token.index for token in later[:n]]
    ]
    shown = [*settled, *later[max(repeats) :]]
    assert transcript.committed + transcript.provisional == text(shown, VOCABULARY)


def test_a_character_that_the_fast_head_reads_late_is_not_shown_twice() -> None:
    transcript = EMPTY.step(read([2, 0]), preview=read([0, 0, 2, 3]))
    assert (transcript.committed, transcript.provisional) == ("a", "b")


def test_only_the_last_word_is_held_open() -> None:
    transcript = EMPTY
    for _ in range(50):
        transcript = transcript.step(read([2, 0, 1, 1, 0, 1, 3]))
    assert len(transcript.words) == 51
    assert len(transcript._open) <= 3


def test_a_step_returns_another_transcript() -> None:
    EMPTY.step(read([2, 1, 3]))
    assert EMPTY.committed == ""


def test_a_broken_output_is_named() -> None:
    with pytest.raises(NearfutureError, match="NaN in frame 0"):
        EMPTY.step(np.full((1, 4), np.nan, np.float32))
