"""Prefix beam search: the sum over all alignments, and the same results for any partition."""

import itertools
import math
import pickle
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearfuture.decoding import (
    BeamSearch,
    BeamState,
    GreedyDecoder,
    LanguageModelFusion,
    NGramCounts,
    Token,
)
from nearfuture.text import Vocabulary
from tests.errors import refuses

law = settings(derandomize=True, max_examples=25, deadline=None)
EXACT = {"width": 400, "prune_probability": 1.0}
VOCABULARY = Vocabulary((" ", "a", "b"))


def fusion(alpha: float = 0.7, beta: float = 0.3) -> LanguageModelFusion:
    counts = NGramCounts(order=2)
    for sentence in ("a ab", "ab b", "a b a"):
        counts.add(sentence.split())
    return LanguageModelFusion(counts.model(), VOCABULARY, alpha, beta)


def random_log_probs(seed: int, T: int, V: int, sharpness: float = 1.0) -> NDArray[np.float64]:
    logits = sharpness * np.random.default_rng(seed).normal(size=(T, V))
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def brute_force(log_probs: NDArray[np.float64]) -> dict[tuple[int, ...], float]:
    """The probability of every text: the sum over all V^T paths that spell it."""
    texts: dict[tuple[int, ...], float] = defaultdict(float)
    T, V = log_probs.shape
    for path in itertools.product(range(V), repeat=T):
        text = tuple(symbol for symbol, _ in itertools.groupby(path) if symbol)
        texts[text] += math.exp(log_probs[range(T), path].sum())
    return texts


def whole(beam: BeamSearch, log_probs: NDArray[Any]) -> tuple[list[Token], BeamState]:
    return beam.step(log_probs, beam.start())


def texts(tokens: list[Token], beam: BeamSearch, state: BeamState) -> dict[tuple[int, ...], Any]:
    return {
        tuple(token.index for token in (*tokens, *hypothesis.tokens)): hypothesis
        for hypothesis in beam.hypotheses(state, ended=True)
    }


def test_a_text_of_many_paths_beats_the_best_path() -> None:
    with np.errstate(divide="ignore"):
        log_probs = np.log([[0.2, 0.8, 0.0], [0.6, 0.4, 0.0], [0.2, 0.8, 0.0]])
    greedy, _ = GreedyDecoder().step(log_probs, GreedyDecoder().start())
    assert [token.index for token in greedy] == [1, 1]
    beam = BeamSearch(prune_probability=1.0)
    best, second, *_ = beam.hypotheses(whole(beam, log_probs)[1])
    assert [token.index for token in best.tokens] == [1]
    assert math.exp(best.log_prob) == pytest.approx(0.592)
    assert math.exp(second.log_prob) == pytest.approx(0.384)


@law
@given(st.integers(0, 10**6), st.integers(0, 6), st.integers(2, 4))
def test_it_is_the_sum_over_all_alignments(seed: int, T: int, V: int) -> None:
    log_probs = random_log_probs(seed, T, V)
    beam = BeamSearch(**EXACT)
    found = texts(*_with(beam, log_probs))
    expected = brute_force(log_probs)
    assert found.keys() == expected.keys()
    for text, hypothesis in found.items():
        assert math.exp(hypothesis.log_prob) == pytest.approx(expected[text], rel=1e-9)
    assert next(iter(found)) == max(expected, key=expected.__getitem__)


@law
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_with_a_language_model_it_is_the_best_of_all_texts(seed: int, T: int) -> None:
    log_probs = random_log_probs(seed, T, 4)
    weights = fusion()
    beam = BeamSearch(**EXACT, fusion=weights)
    expected = {}
    for text, probability in brute_force(log_probs).items():
        words = VOCABULARY.decode(text).split()
        model = weights.alpha * weights.model.sentence(words) + weights.beta * len(words)
        expected[text] = math.log(probability) + model
    found = texts(*_with(beam, log_probs))
    assert found.keys() == expected.keys()
    for text, hypothesis in found.items():
        assert hypothesis.score == pytest.approx(expected[text], rel=1e-9)
    assert next(iter(found)) == max(expected, key=expected.__getitem__)


