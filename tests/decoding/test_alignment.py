"""Forced alignment: exact against every path there is, in little memory, and words of it."""

import itertools
import math
import tracemalloc
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.decoding import Alignment, Detokenizer, GreedyDecoder, align, align_words
from nearfuture.error import NearfutureError
from nearfuture.text import Vocabulary, plural

V = 3  # the blank and two symbols
law = settings(derandomize=True, max_examples=100, deadline=None)

targets = st.lists(st.integers(1, V - 1), max_size=3)
# Few different values, so that many paths are equally good and some are impossible.
coarse = st.sampled_from([0.0, -1.0, -2.0, -math.inf])
fine = st.floats(-20.0, 0.0)


def needed(target: list[int]) -> int:
    return len(target) + sum(a == b for a, b in itertools.pairwise(target))


def completed(values: np.ndarray) -> np.ndarray:
    """(T, V + 1) distributions: `values - 2`, which is exact, and a symbol that has the rest."""
    return np.column_stack([values - 2.0, np.log1p(-np.exp(values - 2.0).sum(axis=1))])


def cases(values: st.SearchStrategy[float]) -> st.SearchStrategy[tuple[np.ndarray, list[int]]]:
    def with_frames(target: list[int], extra: int) -> st.SearchStrategy[tuple[np.ndarray, list]]:
        frames = needed(target) + extra
        rows = st.lists(st.lists(values, min_size=V, max_size=V), min_size=frames, max_size=frames)
        return rows.map(lambda drawn: (completed(np.array(drawn).reshape(frames, V)), target))

    return st.tuples(targets, st.integers(0, 3)).flatmap(lambda drawn: with_frames(*drawn))


@cache
def all_states(target: tuple[int, ...], frames: int) -> np.ndarray:
    """(N, T) every sequence of states that spells the target, by trying all there are."""
    labels = [0, *itertools.chain.from_iterable((symbol, 0) for symbol in target)]
    found = []
    for states in itertools.combinations_with_replacement(range(len(labels)), frames):
        path = [labels[state] for state in states]
        merged = [symbol for symbol, _ in itertools.groupby(path)]
        # A sequence of states stands for its path if no symbol is missing or merged with the next.
        if [symbol for symbol in merged if symbol] == list(target) and all(
            state in states for state in range(1, len(labels), 2)
        ):
            found.append(states)
    return np.array(found, int).reshape(len(found), frames)


def best_by_trying(
    log_probs: np.ndarray, target: list[int], blanks: int | list[int] = 0
) -> tuple[float, list[int]]:
    """The best score, and of the paths that have it the one the tie rule names."""
    labels = np.zeros(2 * len(target) + 1, int)
    labels[::2], labels[1::2] = blanks, target
    states = all_states(tuple(target), len(log_probs))
    scores = np.zeros(len(states))
    for t, row in enumerate(log_probs):  # added up in the order of time
        scores = scores + row[labels[states[:, t]]]
    best = states[scores == scores.max()]
    last = max(best.tolist(), key=lambda path: path[::-1])
    return float(scores.max()), labels[last].tolist()


def spelled(found: Alignment) -> list[int]:
    return [symbol for symbol, _ in itertools.groupby(found.path.tolist()) if symbol]


def check_consistent(found: Alignment, log_probs: np.ndarray, target: list[int]) -> None:
    assert spelled(found) == target
    assert [token.index for token in found.tokens] == target
    rest = found.path.copy()
    for token in found.tokens:
        frames = slice(token.first, token.last + 1)
        assert set(rest[frames]) == {token.index}
        assert token.log_prob == pytest.approx(log_probs[frames, token.index].mean())
        rest[frames] = 0
    assert not rest.any()
    total = log_probs[np.arange(len(log_probs)), found.path].sum()
    assert found.score == pytest.approx(total)


@law
@given(cases(fine))
def test_no_path_is_better(case: tuple[np.ndarray, list[int]]) -> None:
    log_probs, target = case
    found = align(log_probs, target)
    score, path = best_by_trying(log_probs, target)
    assert found.score == score
    assert found.path.tolist() == path
    check_consistent(found, log_probs, target)


@law
@given(cases(fine), st.data())
def test_blanks_that_differ_by_their_place(
    case: tuple[np.ndarray, list[int]], data: st.DataObject
) -> None:
    log_probs, target = case
    other = data.draw(st.lists(fine, min_size=len(log_probs), max_size=len(log_probs)))
    log_probs = np.column_stack([log_probs, other])
    places = len(target) + 1
    other_blank = log_probs.shape[1] - 1
    blanks = data.draw(
        st.lists(st.sampled_from([0, other_blank]), min_size=places, max_size=places)
    )
    found = align(log_probs, target, blanks)
    score, path = best_by_trying(log_probs, target, blanks)
    assert found.score == score
    assert found.path.tolist() == path


