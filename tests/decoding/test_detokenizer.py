"""Words: what spaces separate, with times of frames and a confidence."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.decoding import Detokenizer, Token, Word
from nearfuture.text import Vocabulary

vocabulary = Vocabulary((" ", "'", "a", "b"))
detokenizer = Detokenizer(vocabulary, frame_ms=40, centre_ms=27.5)
law = settings(derandomize=True, max_examples=100, deadline=None)
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
    assert list(detokenizer.words(spoken)) == [
        Word("ab", 27.5 + 400, 27.5 + 560 + 20, math.exp(-0.3)),
        Word("a", 27.5 + 840, 27.5 + 840 + 20, math.exp(-0.1)),
    ]


def test_spaces_at_the_ends_and_in_rows_make_no_words() -> None:
    spoken = written("  ab   a ")
    assert detokenizer.text(spoken) == "ab a"
    assert [w.text for w in detokenizer.words(spoken)] == ["ab", "a"]


def test_nothing_is_no_words() -> None:
    for spoken in ([], written("   ")):
        assert detokenizer.text(spoken) == ""
        assert detokenizer.words(spoken) == ()


def test_a_vocabulary_without_a_space_writes_one_word() -> None:
    hangul = Vocabulary(("가", "나"))
    spoken = [Token(1, 0, 0.0), Token(2, 3, 0.0)]
    assert Detokenizer(hangul, 10, 5).words(spoken) == (Word("가나", 5, 40, 1.0),)


def test_a_long_silence_divides_words_without_a_space() -> None:
    def spoken(blanks: int) -> list[Token]:
        return [Token(3, 0, -0.1), Token(4, blanks + 1, -0.1, silence=blanks)]

    assert detokenizer.text(spoken(12)) == "ab"
    assert detokenizer.text(spoken(13)) == "a b"
    assert Detokenizer(vocabulary, 100, 27.5).text(spoken(5)) == "a b"
    assert list(detokenizer.words(spoken(1500))) == [
        Word("a", 27.5, 47.5, math.exp(-0.1)),
        Word("b", 60_067.5, 60_087.5, math.exp(-0.1)),
    ]


def test_a_silence_before_the_first_word_and_around_a_space_makes_no_word() -> None:
    spoken = [Token(3, 50, 0.0, 50), Token(1, 99, 0.0, 48), Token(4, 130, 0.0, 30)]
    assert detokenizer.text(spoken) == "a b"


def test_rounding_never_gives_more_than_certainty() -> None:
    [word] = detokenizer.words([Token(3, 0, 1e-7)])
    assert word.confidence == 1.0


@law
@given(tokens_of)
def test_words_are_the_text_in_order_without_overlap(tokens: list[Token]) -> None:
    found = detokenizer.words(tokens)
    assert " ".join(word.text for word in found) == detokenizer.text(tokens)
    times = [time for word in found for time in (word.start_ms, word.end_ms)]
    assert times == sorted(times)
    assert all(word.start_ms < word.end_ms for word in found)
    assert all(0 <= word.confidence <= 1 for word in found)