def _with(beam: BeamSearch, log_probs: NDArray[Any]) -> tuple[list[Token], BeamSearch, BeamState]:
    tokens, state = whole(beam, log_probs)
    return tokens, beam, state


@law
@given(st.integers(0, 10**6), st.integers(0, 40), st.booleans(), st.data())
def test_any_partition_gives_the_same_results_bit_for_bit(
    seed: int, T: int, with_model: bool, data: Any
) -> None:
    log_probs = random_log_probs(seed, T, 4, sharpness=3.0).astype(np.float32)
    beam = BeamSearch(width=4, fusion=fusion() if with_model else None)
    tokens, state = whole(beam, log_probs)
    cuts = sorted(data.draw(st.lists(st.integers(0, T), max_size=8)))
    part, after = list[Token](), beam.start()
    for begin, end in itertools.pairwise([0, *cuts, T]):
        after = pickle.loads(pickle.dumps(after))  # a snapshot, restored
        more, after = beam.step(log_probs[begin:end], after)
        assert all(token.frame < end for token in more)
        part += more
    assert part == tokens
    assert beam.hypotheses(after, ended=True) == beam.hypotheses(state, ended=True)
    assert after.frames == T


@law
@given(st.integers(0, 10**6), st.integers(1, 30))
def test_tokens_come_one_behind_another_in_time(seed: int, T: int) -> None:
    log_probs = random_log_probs(seed, T, 4, sharpness=4.0)
    beam = BeamSearch(width=6)
    committed, state = list[Token](), beam.start()
    for row in log_probs:
        tokens, state = beam.step(row[None], state)
        committed += tokens
        for hypothesis in beam.hypotheses(state):
            frames = [token.frame for token in (*committed, *hypothesis.tokens)]
            assert frames == sorted(set(frames))


def test_a_step_leaves_the_state_that_it_was_given() -> None:
    beam = BeamSearch(width=4)
    log_probs = random_log_probs(1, 8, 4)
    _, middle = whole(beam, log_probs[:4])
    before = pickle.dumps(middle)
    first = beam.step(log_probs[4:], middle)[1]
    assert pickle.dumps(middle) == before
    assert beam.hypotheses(beam.step(log_probs[4:], middle)[1]) == beam.hypotheses(first)


@law
@given(st.integers(0, 10**6))
def test_without_weights_a_language_model_changes_nothing(seed: int) -> None:
    log_probs = random_log_probs(seed, 20, 4, sharpness=2.0)
    plain, weighted = BeamSearch(width=4), BeamSearch(width=4, fusion=fusion(alpha=0, beta=0))
    expected, got = whole(plain, log_probs), whole(weighted, log_probs)
    assert got[0] == expected[0]
    assert weighted.hypotheses(got[1], ended=True) == plain.hypotheses(expected[1], ended=True)


def test_a_language_model_chooses_the_word() -> None:
    peaks = np.full((5, 4), 0.01)
    for t, probabilities in enumerate(
        [{2: 0.97}, {1: 0.97}, {3: 0.5, 2: 0.48}, {1: 0.97}, {2: 0.97}]
    ):
        for symbol, probability in probabilities.items():
            peaks[t, symbol] = probability
    log_probs = np.log(peaks / peaks.sum(axis=1, keepdims=True))
    counts = NGramCounts(order=2)
    counts.add(["a", "a", "a"])
    without, beam = (
        BeamSearch(**EXACT),
        BeamSearch(**EXACT, fusion=LanguageModelFusion(counts.model(), VOCABULARY, alpha=1.0)),
    )
    assert VOCABULARY.decode(list(next(iter(texts(*_with(without, log_probs)))))) == "a b a"
    assert VOCABULARY.decode(list(next(iter(texts(*_with(beam, log_probs)))))) == "a a a"