@law
@given(cases(coarse))
def test_ties_and_impossible_frames(case: tuple[np.ndarray, list[int]]) -> None:
    log_probs, target = case
    score, path = best_by_trying(log_probs, target)
    if score == -math.inf:
        with pytest.raises(NearfutureError, match="has probability 0"):
            align(log_probs, target)
        return
    found = align(log_probs, target)
    assert found.score == score
    assert found.path.tolist() == path
    check_consistent(found, log_probs, target)


@law
@given(targets.filter(bool), st.data())
def test_too_few_frames_are_named(target: list[int], data: st.DataObject) -> None:
    frames = data.draw(st.integers(0, needed(target) - 1))
    told = f"^{plural(frames, 'frame')} cannot.*which need {needed(target)};"
    with pytest.raises(NearfutureError, match=told):
        align(np.zeros((frames, V)), target)


def with_all_moves(log_probs: np.ndarray, target: list[int]) -> tuple[float, np.ndarray]:
    """The textbook's algorithm, which keeps every move."""
    labels = np.zeros(2 * len(target) + 1, int)
    labels[1::2] = target
    scores = np.full(len(labels), -np.inf)
    scores[0] = 0.0
    moves = np.zeros((len(log_probs), len(labels)), int)
    for t, row in enumerate(log_probs):
        before = scores.copy()
        for s, label in enumerate(labels):
            options = [before[s], before[s - 1] if s > 0 else -np.inf]
            if s > 1 and label and label != labels[s - 2]:
                options.append(before[s - 2])
            moves[t, s] = int(np.argmax(options))
            scores[s] = options[moves[t, s]] + row[label]
    s = len(labels) - 1 if scores[-1] >= scores[-2] else len(labels) - 2
    score, path = float(scores[s]), []
    for t in range(len(log_probs) - 1, -1, -1):
        path.append(labels[s])
        s -= moves[t, s]
    return score, np.array(path[::-1])


@pytest.mark.parametrize(("frames", "symbols"), [(150, 20), (150, 60), (151, 76), (97, 1), (64, 0)])
def test_blocks_change_nothing(frames: int, symbols: int) -> None:
    for seed in range(5):
        rng = np.random.default_rng([frames, symbols, seed])
        log_probs = np.log(rng.dirichlet(np.full(5, 0.3), frames))
        target = rng.integers(1, 5, symbols).tolist()
        if seed == 0:  # no frame to spare
            log_probs = log_probs[: max(1, needed(target))]
        score, path = (
            with_all_moves(log_probs, target)
            if symbols
            else (sum(log_probs[:, 0].tolist()), np.zeros(len(log_probs)))
        )
        found = align(log_probs, target)
        assert found.score == score
        np.testing.assert_array_equal(found.path, path)


def test_memory_is_far_below_one_byte_a_cell() -> None:
    T, L = 6000, 2000
    rng = np.random.default_rng(0)
    log_probs = np.log(rng.dirichlet(np.ones(9), T))
    target = rng.integers(1, 9, L)
    tracemalloc.start()
    try:
        align(log_probs, target)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < T * (2 * L + 1) / 8


def test_nothing_said() -> None:
    assert align(np.zeros((0, 3)), []).path.tolist() == []
    found = align(np.log([[0.5, 0.5], [0.25, 0.75]]), [])
    assert (found.path.tolist(), found.tokens) == ([0, 0], ())
    assert found.score == pytest.approx(math.log(0.125))


def test_another_blank() -> None:
    log_probs = np.log(np.full((3, 3), 0.1) + 0.7 * np.eye(3)[[2, 0, 2]])
    assert align(log_probs, [0], blank=2).path.tolist() == [2, 0, 2]


