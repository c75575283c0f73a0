"""Words: what spaces separate, with times of frames and a confidence."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.decoding import Token, Word, text, words
from nearfuture.text import Vocabulary

vocabulary = Vocabulary((" ", "'", "a", "b"))
law = settings(derandomize=True, max_examples=200, deadline=None)
GAPS = st.one_of(st.integers(1, 5), st.integers(11, 15))
tokens_of = st.lists(st.tuples(st.integers(1, 4), GAPS, st.floats(-9, 0))).map(
    lambda drawn: [
        Token(index, sum(gap for _, gap, _ in drawn[: n + 1]), log_prob, silence=gap - 1)
        for n, (index, gap, log_prob) in enumerate(drawn)
    ]
)


def written(characters: str, log_prob: float = -0.5) -> list[Token]:
    """One character a frame."""
    return [Token(index, t, log_prob) for t, index in enumerate(vocabulary.encode(characters))]


def test_times_are_of_the_first_and_last_character() -> None:
    spoken = [Token(3, 10, -0.2), Token(4, 14, -0.4), Token(1, 20, -9.0), Token(3, 21, -0.1)]
    assert words(spoken, vocabulary, frame_ms=40, centre_ms=27.5) == [
        Word("ab", 27.5 + 400, 27.5 + 560 + 20, math.exp(-0.3)),
        Word("a", 27.5 + 840, 27.5 + 840 + 20, math.exp(-0.1)),
    ]


def test_spaces_at_the_ends_and_in_rows_make_no_words() -> None:
    spoken = written("  ab   a ")
    assert text(spoken, vocabulary, frame_ms=40) == "ab a"
    assert [w.text for w in words(spoken, vocabulary, frame_ms=40, centre_ms=0)] == ["ab", "a"]


def test_nothing_is_no_words() -> None:
    for spoken in ([], written("   ")):
        assert text(spoken, vocabulary, frame_ms=40) == ""
        assert words(spoken, vocabulary, frame_ms=40, centre_ms=0) == []


def test_a_vocabulary_without_a_space_writes_one_word() -> None:
    hangul = Vocabulary(("가", "나"))
    spoken = [Token(1, 0, 0.0), Token(2, 3, 0.0)]
    assert words(spoken, hangul, frame_ms=10, centre_ms=5) == [Word("가나", 5, 40, 1.0)]


def test_a_long_silence_divides_words_without_a_space() -> None:
    def spoken(blanks: int) -> list[Token]:
        return [Token(3, 0, -0.1), Token(4, blanks + 1, -0.1, silence=blanks)]

    assert text(spoken(12), vocabulary, frame_ms=40) == "ab"
    assert text(spoken(13), vocabulary, frame_ms=40) == "a b"
    assert text(spoken(5), vocabulary, frame_ms=100) == "a b"
    assert words(spoken(1500), vocabulary, frame_ms=40, centre_ms=27.5) == [
        Word("a", 27.5, 47.5, math.exp(-0.1)),
        Word("b", 60_067.5, 60_087.5, math.exp(-0.1)),
    ]


def test_a_silence_before_the_first_word_and_around_a_space_makes_no_word() -> None:
    spoken = [Token(3, 50, 0.0, 50), Token(1, 99, 0.0, 48), Token(4, 130, 0.0, 30)]
    assert text(spoken, vocabulary, frame_ms=40) == "a b"


def test_rounding_never_gives_more_than_certainty() -> None:
    [word] = words([Token(3, 0, 1e-7)], vocabulary, frame_ms=40, centre_ms=0)
    assert word.confidence == 1.0


@law
@given(tokens_of)
def test_words_are_the_text_in_order_without_overlap(tokens: list[Token]) -> None:
    found = words(tokens, vocabulary, frame_ms=40, centre_ms=27.5)
    assert " ".join(word.text for word in found) == text(tokens, vocabulary, frame_ms=40)
    times = [time for word in found for time in (word.start_ms, word.end_ms)]
    assert times == sorted(times)
    assert all(word.start_ms < word.end_ms for word in found)
    assert all(0 <= word.confidence <= 1 for word in found)