def test_equal_scores_give_the_lower_symbol() -> None:
    log_probs = np.log([[0.2, 0.4, 0.4]])
    beam = BeamSearch(prune_probability=1.0)
    order = [tuple(t.index for t in h.tokens) for h in beam.hypotheses(whole(beam, log_probs)[1])]
    assert order == [(1,), (2,), ()]


def test_pruning_tries_the_fewest_symbols_that_reach_the_probability() -> None:
    log_probs = np.log([[0.3, 0.4, 0.2, 0.1]])
    assert _tried(BeamSearch(prune_probability=0.69), log_probs) == {(), (1,)}
    assert _tried(BeamSearch(prune_probability=0.89), log_probs) == {(), (1,), (2,)}
    assert _tried(BeamSearch(prune_probability=1.0, prune_symbols=2), log_probs) == {(), (1,)}


def _tried(beam: BeamSearch, log_probs: NDArray[Any]) -> set[tuple[int, ...]]:
    return set(texts(*_with(beam, log_probs)))


def test_a_silence_is_counted_from_the_last_symbol() -> None:
    best = [1, 1, 0, 0, 0, 2, 0]
    log_probs = np.log(np.full((7, 3), 0.001) + 0.997 * np.eye(3)[best])
    beam = BeamSearch(width=2)
    tokens, state = whole(beam, log_probs)
    found = [*tokens, *beam.hypotheses(state)[0].tokens]
    assert [(token.index, token.frame, token.silence) for token in found] == [(1, 0, 0), (2, 5, 3)]


def test_an_endpoint_commits_the_best_text_and_the_stream_goes_on() -> None:
    beam = BeamSearch(width=4)
    log_probs = random_log_probs(3, 12, 4, sharpness=2.0)
    _, state = whole(beam, log_probs)
    best = beam.hypotheses(state)[0]
    committed, after = beam.commit(state)
    assert tuple(committed) == best.tokens
    (only,) = beam.hypotheses(after)
    assert (only.tokens, only.log_prob) == ((), best.log_prob)


@law
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_an_endpoint_commits_what_is_best_as_a_sentence(seed: int, T: int) -> None:
    """As `hypotheses` says of a stream that ends here; the words behind it begin another one."""
    log_probs = random_log_probs(seed, 2 * T, 4)
    beam = BeamSearch(**EXACT, fusion=fusion(alpha=2.0))
    _, state = whole(beam, log_probs[:T])
    best = beam.hypotheses(state, ended=True)[0]
    committed, after = beam.commit(state)
    assert tuple(committed) == best.tokens
    (only,) = beam.hypotheses(after)
    assert only.score == best.score
    # What the next sentence adds does not depend on how this one ended.
    spelled = dict[tuple[int, ...], float]()
    more, end = beam.step(log_probs[T:], after)
    for hypothesis in beam.hypotheses(end, ended=True):
        text = tuple(token.index for token in (*more, *hypothesis.tokens))
        spelled[text] = hypothesis.score - hypothesis.log_prob - (best.score - best.log_prob)
    model = fusion(alpha=2.0)
    for text, bonus in spelled.items():
        words = VOCABULARY.decode(text).split()
        expected = model.alpha * model.model.sentence(words) + model.beta * len(words)
        assert bonus == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_beam_of_nothing_is_refused() -> None:
    with refuses("out_of_range", "width", 0):
        BeamSearch(width=0)
    with refuses("out_of_range", "prune_symbols", 0):
        BeamSearch(prune_symbols=0)
    with refuses("out_of_range", "prune_probability", "1.5"):
        BeamSearch(prune_probability=1.5)
    with refuses("invalid", "log_probs", "(3,)"):
        BeamSearch().step(np.zeros(3), BeamSearch().start())
    with refuses("invalid", "log_probs", "add up to 0.5"):
        BeamSearch().step(np.log([[0.25, 0.25]]), BeamSearch().start())
