"""What counts as taken back, as shown, and as repeated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearfuture.client.caption import Caption
from nearfuture.client.measure.distribution import Distribution
from nearfuture.client.measure.timeline import CaptionTimeline
from nearfuture.client.measure.word_errors import WordErrors
from nearfuture.text import normalise


def shown(*texts: str) -> CaptionTimeline:
    """A text that is provisional until its last version."""
    found = CaptionTimeline()
    for number, text in enumerate(texts):
        found.add(float(number), Caption(utterance="0", committed="", provisional=text))
    found.add(float(len(texts)), Caption(utterance="0", committed=texts[-1], final=True))
    return found


@pytest.mark.parametrize(
    ("texts", "revised"),
    [
        (("o", "on", "one", "one t", "one two"), 0),
        (("one", "won"), 1),
        (("one two three", "one too three"), 2),
        (("one two", "one"), 1),
        (("one", "", "one"), 1),
        (("one two", "one twofold three"), 0),
        (("One,", "one two"), 0),
    ],
)
def test_words_taken_back(texts: tuple[str, ...], revised: int) -> None:
    assert shown(*texts).revised == revised


def test_a_committed_word_that_changes_is_a_broken_promise() -> None:
    found = CaptionTimeline()
    for text in ("one tw", "one two", "one too", "one too three"):
        found.add(0.0, Caption(utterance="0", committed=text))
    assert (found.committed_revised, found.revised) == (1, 1)


def test_an_utterance_that_goes_on_with_a_word_makes_it_one() -> None:
    found = CaptionTimeline()
    found.add(1.0, Caption(utterance="0", committed="one tw", final=True))
    found.add(2.0, Caption(utterance="1", committed="o three", final=True, continues=True))
    assert found.text == "one two three"
    assert [word.first_s for word in found.words] == [1.0, 2.0, 2.0]


def test_utterances_keep_the_order_in_which_they_began() -> None:
    found = CaptionTimeline()
    found.add(0.0, Caption(utterance="b", committed="one"))
    found.add(1.0, Caption(utterance="a", committed="three", final=True))
    found.add(2.0, Caption(utterance="b", committed="one two", final=True))
    assert found.text == "one two three"
    assert (found.revised, found.committed_revised) == (0, 0)


TEXTS = st.lists(st.sampled_from("one two three on th".split()), max_size=5).map(" ".join)  # noqa: SIM905


@given(st.lists(TEXTS, min_size=1, max_size=12))
def test_the_words_are_those_of_the_last_caption_and_settle_after_they_are_shown(
    texts: list[str],
) -> None:
    found = shown(*texts)
    assert found.text == normalise(texts[-1])
    for number, word in enumerate(found.words):
        # By definition, looked up in the captions themselves.
        said = [text.split() for text in texts]
        at = [n for n, words in enumerate(said) if words[number : number + 1] == [word.text]]
        kept = len(texts) - 1
        while kept and said[kept - 1][: number + 1] == said[-1][: number + 1]:
            kept -= 1
        assert word.first_s == at[0]
        assert word.settled_s == kept


@pytest.mark.parametrize(
    ("said", "wrote", "repeated"),
    [
        ("one two", "one one two", 1),
        ("one two three", "one two one two three", 2),
        ("one two", "one two one two", 2),
        ("one two", "one three two", 0),
        ("one two", "three one two", 0),
        ("one one", "one one", 0),
        ("", "one one", 0),
    ],
)
def test_repeated_words(said: str, wrote: str, repeated: int) -> None:
    assert WordErrors.of(said.split(), wrote.split()).repeated == repeated


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300))
def test_a_percentile_is_a_value_that_was_seen_and_as_many_lie_below(values: list[float]) -> None:
    found = Distribution.of(values)
    assert found is not None
    for percent, value in ((50, found.p50), (90, found.p90), (99, found.p99), (100, found.max)):
        assert value in values
        assert sum(one <= value for one in values) >= percent * len(values) / 100
        assert sum(one < value for one in values) < percent * len(values) / 100
