"""Families on two axes: how far each looks ahead is measured, and what it costs is counted."""

import math

import pytest

from nearfuture import load
from nearfuture.budget import AttentionConfig, deep_speech_2_deployed
from nearfuture.lab import dependency, graphs
from nearfuture.lab.pages import after_rnns


def lookaheads(layers: int) -> dict[str, float]:
    return {line["family"]: line["wait_ms"] / 40 for line in after_rnns.plane(layers)}


@pytest.mark.parametrize("layers", [1, 2])
def test_lookahead_is_that_of_each_family(layers: int) -> None:
    assert lookaheads(layers) == {
        "rnn": 0,
        "row-convolution": 3 * layers,
        "blstm": math.inf,
        "causal-attention": 0,
        "sliding-attention": layers,
        "chunked-attention": 3,  # however many layers
        "full-attention": math.inf,
    }
    assert all(line["agree"] for line in after_rnns.plane(layers))


def test_only_attention_without_bounds_costs_more_in_a_longer_utterance() -> None:
    short, long = after_rnns.costs(1, 2), after_rnns.costs(1, 20)
    for family in after_rnns.FAMILIES:
        before, after = short["flops"][family], long["flops"][family]
        if family in ("rnn", "row-convolution", "blstm"):
            assert before == after
        elif family in ("causal-attention", "full-attention"):
            assert after > 1.1 * before
        else:  # all but its first frames look as far back
            assert after < 1.01 * before
    assert (short["end_ms"], long["end_ms"]) == (2000, 20000)


def test_chunked_costs_are_those_of_the_budget() -> None:
    chunk = AttentionConfig(
        block="transformer", hidden=256, chunk=4, left_chunks=1, expansion=4, kernel=None
    )
    whole = 25 * chunk.cost().flops_per_frame  # frames a second
    assert after_rnns.flops_per_second("chunked-attention", 1, 30) == pytest.approx(whole, rel=1e-3)
    assert after_rnns.flops_per_second("rnn", 2, 1) == 2 * after_rnns.flops_per_second("rnn", 1, 1)


def test_attention_counts_the_frames_that_its_mask_allows() -> None:
    assert after_rnns._keys(graphs.open_graph("causal-attention-1"), 100) == 50.5
    assert after_rnns._keys(graphs.open_graph("full-attention-1"), 100) == 100
    found = dependency.examine([graphs.open_graph("chunked-attention-1")], 16)
    keys = after_rnns._keys(graphs.open_graph("chunked-attention-1"), 16)
    assert keys == found.measured.sum() / 16


def test_published_latencies_are_in_milliseconds_and_have_a_source() -> None:
    found = after_rnns.systems()
    assert found["deep-speech-2"]["ms"] == (deep_speech_2_deployed().latency(19).worst_ms,)
    assert found["deep-speech-2"]["ms"] == (930,)
    own = tuple(latency.worst_ms for latency in load("digits").budgets.values())
    assert found["own"]["ms"] == own
    for system in found.values():
        assert system["source"]
        assert all(value == 0 or 20 <= value <= 5000 for value in system["ms"])