@pytest.mark.parametrize(
    ("log_probs", "target", "message"),
    [
        (np.zeros(3), [1], r"shape \(3,\)"),
        (np.zeros((3, 0)), [], r"shape \(3, 0\)"),
        (np.zeros((3, 2)), [2], "the symbol 2: symbols go from 0 to 1"),
        (np.zeros((3, 2)), [-1], "the symbol -1"),
        (np.zeros((3, 2)), [0], "the symbol 0: .*the blank"),
        (np.log([[0.5, 0.5], [0.5, math.nan]]), [1], "a NaN in frame 1"),
        (np.log([[math.inf, 0.5], [0.5, 0.5]]), [1], "frame 0 has the value inf"),
        (np.log([[0.5, 0.5], [0.5, 1.1]]), [1], "frame 1 has the value 0.0953"),
        (np.log([[0.5, 0.5], [0.5, 0.45]]), [1], "of frame 1 add up to 0.95, not to 1"),
        (np.full((3, 2), 0.5), [1], "frame 0 has the value 0.5"),
        (np.full((3, 2), -22.0), [1], "of frame 0 add up to 5.58e-10"),
    ],
)
def test_what_cannot_be_aligned(log_probs: np.ndarray, target: list[int], message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        align(log_probs, target)


def test_where_blanks_differ_by_place_only_values_above_0_are_refused() -> None:
    values = np.log([[0.5, 0.5, 0.1], [0.5, 0.5, 0.1], [0.5, 0.5, 0.1]])
    assert align(values, [1], [0, 2]).path.tolist() == [1, 1, 1]
    values[2, 1] = 0.02
    with pytest.raises(NearfutureError, match=r"frame 2 has the value 0\.02"):
        align(values, [1], [0, 2])


@pytest.mark.parametrize("kind", ["logits", "probabilities", "decibels", "NaN"])
def test_words_are_not_aligned_with_what_are_no_log_probabilities(kind: str) -> None:
    log_probs = emitted(".a.b.")
    wrong = {
        "logits": log_probs + 3.0,  # every confidence would be 1
        "probabilities": np.exp(log_probs),
        "decibels": 10 / np.log(10) * log_probs,
        "NaN": np.where(log_probs < -2, np.nan, log_probs),
    }[kind]
    with pytest.raises(NearfutureError, match=r"log-probability is at most 0|add up to|a NaN"):
        align_words(wrong, "ab", vocabulary, 40, 0)


# Words

vocabulary = Vocabulary((" ", "a", "b"))


def emitted(text: str, probability: float = 0.7) -> np.ndarray:
    """A frame for each character; `.` is the blank."""
    best = [0 if c == "." else vocabulary.encode(c)[0] for c in text]
    rest = (1 - probability) / 3
    return np.log(np.full((len(best), 4), rest) + (probability - rest) * np.eye(4)[best])


def test_times_and_characters() -> None:
    first, second = align_words(emitted("..aab. ..b.b"), "ab bb", vocabulary, 40, 27.5)
    assert (first.text, first.start_ms, first.end_ms) == ("ab", 27.5 + 80, 27.5 + 180)
    assert [(c.text, c.start_ms, c.end_ms) for c in first.characters] == [
        ("a", 27.5 + 80, 27.5 + 140),
        ("b", 27.5 + 160, 27.5 + 180),
    ]
    assert (second.text, second.start_ms, second.end_ms) == ("bb", 27.5 + 360, 27.5 + 460)


def test_confidence_is_the_geometric_mean_of_the_characters_frames() -> None:
    log_probs = emitted("aab.b")
    for frame, symbol, probability in ((0, 2, 0.5), (1, 2, 0.9), (2, 3, 0.6)):
        log_probs[frame] = np.log((1 - probability) / 3)
        log_probs[frame, symbol] = np.log(probability)
    [word] = align_words(log_probs[:3], "ab", vocabulary, 40, 0)
    assert word.confidence == pytest.approx((0.5 * 0.9 * 0.6) ** (1 / 3))
    assert [c.confidence for c in word.characters] == pytest.approx([math.sqrt(0.45), 0.6])


def test_rounding_never_gives_more_than_certainty() -> None:
    certain = np.log([[1e-30, 1e-30, 1 + 1e-7, 1e-30]])
    [word] = align_words(certain, "a", vocabulary, 40, 0)
    assert word.confidence == 1.0


def test_a_wrong_text_has_little_confidence() -> None:
    [right] = align_words(emitted(".a.b."), "ab", vocabulary, 40, 0)
    [wrong] = align_words(emitted(".a.b."), "ba", vocabulary, 40, 0)
    assert right.confidence == pytest.approx(0.7)
    assert wrong.confidence < 0.5 * right.confidence


def test_words_begin_where_greedy_decoding_says() -> None:
    log_probs = emitted("..aa.b .. b. aa.a")
    tokens, _ = GreedyDecoder().step(log_probs, GreedyDecoder().start())
    heard = Detokenizer(vocabulary, 40, 27.5).words(tokens)
    aligned = align_words(log_probs, "ab b aa", vocabulary, 40, 27.5)
    assert [(w.text, w.start_ms) for w in aligned] == [(w.text, w.start_ms) for w in heard]


def test_no_text_is_no_words() -> None:
    assert align_words(emitted("..."), "  ", vocabulary, 40, 0) == ()


def test_unknown_characters_are_named() -> None:
    with pytest.raises(NearfutureError, match="cannot write 'c'"):
        align_words(emitted("..."), "abc", vocabulary, 40, 0)
