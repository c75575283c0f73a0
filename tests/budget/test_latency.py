"""Milliseconds: the promises of the design, and each of their parts."""

import math

import pytest

from nearfuture.budget import Latency, LatencyItem, ReceptiveField, algorithmic_latency
from tests.errors import refuses

WINDOW = ("window", ReceptiveField(right=199, stride=80, padded=False))
STACK = ("stack", ReceptiveField(right=3, stride=4, padded=False))
GRU = ("gru", ReceptiveField(left=math.inf))


def lookahead(frames: float) -> tuple[str, ReceptiveField]:
    return ("lookahead", ReceptiveField(right=frames))


@pytest.mark.parametrize(("frames", "worst_ms"), [(0, 55), (4, 215), (8, 375), (19, 815)])
def test_budgets_of_the_small_model(frames: int, worst_ms: float) -> None:
    latency = algorithmic_latency([WINDOW, STACK, GRU, lookahead(frames)], rate=8000)
    assert latency.worst_ms == pytest.approx(worst_ms, abs=1e-9)
    assert latency.mean_ms == pytest.approx(worst_ms - 20, abs=1e-9)
    assert latency.frame_ms == 40


def test_causal_items_are_left_out() -> None:
    latency = algorithmic_latency([WINDOW, GRU, lookahead(0)], rate=8000)
    assert latency.items == (LatencyItem("window", 25.0),)


def test_worst_case_is_what_an_open_stream_shows() -> None:
    fields = [WINDOW[1], STACK[1], ReceptiveField(left=5, right=5, stride=2), lookahead(3)[1]]
    chain = fields[0].then(fields[1]).then(fields[2]).then(fields[3])
    latency = algorithmic_latency([(str(i), field) for i, field in enumerate(fields)], rate=8000)
    seen = next(n for n in range(20_000) if chain.emitted(n) == 3)  # for the third output
    assert seen - 2 * chain.stride == pytest.approx(latency.worst_ms * 8)


def test_lookahead_adds_up() -> None:
    links = [(f"layer {k}", ReceptiveField(right=19)) for k in range(5)]
    latency = algorithmic_latency([WINDOW, STACK, *links], rate=8000)
    assert latency.worst_ms == pytest.approx(55 + 5 * 19 * 40)


def test_a_composition_costs_what_its_links_cost() -> None:
    apart = algorithmic_latency([WINDOW, STACK, lookahead(8)], rate=8000)
    whole = WINDOW[1].then(STACK[1]).then(lookahead(8)[1])
    together = algorithmic_latency([("model", whole)], rate=8000)
    assert together.worst_ms == pytest.approx(apart.worst_ms)
    assert together.frame_ms == apart.frame_ms


def test_convolutions_of_deep_speech_2() -> None:
    window = ("window", ReceptiveField(right=399, stride=160, padded=False))
    convolution = ReceptiveField(left=5, right=5, stride=2)
    links = [window, *((f"convolution {k}", convolution) for k in (1, 2, 3))]
    latency = algorithmic_latency(links, rate=16000)
    assert [item.ms for item in latency.items] == [25, 50, 100, 200]


def test_blocks_are_an_item_of_their_own_and_half_as_long_on_average() -> None:
    chunk = ReceptiveField(left=8, block=4)
    latency = algorithmic_latency([WINDOW, STACK, ("attention", chunk)], rate=8000)
    name, worst, mean = [(i.name, i.ms, i.mean_ms) for i in latency.items][-1]
    assert (name, worst, mean) == ("block wait (attention)", 120, 60)
    assert latency.worst_ms == 175
    assert latency.mean_ms == 55 + 60 - 20


def test_aligned_blocks_wait_once() -> None:
    chunk = ReceptiveField(block=4)
    latency = algorithmic_latency([("one", chunk), ("two", chunk)], rate=1000)
    assert [(item.name, item.ms) for item in latency.items][-1] == ("block wait (one, two)", 3)


def test_mean_over_blocks_is_the_mean_of_an_open_stream() -> None:
    fields = [ReceptiveField(block=4), ReceptiveField(right=1, stride=2), ReceptiveField(block=3)]
    latency = algorithmic_latency([(str(i), field) for i, field in enumerate(fields)], rate=1000)
    chain = fields[0].then(fields[1]).then(fields[2])
    waits = [chain.needed(t) - t * chain.stride for t in range(120)]
    assert latency.worst_ms == pytest.approx(max(waits))
    assert latency.mean_ms == pytest.approx(sum(waits) / len(waits) - 1)  # half of a 2 ms frame


def test_resampler_and_quantum_count() -> None:
    latency = algorithmic_latency([WINDOW], rate=8000, resampler_ms=5, quantum_wait_ms=40)
    assert [item.name for item in latency.items] == ["resampler", "window", "quantum wait"]
    assert latency.worst_ms == 70
    assert latency.mean_ms == 5 + 25 + 20 - 5


def test_bidirectional_waits_for_the_utterance_and_a_lookahead_does_not() -> None:
    whole = algorithmic_latency([WINDOW, STACK, lookahead(math.inf)], rate=8000)
    assert whole.worst_ms == whole.mean_ms == math.inf
    budget = algorithmic_latency([WINDOW, STACK, lookahead(19)], rate=8000)
    lengths_ms = [500, 1000, 5000, 60_000]
    assert [whole.within(ms) for ms in lengths_ms] == lengths_ms
    assert [budget.within(ms) for ms in lengths_ms] == [500, 815, 815, 815]


def test_blocks_above_a_bidirectional_layer_add_nothing() -> None:
    links = [lookahead(math.inf), ("attention", ReceptiveField(block=4))]
    assert [item.name for item in algorithmic_latency(links, rate=25).items] == ["lookahead"]


@pytest.mark.parametrize(
    ("options", "code", "parameter", "value"),
    [
        ({"links": []}, "invalid", "links", "at least one link"),
        ({"rate": 0}, "out_of_range", "rate", 0),
        ({"resampler_ms": -1.0}, "out_of_range", "resampler_ms", -1),
        ({"quantum_wait_ms": -1.0}, "out_of_range", "quantum_wait_ms", -1),
    ],
)
def test_impossible_questions_are_refused_by_name(
    options: dict[str, object], code: str, parameter: str, value: object
) -> None:
    with refuses(code, parameter, value):
        algorithmic_latency(**{"links": [WINDOW], "rate": 8000, **options})  # type: ignore[arg-type]


def test_latency_is_a_plain_value() -> None:
    assert Latency((LatencyItem("window", 25.0),)).worst_ms == 25
    assert Latency(()).mean_ms == 0
