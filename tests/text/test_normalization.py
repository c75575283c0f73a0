"""Normalisation: one spelling, reached in one pass."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.text import Vocabulary, normalise


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \t\r\n", ""),
        ("Seven  TWO\tzero\r\n", "seven two zero"),
        ("\ufeffone", "one"),
        ("one\ufeff two", "one two"),
        ("soft\u00adhyphen\u200b", "softhyphen"),
        ("no\u00a0break\u2003space", "no break space"),
        ("one\rtwo\r\nthree\u2028four", "one two three four"),
        ("don\u2019t don\u2018t don`t don\u00b4t don\u02bct don\uff07t", " ".join(["don't"] * 6)),
        ("“Hello,” she said: 'yes!'", "hello she said 'yes'"),
        ("twenty-one, well—known… and/or snake_case", "twenty one well known and or snake case"),
        ("U.S.A. 3,000 e.g.", "usa 3000 eg"),
        ("$5 + 10% & #1 * me@home", "$5 + 10% & #1 me@home"),
        ("Cafe\u0301", "caf\u00e9"),
        ("안녕하세요, 세계!", "안녕하세요 세계"),
        (unicodedata.normalize("NFD", "한국어"), "한국어"),
        ("Straße ΟΔΟΣ", "straße οδος"),
        ("你好。世界！¿Qué?", "你好世界qué"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("a\u0000b\u001bc", "abc"),
    ],
)
def test_spelling(text: str, expected: str) -> None:
    assert normalise(text) == expected


@settings(derandomize=True, max_examples=500, deadline=None)
@given(st.text())
def test_once_is_enough(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.text())
def test_white_space_is_single_and_inside(text: str) -> None:
    assert normalise(text) == " ".join(normalise(text).split())


@settings(derandomize=True, max_examples=200, deadline=None)
@given(
    st.text(
        st.characters(max_codepoint=127, exclude_categories=["S", "N"], exclude_characters="&%@#")
    )
)
def test_ascii_without_spoken_symbols_and_digits_fits_the_english_vocabulary(text: str) -> None:
    Vocabulary.english().encode(normalise(text))
