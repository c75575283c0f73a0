"""Vocabularies: ids and characters are the same thing, and errors say how to mend them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.error import NearfutureError
from nearfuture.text import BLANK, Vocabulary


def test_blank_is_id_0_and_counts() -> None:
    vocabulary = Vocabulary(("a", "b"))
    assert BLANK == 0
    assert len(vocabulary) == 3
    assert vocabulary.encode("ab") == [1, 2]
    assert vocabulary.decode([0, 1, 0, 2, 2, 0]) == "abb"


def test_english_is_space_apostrophe_letters() -> None:
    english = Vocabulary.english()
    assert "".join(english.symbols) == " 'abcdefghijklmnopqrstuvwxyz"
    assert len(english) == 29


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=12), max_size=6))
def test_every_text_it_was_built_from_round_trips(texts: list[str]) -> None:
    vocabulary = Vocabulary.from_texts(texts)
    assert list(vocabulary.symbols) == sorted(set("".join(texts)))
    for text in texts:
        ids = vocabulary.encode(text)
        assert len(ids) == len(text)
        assert BLANK not in ids
        assert vocabulary.decode(ids) == text


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.text(st.characters(codec="utf-8")))
def test_symbols_make_the_vocabulary_again(text: str) -> None:
    vocabulary = Vocabulary.from_texts([text])
    again = Vocabulary(vocabulary.symbols)
    assert again == vocabulary
    assert hash(again) == hash(vocabulary)
    assert again.encode(text) == vocabulary.encode(text)


def test_unknown_characters_are_all_named_with_place_and_cure() -> None:
    with pytest.raises(NearfutureError) as caught:
        Vocabulary.english().encode("three 3s & 3 more")
    message = str(caught.value)
    assert "'3' (at 6), '&' (at 9)" in message
    assert "normalise" in message
    assert "from_texts" in message
    assert "\n" not in message


def test_a_long_text_is_not_repeated_in_full() -> None:
    with pytest.raises(NearfutureError) as caught:
        Vocabulary.english().encode("a" * 5000 + "!")
    assert "'!' (at 5000)" in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("ids", [[3], [1, -1]])
def test_ids_outside_are_refused(ids: list[int]) -> None:
    with pytest.raises(NearfutureError, match=r"ids go from 0 \(blank\) to 2"):
        Vocabulary(("a", "b")).decode(ids)


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        (("a", "b", "a"), "'a' twice, as 1 and 3"),
        (("a", "bc"), "symbol 2 of the vocabulary is 'bc'"),
        (("",), "symbol 1 of the vocabulary is ''"),
        ((7,), "symbol 1 of the vocabulary is 7"),
    ],
)
def test_symbols_that_are_not_single_characters_are_refused(
    symbols: tuple[str, ...], message: str
) -> None:
    with pytest.raises(NearfutureError, match=message):
        Vocabulary(symbols)
