"""Language models: distributions that add up, ARPA files read and written, damage named."""

import itertools
import math
import random
from pathlib import Path

import pytest

from nearfuture.decoding import NGramCounts, NGramModel
from tests.errors import refuses

SENTENCES = ["turn left", "turn left now", "turn right", "go left", "stop"]


def counted(order: int, sentences: list[str] = SENTENCES) -> NGramCounts:
    counts = NGramCounts(order=order)
    for sentence in sentences:
        counts.add(sentence.split())
    return counts


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_probabilities_behind_any_words_add_up_to_one(order: int) -> None:
    model = counted(order).model()
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    for history in itertools.product(["<never seen>", *words], repeat=2):
        context = model.start()
        for word in history:
            _, context = model.score(context, word)
        scores = [model.score(context, word)[0] for word in [*words, "<never seen>"]]
        total = sum(map(math.exp, scores)) + math.exp(model.end(context))
        assert total == pytest.approx(1.0, abs=1e-5)


def test_it_is_the_formula_of_witten_and_bell() -> None:
    model = counted(2).model()
    # "turn" comes 3 times, before 2 different words; "left" 3 of 15 words in all, 7 different ones.
    left = (3 + 7 / 8) / (15 + 7)
    context = model.score(model.start(), "turn")[1]
    assert math.exp(model.score(context, "left")[0]) == pytest.approx(
        (2 + 2 * left) / (3 + 2), rel=1e-5
    )
    assert math.exp(model.score(context, "go")[0]) == pytest.approx(
        2 * (1 + 7 / 8) / 22 / 5, rel=1e-5
    )


def test_longer_words_of_history_predict_better() -> None:
    rng = random.Random(0)
    sentences = [" ".join(["a", "b", "c"] * rng.randint(1, 3)) for _ in range(20)]
    scores = [
        counted(order, sentences).model().sentence(["a", "b", "c"] * 2) for order in (1, 2, 3)
    ]
    assert scores == sorted(scores)


def test_a_file_is_the_model(tmp_path: Path) -> None:
    path = tmp_path / "words.arpa"
    path.write_text("\n".join(counted(3).arpa()) + "\n", encoding="utf-8")
    read, built = NGramModel.read(path), counted(3).model()
    for sentence in (*SENTENCES, "left turn", "go now", "sideways"):
        assert read.sentence(sentence.split()) == built.sentence(sentence.split())
    assert read.order == 3


def test_a_file_of_unigrams_without_an_unknown_word_is_read() -> None:
    model = NGramModel.read_arpa(["\\data\\", "ngram 1=1", "\\1-grams:", "-0.5 hi", "\\end\\"])
    assert model.score(model.start(), "hi")[0] == pytest.approx(-0.5 * math.log(10))
    assert model.score(model.start(), "ho")[0] == pytest.approx(-10 * math.log(10))
    assert model.end(()) == 0.0


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["hello"], "\\end\\"),
        (["\\data\\", "\\1-grams:", "-1 a"], "\\end\\"),
        (["\\1-grams:", "-1", "\\end\\"], "line 2"),
        (["\\1-grams:", "x a", "\\end\\"], "line 2"),
        (["\\2-grams:", "-1 a b", "\\end\\"], "\\1-grams:"),
        (["\\1-grams:", "-1 a", "\\2-grams:", "-1 b a", "\\end\\"], "'b a'"),
        (["\\1-grams:", "\\end\\"], "no 1-grams"),
    ],
)
def test_a_damaged_file_is_refused(lines: list[str], said: str) -> None:
    with refuses("damaged", None, said):
        NGramModel.read_arpa(lines)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with refuses("not_found", None, "none.arpa"):
        NGramModel.read(tmp_path / "none.arpa")


def test_what_cannot_be_counted_is_refused() -> None:
    with refuses("out_of_range", "order", 0):
        NGramCounts(order=0)
    with refuses("invalid", "words", "</s>"):
        NGramCounts().add(["a", "</s>"])
    with refuses("invalid", "words"):
        list(NGramCounts().arpa())


ONE = ["\\data\\", "ngram 1=2", "\\1-grams:", "-0.5 hi", "-0.7 ho", "\\end\\"]


@pytest.mark.parametrize(
    ("line", "other", "said"),
    [
        (1, "ngram 1=3", "announces 3 1-grams and has 2"),
        (1, "ngram 1=9999999999999999999999", "announces 99999999999999999999 1-grams"),
        (1, "ngram 2=7", "announces 7 2-grams and has 0"),
        (3, "nan hi", "line 4"),
        (3, "inf hi", "line 4"),
        (3, "0.5 hi", "line 4"),
        (3, "-0.5 hi nan", "line 4"),
        (4, "-0.7 hi", "a word twice"),
    ],
)
def test_counts_and_probabilities_that_cannot_be_are_refused(
    line: int, other: str, said: str
) -> None:
    assert NGramModel.read_arpa(ONE).order == 1
    with refuses("damaged", None, said):
        NGramModel.read_arpa([*ONE[:line], other, *ONE[line + 1 :]])


def test_an_impossible_word_is_as_good_as_never_predicted() -> None:
    model = NGramModel.read_arpa([*ONE[:3], "-inf hi -inf", *ONE[4:]])
    assert model.score((), "hi")[0] == pytest.approx(-99 * math.log(10))


def test_more_orders_than_anybody_has_are_refused() -> None:
    sections = (f"\\{order}-grams:" for order in itertools.count(2))
    with refuses("too_large", None, 16):
        NGramModel.read_arpa(itertools.chain(["\\1-grams:", "-0.5 hi"], sections))
