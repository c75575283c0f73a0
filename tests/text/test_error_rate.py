"""Error rates: the fewest edits, an alignment that proves them, and sums."""

import itertools
import math
import random
import tracemalloc
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.text import (
    ErrorRate,
    Pair,
    character_errors,
    edit_alignment,
    word_errors,
)

short = st.text("ab c", max_size=7)
law = settings(derandomize=True, max_examples=100, deadline=None)


def distance(reference: str, hypothesis: str) -> int:
    """The definition, by recursion over every path."""

    @cache
    def d(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        return min(
            d(i - 1, j - 1) + (reference[i - 1] != hypothesis[j - 1]),
            d(i - 1, j) + 1,
            d(i, j - 1) + 1,
        )

    return d(len(reference), len(hypothesis))


@law
@given(short, short)
def test_edits_are_the_fewest(reference: str, hypothesis: str) -> None:
    assert ErrorRate.of(edit_alignment(reference, hypothesis)).errors == distance(
        reference, hypothesis
    )


def by_the_rule(reference: str, hypothesis: str) -> list[Pair]:
    """The textbook's table of every distance, and the way back that the rule for ties names."""
    d = [[i + j for j in range(len(hypothesis) + 1)] for i in range(len(reference) + 1)]
    for i, said in enumerate(reference, 1):
        for j, written in enumerate(hypothesis, 1):
            d[i][j] = min(d[i - 1][j - 1] + (said != written), d[i - 1][j] + 1, d[i][j - 1] + 1)
    pairs: list[Pair] = []
    i, j = len(reference), len(hypothesis)
    while i or j:
        said, written = reference[i - 1 : i], hypothesis[j - 1 : j]
        if i and j and d[i][j] == d[i - 1][j - 1] + (said != written):
            pairs.append((said, written))
            i, j = i - 1, j - 1
        elif i and d[i][j] == d[i - 1][j] + 1:
            pairs.append((said, None))
            i -= 1
        else:
            pairs.append((None, written))
            j -= 1
    return pairs[::-1]


@law
@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_of_several_shortest_alignments_the_rule_names_one(reference: str, hypothesis: str) -> None:
    both = zip(reference, hypothesis, strict=False)
    head = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], both)))
    rest = reference[head:], hypothesis[head:]
    same = [(symbol, symbol) for symbol in reference[:head]]
    assert edit_alignment(reference, hypothesis) == same + by_the_rule(*rest)


@pytest.mark.parametrize("symbols", ["ab", "abcdefghij"])
def test_many_columns_are_as_exact_as_few(symbols: str) -> None:
    rng = random.Random(symbols)
    for _ in range(5):
        reference, hypothesis = (
            first + "".join(rng.choices(symbols, k=rng.randrange(60, 140))) for first in "xy"
        )
        assert edit_alignment(reference, hypothesis) == by_the_rule(reference, hypothesis)


def test_six_thousand_words_take_little_memory() -> None:
    rng = random.Random(0)
    reference = [str(rng.randrange(500)) for _ in range(6000)]
    hypothesis = [word for word in reference if rng.random() > 0.1]
    hypothesis[::7] = ["wrong"] * len(hypothesis[::7])
    tracemalloc.start()
    try:
        errors = ErrorRate.of(edit_alignment(reference, hypothesis))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert errors.reference - errors.deletions + errors.insertions == len(hypothesis)
    assert peak < 4e6  # a byte for each of the table's cells would be 32 MB


@law
@given(short, short)
def test_alignment_reads_back_as_both_texts(reference: str, hypothesis: str) -> None:
    pairs = edit_alignment(reference, hypothesis)
    assert "".join(said for said, _ in pairs if said is not None) == reference
    assert "".join(written for _, written in pairs if written is not None) == hypothesis
    assert (None, None) not in pairs


@law
@given(short, short)
def test_counts_agree_with_the_lengths(reference: str, hypothesis: str) -> None:
    errors = ErrorRate.of(edit_alignment(reference, hypothesis))
    assert errors.reference == len(reference)
    assert errors.reference - errors.deletions + errors.insertions == len(hypothesis)
    assert errors.errors == errors.substitutions + errors.deletions + errors.insertions


@law
@given(short, short)
def test_distance_is_symmetric(reference: str, hypothesis: str) -> None:
    there, back = (
        ErrorRate.of(edit_alignment(*p)) for p in [(reference, hypothesis)[::s] for s in (1, -1)]
    )
    assert there.errors == back.errors


@law
@given(st.lists(st.tuples(short, short), max_size=4))
def test_a_sum_is_the_micro_average(texts: list[tuple[str, str]]) -> None:
    total = sum((word_errors(*pair) for pair in texts), ErrorRate())
    assert total.reference == sum(len(reference.split()) for reference, _ in texts)
    assert total.errors == sum(word_errors(*pair).errors for pair in texts)
    if total.reference:
        assert total.rate == total.errors / total.reference


@pytest.mark.parametrize(
    ("reference", "hypothesis", "substitutions", "deletions", "insertions"),
    [
        ("one two three", "one two three", 0, 0, 0),
        ("one two three", "one too three", 1, 0, 0),
        ("one two three", "one three", 0, 1, 0),
        ("one two", "one two two", 0, 0, 1),
        ("one two", "", 0, 2, 0),
        ("", "one two", 0, 0, 2),
        ("a b", "b a", 2, 0, 0),
        ("a b c d f", "x b d f e", 1, 1, 1),
    ],
)
def test_word_counts(
    reference: str, hypothesis: str, substitutions: int, deletions: int, insertions: int
) -> None:
    assert word_errors(reference, hypothesis) == ErrorRate(
        substitutions=substitutions,
        deletions=deletions,
        insertions=insertions,
        reference=len(reference.split()),
    )


def test_characters_count_single_spaces_only() -> None:
    assert character_errors("two zero", "  two   zero ").errors == 0
    assert character_errors("two zero", "twozero") == ErrorRate(deletions=1, reference=8)
    assert character_errors("안녕 세계", "안녕 세상") == ErrorRate(substitutions=1, reference=5)


def test_empty_reference_has_a_rate() -> None:
    assert ErrorRate().rate == 0.0
    assert word_errors(" ", "").rate == 0.0
    assert word_errors("", "oh").rate == math.inf
    assert word_errors("one", "one two three").rate == 2.0


def test_long_texts_are_no_trouble() -> None:
    reference = [str(n % 97) for n in range(1500)]
    hypothesis = [word for n, word in enumerate(reference) if n % 50 != 7]
    errors = ErrorRate.of(edit_alignment(reference, hypothesis))
    assert errors == ErrorRate(deletions=30, reference=1500)
    same = ["word"] * 200_000
    assert ErrorRate.of(edit_alignment(same, same)).errors == 0
