"""Greedy decoding: collapse, and the same tokens for any partition."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.decoding import GreedyDecoder, GreedyState, Token
from nearfuture.error import NearfutureError

law = settings(derandomize=True, max_examples=100, deadline=None)
paths = st.lists(st.integers(0, 3), max_size=30)


def log_probs_of(path: list[int], dtype: Any = np.float64) -> np.ndarray:
    """(T, 4) whose best symbols are `path`, with a different score in every frame."""
    peaks = np.linspace(0.5, 0.9, num=len(path))[:, None]
    return np.log(np.where(np.eye(4)[path] > 0, peaks, (1 - peaks) / 3)).astype(dtype)


@law
@given(paths)
def test_repeats_collapse_and_blanks_separate(path: list[int]) -> None:
    log_probs = log_probs_of(path)
    tokens, state = GreedyDecoder().step(log_probs, GreedyDecoder().start())
    runs = [(index, len(list(run))) for index, run in itertools.groupby(path)]
    assert [token.index for token in tokens] == [index for index, _ in runs if index != 0]
    begins = np.cumsum([0, *(length for _, length in runs)])
    expected = [int(begin) for begin, (index, _) in zip(begins, runs, strict=False) if index]
    assert [token.frame for token in tokens] == expected
    assert [token.log_prob for token in tokens] == [log_probs[t, path[t]] for t in expected]
    silences = [
        length if before == 0 else 0
        for (before, length), (index, _) in itertools.pairwise([(None, 0), *runs])
        if index
    ]
    assert [token.silence for token in tokens] == silences
    ends = runs[-1][1] if path and path[-1] == 0 else 0
    assert state == GreedyState(len(path), last=path[-1] if path else 0, silence=ends)


@law
@given(paths, st.data())
def test_any_partition_gives_the_same_tokens_and_state(path: list[int], data: Any) -> None:
    greedy = GreedyDecoder(blank=data.draw(st.integers(0, 3)))
    log_probs = log_probs_of(path, np.float32)
    whole, end = greedy.step(log_probs, greedy.start())
    cuts = sorted(data.draw(st.lists(st.integers(0, len(path)), max_size=8)))
    tokens: list[Token] = []
    state = greedy.start()
    for begin, stop in itertools.pairwise([0, *cuts, len(path)]):
        new, state = greedy.step(log_probs[begin:stop], state)
        assert all(begin <= token.frame < stop for token in new)
        tokens += new
    assert tokens == whole
    assert state == end


def test_equal_best_symbols_give_the_lowest_id() -> None:
    tokens, _ = GreedyDecoder().step(np.log([[0.2, 0.4, 0.4]]), GreedyDecoder().start())
    assert [token.index for token in tokens] == [1]


def test_impossible_symbols_are_no_trouble() -> None:
    with np.errstate(divide="ignore"):
        log_probs = np.log([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    tokens, state = GreedyDecoder().step(log_probs, GreedyDecoder().start())
    assert tokens == [Token(1, 0, 0.0)]
    assert state == GreedyState(2, 0, silence=1)


def test_a_step_leaves_the_state_it_was_given() -> None:
    state = GreedyState(frames=5, last=1)
    tokens, after = GreedyDecoder().step(log_probs_of([1, 2]), state)
    assert state == GreedyState(frames=5, last=1)
    assert [(token.index, token.frame) for token in tokens] == [(2, 6)]
    assert after == GreedyState(frames=7, last=2)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (3, 0)])
def test_wrong_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(NearfutureError, match="greedy decoding takes"):
        GreedyDecoder().step(np.zeros(shape), GreedyDecoder().start())


def test_a_blank_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(NearfutureError, match="the blank, 4, in the vocabulary"):
        GreedyDecoder(blank=4).step(np.zeros((1, 4)), GreedyDecoder(blank=4).start())


def test_nan_is_refused_with_its_frame_in_the_stream() -> None:
    log_probs = log_probs_of([1, 2, 0])
    log_probs[1, 3] = np.nan
    with pytest.raises(NearfutureError, match="NaN in frame 11"):
        GreedyDecoder().step(log_probs, GreedyState(frames=10, last=0))


WRONG = {
    "logits": log_probs_of([1, 2, 0]) + 2.0,
    "probabilities": np.exp(log_probs_of([1, 2, 0])),
    "decimal logarithms": log_probs_of([1, 2, 0]) / 2.302585,
    "halved": log_probs_of([1, 2, 0]) - 0.7,
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("frames", [1, 3])
def test_what_are_no_log_probabilities_is_refused_where_a_stream_begins(
    kind: str, frames: int
) -> None:
    with pytest.raises(NearfutureError, match=r"log-probability is at most 0|of frame 0 add up to"):
        GreedyDecoder().step(WRONG[kind][:frames], GreedyDecoder().start())


@pytest.mark.parametrize("value", [0.5, math.inf, -math.inf, -5.0, math.nan])
def test_a_frame_later_on_has_a_best_symbol_between_1_in_v_and_1(value: float) -> None:
    _, state = GreedyDecoder().step(log_probs_of([1]), GreedyDecoder().start())
    message = r"frame 1 has the value|of frame 1 add up to|a NaN in frame 1"
    with pytest.raises(NearfutureError, match=message):
        GreedyDecoder().step(np.full((1, 4), value), state)


def test_half_precision_is_precise_enough() -> None:
    rng = np.random.default_rng(0)
    exact = np.log(rng.dirichlet(np.full(2000, 0.5), 50))
    bfloat16 = exact.astype(np.float32).view(np.uint32)
    bfloat16 = ((bfloat16 + 0x7FFF) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    for rounded in (exact.astype(np.float16), bfloat16):
        _, state = GreedyDecoder().step(rounded, GreedyDecoder().start())
        for row in rounded:
            GreedyDecoder().step(row[None], GreedyDecoder().start())
        assert state.frames == 50
