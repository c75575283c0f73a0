"""The head that keeps a promise, or a refusal that says what could be promised."""

import math

import pytest

from nearfuture.budget import RecognizerConfig, largest_lookahead
from nearfuture.error import NearfutureError

HEADS = {0: 55.0, 4: 215.0, 8: 375.0, 19: 815.0}


@pytest.mark.parametrize(
    ("budget_ms", "frames"),
    [(55, 0), (214.9, 0), (215, 4), (374.9, 4), (375, 8), (400, 8), (815, 19), (math.inf, 19)],
)
def test_the_largest_head_that_fits(budget_ms: float, frames: int) -> None:
    assert largest_lookahead(budget_ms, HEADS) == frames
    config = RecognizerConfig()
    latencies = {head: config.latency(head) for head in config.heads}
    assert largest_lookahead(budget_ms, latencies) == frames


def test_a_budget_too_small_is_refused_with_the_smallest() -> None:
    message = "a budget of 40 ms is below the smallest this model can keep, 55 ms; ask for 55 ms"
    with pytest.raises(NearfutureError, match=message):
        largest_lookahead(40, HEADS)
    with pytest.raises(NearfutureError, match="55 ms"):
        largest_lookahead(math.nan, HEADS)


def test_the_budget_that_a_refusal_names_is_accepted() -> None:
    heads = {2: 1000 / 3}
    with pytest.raises(NearfutureError) as refusal:
        largest_lookahead(1, heads)
    named = float(str(refusal.value).rsplit("ask for ")[1].split(" ms")[0])
    assert largest_lookahead(named, heads) == 2


def test_a_bidirectional_model_keeps_no_budget() -> None:
    with pytest.raises(NearfutureError, match="whole utterance"):
        largest_lookahead(10_000, {0: math.inf})


def test_no_heads_are_refused() -> None:
    with pytest.raises(NearfutureError, match="at least one"):
        largest_lookahead(400, {})
