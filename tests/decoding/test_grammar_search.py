"""Search of a grammar: the best of all alignments, for any partition; fillers; what is refused."""

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearfuture.decoding import (
    Automaton,
    Endpoint,
    Grammar,
    GrammarResult,
    GrammarSearch,
    GrammarState,
)
from nearfuture.text import Vocabulary
from tests.errors import refuses

law = settings(derandomize=True, max_examples=25, deadline=None)
VOCABULARY = Vocabulary(("a", "b", " "))
GRAMMARS = [["a"], ["aa", "ab"], ["a b", "b"], ["aab", "bab", "bb", "ba"], ["abab", "b a", "aa"]]


def search(texts: list[str], **options: Any) -> GrammarSearch:
    grammar = Grammar.compile(Automaton.of(texts), VOCABULARY)
    return GrammarSearch(grammar=grammar, frame_ms=40, centre_ms=27.5, **options)


def random_log_probs(seed: int, T: int, sharpness: float = 1.0) -> NDArray[np.float64]:
    logits = sharpness * np.random.default_rng(seed).normal(size=(T, 4))
    logits[:, 0] = np.minimum(logits[:, 0], 1.0)  # no blank that begins no utterance
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def frames(text: str, probability: float = 0.94) -> NDArray[np.float64]:
    """Frames whose best symbols are the characters, - the blank."""
    best = [0 if c == "-" else VOCABULARY.encode(c)[0] for c in text]
    return np.log(
        np.full((len(text), 4), (1 - probability) / 3)
        + np.eye(4)[best] * (probability - (1 - probability) / 3)
    )


def brute_force(log_probs: NDArray[np.float64], texts: list[str], price: float) -> dict[str, float]:
    """The best score of each text over all alignments and all fillers around it."""
    T, V = log_probs.shape
    filler = np.maximum(log_probs[:, 0], log_probs.max(axis=1) - price)
    scores = {}
    for length in range(1, T + 1):
        for path in itertools.product(range(V), repeat=length):
            if path[0] == 0:
                continue
            text = VOCABULARY.decode([symbol for symbol, _ in itertools.groupby(path) if symbol])
            if text not in texts:
                continue
            for begin in range(T - length + 1):
                end = begin + length
                score = log_probs[range(begin, end), path].sum()
                score += filler[:begin].sum() + filler[end:].sum()
                scores[text] = max(score, scores.get(text, -math.inf))
    return scores


@law
@given(
    st.integers(0, 10**6), st.integers(1, 6), st.sampled_from(GRAMMARS), st.sampled_from([0.0, 0.7])
)
def test_it_is_the_best_of_all_alignments(
    seed: int, T: int, texts: list[str], price: float
) -> None:
    log_probs = random_log_probs(seed, T)
    decoder = search(texts, price=price, threshold=0.0)
    results, state = decoder.step(log_probs, decoder.start())
    assert not results
    expected = brute_force(log_probs, texts, price)
    found = decoder.finish(state)
    if state.spoken is None:
        assert found == []
    elif not expected:
        assert (found[0].understood, found[0].text) == (False, "")
    else:
        assert found[0].score == pytest.approx(max(expected.values()), rel=1e-9)
        assert expected[found[0].text] == pytest.approx(found[0].score, rel=1e-9)


@law
@given(st.integers(0, 10**6), st.integers(0, 60), st.sampled_from(GRAMMARS), st.data())
def test_any_partition_gives_the_same_results_bit_for_bit(
    seed: int, T: int, texts: list[str], data: Any
) -> None:
    log_probs = random_log_probs(seed, T, sharpness=3.0)
    log_probs[20:40] = frames("-" * 20)[: max(0, T - 20)]
    log_probs = log_probs.astype(np.float32)
    decoder = search(texts, threshold=0.1, endpoint=Endpoint(silence_ms=200, longest_ms=1000))
    whole, end = decoder.step(log_probs, decoder.start())
    cuts = sorted(data.draw(st.lists(st.integers(0, T), max_size=8)))
    parts, state = list[GrammarResult](), decoder.start()
    for begin, stop in itertools.pairwise([0, *cuts, T]):
        state = pickle.loads(pickle.dumps(state))  # a snapshot, restored
        more, state = decoder.step(log_probs[begin:stop], state)
        parts += more
    assert parts == whole
    assert decoder.finish(state) == decoder.finish(end)
    assert decoder.provisional(state) == decoder.provisional(end)
    assert (state.frames, len(state.history)) == (T, len(end.history))


def heard(decoder: GrammarSearch, text: str) -> list[GrammarResult]:
    results, state = decoder.step(frames(text), decoder.start())
    return results + decoder.finish(state)


