"""Sentences about words of two senses, and taggers that wait for the evidence."""

from collections import Counter

import numpy as np
import pytest
import torch

from recipes.evidence.sentences import FILES, ambiguous_word
from recipes.evidence.tagger import KINDS, Tagger, accuracy_by_distance, build, train
from recipes.evidence.taggings import Tagging, arrival
from tests.errors import refuses


@pytest.fixture(params=FILES)
def word(request: pytest.FixtureRequest):
    return ambiguous_word(request.param)


def cues(word, sense: str, part: str) -> set[str]:
    phrases = word.phrases[sense, part]
    return {
        each.removeprefix("*")
        for phrase in (*phrases.before, *phrases.after)
        for each in phrase.split()
        if each.startswith("*")
    }


def test_a_deciding_word_decides_for_one_sense_only(word) -> None:
    first, second = (cues(word, s, "train") | cues(word, s, "test") for s in word.senses)
    assert first & second == set()


def test_test_phrases_are_in_no_training_but_their_deciding_words_are(word) -> None:
    vocabulary = set(word.vocabulary)
    for sense in word.senses:
        train_phrases, test_phrases = word.phrases[sense, "train"], word.phrases[sense, "test"]
        assert not {*train_phrases.before} & {*test_phrases.before}
        assert not {*train_phrases.after} & {*test_phrases.after}
        assert cues(word, sense, "test") <= vocabulary


def test_neutral_words_and_links_hold_no_deciding_word(word) -> None:
    neutral = {
        each
        for part in (*word.neutral_before, *word.neutral_after, *word.links)
        for each in part.split()
    }
    for sense in word.senses:
        assert neutral & (cues(word, sense, "train") | cues(word, sense, "test")) == set()


def test_evidence_stands_at_every_distance_for_both_senses(word) -> None:
    counts = Counter((each.distance, each.sense) for each in word.behind("test"))
    for distance in range(1, 6):
        assert min(counts[distance, 0], counts[distance, 1]) >= 20


def test_drawn_sentences_are_of_both_senses_and_kinds(word) -> None:
    rng = np.random.default_rng(0)
    drawn = [word.draw(rng, behind=bool(number % 2)) for number in range(200)]
    assert {(each.sense, each.distance > 0) for each in drawn} == {
        (sense, behind) for sense in (0, 1) for behind in (False, True)
    }
    assert all(each.words[each.target] in word.forms for each in drawn)


def test_an_unknown_word_is_refused_by_name() -> None:
    with refuses("not_found", "name", "river"):
        ambiguous_word("river")


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_changes_until_its_lookahead_has_come_and_then_no_more(kind: str) -> None:
    torch.manual_seed(0)
    word = ambiguous_word("bank")
    tagger = Tagger(build(kind, len(word.vocabulary)).eval(), word.vocabulary)
    sentence = word.examples[0]
    answers = tagger.as_words_arrive(sentence.words, sentence.target)
    last = len(answers) - 1
    settled = {"one way": 0, "lookahead 2": 2, "lookahead 4": 4, "both ways": last}[kind]
    assert all(abs(answers[n] - answers[n + 1]) > 1e-5 for n in range(settled))
    assert answers[settled:] == pytest.approx(answers[settled], abs=1e-6)


def test_an_unknown_kind_is_refused() -> None:
    with refuses("invalid", "kind", "sideways"):
        build("sideways", 9)


def test_training_lets_both_ways_use_what_one_way_cannot_see() -> None:
    word = ambiguous_word("감사")
    both = train(word, "both ways", steps=80, seed=0)
    one = Tagger(build("one way", len(word.vocabulary)).eval(), word.vocabulary)
    taggers = {"one way": one, "both ways": both}
    first, second = (arrival(taggers, each.words, each.target) for each in word.examples)
    one_way = [each.probabilities["one way"][-1] for each in (first, second)]
    assert one_way[0] == pytest.approx(one_way[1], abs=1e-6)
    assert second.probabilities["both ways"][-1] - first.probabilities["both ways"][-1] > 0.5
    accuracy = accuracy_by_distance(taggers["both ways"], word, 20)
    assert np.mean([accuracy[distance] for distance in range(1, 6)]) > 0.8
    tagging = Tagging(
        senses=word.senses,
        accuracy={"both ways": [accuracy]},
        examples=(first, second),
    )
    assert Tagging.from_json(tagging.to_json()) == tagging
