"""Text grown frame by frame is the text read at once, and work does not grow with it."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.decoding import Detokenizer, GreedyDecoder
from nearfuture.error import NearfutureError
from nearfuture.runtime.transcript import Transcript
from nearfuture.text import Vocabulary

VOCABULARY = Vocabulary((" ", "a", "b"))
DETOKENIZER = Detokenizer(VOCABULARY, frame_ms=40.0, centre_ms=27.5)
EMPTY = Transcript(detokenizer=DETOKENIZER)
# Some silences are long enough to end a word.
FRAMES = st.lists(
    st.one_of(st.integers(0, len(VOCABULARY) - 1).map(lambda best: [best]), st.just([0] * 12)),
    max_size=40,
).map(lambda runs: [best for run in runs for best in run])


def read(best: list[int], vocabulary: Vocabulary = VOCABULARY) -> np.ndarray:
    peaks = np.eye(len(vocabulary), dtype=np.float32)[best]
    rest = 0.2 / len(vocabulary)
    return np.log(rest + 0.8 * peaks).astype(np.float32)


@settings(deadline=None, max_examples=40)
@given(best=FRAMES, sizes=st.lists(st.integers(0, 9), max_size=12))
def test_any_partition_is_the_text_at_once(best: list[int], sizes: list[int]) -> None:
    transcript = EMPTY
    at = 0
    for size in [*sizes, len(best)]:
        transcript = transcript.step(read(best[at : at + size]))
        at += size
    tokens, _ = GreedyDecoder().step(read(best), GreedyDecoder().start())
    assert transcript.committed == DETOKENIZER.text(tokens)
    assert transcript.words == DETOKENIZER.words(tokens)
    assert transcript.provisional == ""


def shown(
    slow: list[int], fast: list[int], ahead: int, vocabulary: Vocabulary = VOCABULARY
) -> list[Transcript]:
    """The transcript frame by frame, where the fast head is so many frames ahead of the slow."""
    transcripts = [Transcript(detokenizer=dataclasses.replace(DETOKENIZER, vocabulary=vocabulary))]
    for t in range(-ahead, min(len(slow), len(fast) - ahead)):
        settled, preview = slow[t : t + 1] if t >= 0 else [], fast[t + ahead : t + ahead + 1]
        transcripts.append(
            transcripts[-1].step(read(settled, vocabulary), preview=read(preview, vocabulary))
        )
    return transcripts[1:]


@settings(deadline=None, max_examples=40)
@given(slow=FRAMES, fast=FRAMES, ahead=st.integers(0, 8))
def test_the_tail_ends_what_the_fast_head_reads_later(
    slow: list[int], fast: list[int], ahead: int
) -> None:
    for number, transcript in enumerate(shown(slow, fast, ahead), start=1):
        frames = max(0, number - ahead)
        settled, _ = GreedyDecoder().step(read(slow[:frames]), GreedyDecoder().start())
        seen, _ = GreedyDecoder().step(read(fast[:number]), GreedyDecoder().start())
        later = [token for token in seen if token.frame >= frames - 5]
        assert transcript.committed == DETOKENIZER.text(settled)
        whole = transcript.committed + transcript.provisional
        assert whole in {DETOKENIZER.text([*settled, *later[n:]]) for n in range(len(later) + 1)}
        if ahead == 0:
            assert whole == transcript.committed


DIGITS = st.lists(st.sampled_from(("three", "nine", "seven")), min_size=1, max_size=5)


@settings(deadline=None, max_examples=60)
@given(said=DIGITS, timing=st.data())
def test_a_fast_head_that_reads_the_same_later_never_changes_what_is_shown(
    said: list[str], timing: st.DataObject
) -> None:
    vocabulary = Vocabulary(tuple(" ehinrstv"))
    slow, fast = [0] * 200, [0] * 200
    at, later = 0, 0
    for symbol in vocabulary.encode(" ".join(said)):
        at += timing.draw(st.integers(2, 6))
        later = max(later + 2, at + timing.draw(st.integers(0, 5)))
        slow[at] = fast[later] = symbol
    before = ""
    for transcript in shown(slow, fast, ahead=10, vocabulary=vocabulary):
        whole = transcript.committed + transcript.provisional
        assert whole.startswith(before)
        before = whole
    assert before == " ".join(said)


def test_a_character_that_the_fast_head_reads_late_is_not_shown_twice() -> None:
    transcript = EMPTY.step(read([2, 0]), preview=read([0, 0, 2, 3]))
    assert (transcript.committed, transcript.provisional) == ("a", "b")


def test_only_the_last_word_is_held_open() -> None:
    transcript = EMPTY
    for _ in range(50):
        transcript = transcript.step(read([2, 0, 1, 1, 0, 1, 3]))
    assert len(transcript.words) == 51
    assert len(transcript._open) <= 3


def test_a_word_ends_with_a_long_silence() -> None:
    transcript = EMPTY.step(read([2, *[0] * 20, 3, 2]))
    assert transcript.committed == "a ba"
    assert [word.text for word in transcript.words] == ["a", "ba"]
    assert transcript.step(read([])).drop_committed().step(read([*[0] * 20, 3])).committed == " b"


def test_a_word_behind_a_long_silence_is_shown_apart_at_once() -> None:
    transcript = EMPTY.step(read([2, *[0] * 20]), preview=read([2, *[0] * 20, 3]))
    assert (transcript.committed, transcript.provisional) == ("a", " b")
    forgotten = transcript.drop_committed()
    assert (forgotten.committed, forgotten.provisional) == ("", " b")


def test_a_step_returns_another_transcript() -> None:
    EMPTY.step(read([2, 1, 3]))
    assert EMPTY.committed == ""


def test_a_broken_output_is_named() -> None:
    with pytest.raises(NearfutureError, match="NaN in frame 0"):
        EMPTY.step(np.full((1, 4), np.nan, np.float32))
