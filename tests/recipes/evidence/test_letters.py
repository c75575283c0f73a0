"""Letters that are missed and written late, on probabilities made by hand."""

import numpy as np
import pytest

from nearfuture.data import Utterance
from nearfuture.text import Vocabulary
from recipes.evidence.letters import Letter, errors_by, letters

VOCABULARY = Vocabulary((" ", "e", "n", "o", "t", "w"))


def said(text: str) -> np.ndarray:
    """(T, V) log-probabilities: a character a frame, `_` for the blank."""
    ids = [0 if each == "_" else VOCABULARY.encode(each)[0] for each in text]
    p = np.full((len(text), len(VOCABULARY)), 0.02)
    p[np.arange(len(text)), ids] = 0.9
    return np.log(p / p.sum(axis=1, keepdims=True)).astype(np.float32)


def utterance(text: str) -> Utterance:
    return Utterance(name="", samples=np.zeros(1, np.float32), text=text, speaker="anna")


def test_a_letter_is_late_by_the_frames_between_twin_and_head() -> None:
    heads = {0: said("___o_n_e___"), 4: said("_o_n_e_____")}
    found = letters(3, utterance("one"), heads, said("_o_n_e_____"), VOCABULARY)
    assert [(each.letter, each.in_word, each.utterance) for each in found] == [
        ("o", "(o)ne", 3),
        ("n", "o(n)e", 3),
        ("e", "on(e)", 3),
    ]
    assert [each.delay for each in found] == [{0: 2, 4: 0}] * 3
    assert not any(missed for each in found for missed in each.missed.values())


def test_a_letter_that_another_one_stands_for_is_missed_by_that_head_alone() -> None:
    heads = {0: said("_t_n_o__"), 4: said("_t_w_o__")}
    found = letters(0, utterance("two"), heads, said("_t_w_o__"), VOCABULARY)
    assert [each.missed for each in found] == [
        {None: False, 0: False, 4: False},
        {None: False, 0: True, 4: False},
        {None: False, 0: False, 4: False},
    ]


def test_spaces_divide_words_and_are_no_letters() -> None:
    log_probs = said("_t_w_o_ _o_n_e_")
    found = letters(0, utterance("two one"), {0: log_probs}, log_probs, VOCABULARY)
    assert [each.in_word for each in found] == [
        "(t)wo",
        "t(w)o",
        "tw(o)",
        "(o)ne",
        "o(n)e",
        "on(e)",
    ]


def test_errors_are_counted_by_group_with_an_interval() -> None:
    found = [
        Letter(
            utterance=number,
            speaker="anna",
            word="two",
            place=0,
            letter="ot"[number % 2],
            missed={0: number % 4 == 1, 4: False, None: False},
            delay={0: 2, 4: 0},
        )
        for number in range(200)
    ]
    o, t = errors_by(found, lambda each: each.letter, resamples=200)
    assert (o.name, o.count, o.rates[0], o.gain) == ("o", 100, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    value, low, high = t.rates[0]
    assert (t.name, t.count, value) == ("t", 100, 0.5)
    assert low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.03)  # that of a binomial share
    assert high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.03)
    assert t.gain == t.rates[0]
    assert t.delays == {0: (2.0, 2.0, 2.0), 4: (0.0, 0.0, 0.0)}