def test_a_text_is_found_between_fillers_with_the_times_of_its_words() -> None:
    (result,) = heard(search(["ab b", "aa"], threshold=0.3), "bb--aab- bb-aa-")
    assert (result.text, result.understood) == ("ab b", True)
    assert [(word.text, word.start_ms, word.end_ms) for word in result.words] == [
        ("ab", 27.5 + 40 * 4, 27.5 + 40 * 6.5),
        ("b", 27.5 + 40 * 9, 27.5 + 40 * 10.5),
    ]
    assert result.words[0].confidence == pytest.approx(0.94)
    assert (result.start_ms, result.end_ms) == (27.5, 27.5 + 40 * 13.5)


def test_what_is_no_text_is_not_understood() -> None:
    decoder = search(["aba"])
    assert [r.understood for r in heard(decoder, "aba")] == [True]
    (result,) = heard(decoder, "bbb-b-bbb-bb-b")
    assert (result.understood, result.text, result.words) == (False, "", ())
    assert result.confidence < decoder.threshold


def test_a_lower_threshold_understands_more_and_changes_no_text() -> None:
    for spelled in ("abab", "ab-b", "aab--b", "b-b"):
        confidences = {
            threshold: heard(search(["abab"], threshold=threshold), spelled)[0]
            for threshold in (0.0, 0.3, 0.6, 1.0)
        }
        understood = [result.understood for result in confidences.values()]
        assert understood == sorted(understood, reverse=True)
        assert len({result.confidence for result in confidences.values()}) == 1


def test_confidence_is_the_geometric_mean_of_the_path_in_frames_of_speech() -> None:
    (result,) = heard(search(["ab"]), "-aab--")
    assert result.confidence == pytest.approx(0.94)
    (result,) = heard(search(["ab"], price=2.0, threshold=0.0), "b--ab")
    assert math.log(result.confidence) == pytest.approx(math.log(0.94) - 2.0 / 3)


def test_repeated_symbols_need_a_blank_between() -> None:
    decoder = search(["aa", "a"], price=5.0)
    assert [heard(decoder, text)[0].text for text in ("aaa", "a-a", "aa-aa")] == ["a", "aa", "aa"]


def test_silence_gives_nothing_and_keeps_no_memory() -> None:
    decoder = search(["a"])
    results, state = decoder.step(frames("-" * 1000), decoder.start())
    assert (results, state.history, state.frames) == ([], (), 1000)
    assert decoder.finish(state) == []
    assert decoder.provisional(state) == ""


def test_each_utterance_is_one_result() -> None:
    decoder = search(["ab", "b"], endpoint=Endpoint(silence_ms=200))
    assert [r.text for r in heard(decoder, "ab-------b------ab")] == ["ab", "b", "ab"]


def test_a_complete_text_ends_although_others_go_on_talking() -> None:
    decoder = search(["ab"], endpoint=Endpoint(silence_ms=400), threshold=0.2)
    results, state = decoder.step(frames("ab-" + "bb-b" * 4), decoder.start())
    assert [result.text for result in results] == ["ab"]
    assert state.frames == 19


def test_an_utterance_ends_at_its_longest() -> None:
    decoder = search(["ab"], endpoint=Endpoint(silence_ms=400, longest_ms=800), threshold=0.9)
    results, state = decoder.step(frames("b-" * 100), decoder.start())
    assert len(results) == 10
    assert len(state.history) <= 20


def test_the_provisional_text_is_the_best_path_so_far() -> None:
    decoder = search(["ab b", "aa"])
    state: GrammarState = decoder.start()
    shown = []
    for row in frames("-aab- b"):
        _, state = decoder.step(row[None], state)
        shown.append(decoder.provisional(state))
    assert shown == ["", "a", "a", "ab", "ab", "ab ", "ab b"]


def test_a_step_leaves_the_state_that_it_was_given() -> None:
    decoder = search(["ab b", "aa"])
    _, state = decoder.step(frames("-aab"), decoder.start())
    before = pickle.dumps(state)
    first = decoder.step(frames("- b-"), state)[1]
    assert pickle.dumps(state) == before
    assert decoder.finish(decoder.step(frames("- b-"), state)[1]) == decoder.finish(first)


def test_what_the_vocabulary_cannot_write_is_left_out() -> None:
    grammar = Grammar.compile(Automaton.of(["ab", "abc", "a%"]), VOCABULARY)
    assert grammar.automaton.count == 1
    with refuses("unsupported", "grammar", "'%'", "'c'"):
        Grammar.compile(Automaton.of(["c%"]), VOCABULARY)


def test_what_is_no_search_is_refused() -> None:
    with refuses("out_of_range", "price", "-1"):
        search(["a"], price=-1)
    with refuses("out_of_range", "threshold", "2"):
        search(["a"], threshold=2)
    decoder = search(["a"])
    with refuses("invalid", "log_probs", "(1, 3)", "(frames, 4)"):
        decoder.step(np.zeros((1, 3)), decoder.start())
    with refuses("invalid", "log_probs", "add up to 4"):
        decoder.step(np.zeros((1, 4)), decoder.start())
