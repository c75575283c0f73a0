"""The sizes of a whole recogniser, against the recogniser itself."""

import math
from dataclasses import replace
from typing import Any

import pytest

from nearfuture.budget import Blueprint, ConvolutionShape, deep_speech_2_deployed
from nearfuture.error import NearfutureError
from nearfuture.model import Recognizer
from nearfuture.model.presets import small


def parameters(plan: Blueprint) -> int:
    return sum(cost.parameters for _, cost in plan.costs(max(plan.heads, default=None)))


def test_the_default_is_the_small_recogniser() -> None:
    plan, model = Blueprint(), Recognizer(small())
    assert parameters(plan) == sum(p.numel() for p in model.parameters())
    for head in plan.heads:
        field = model.at(head).field
        assert plan.latency(head).worst_ms * 8 == pytest.approx(field.right + 1)
        assert plan.frame_ms * 8 == field.stride


def test_the_bidirectional_twin() -> None:
    plan = Blueprint(bidirectional=True, merge="sum", heads=())
    model = Recognizer(small().twin())
    assert parameters(plan) == sum(p.numel() for p in model.parameters())
    assert plan.latency(None).worst_ms == model.at(None).field.right == math.inf


def test_deep_speech_2_is_more_than_760_ms() -> None:
    plan = deep_speech_2_deployed()
    assert plan.frame_ms == 40
    items = {item.name: item.ms for item in plan.latency(19).items}
    assert items == {"window": 20, "convolution 1": 50, "convolution 2": 100, "lookahead": 760}
    assert plan.input_size == 32 * 41
    causal = replace(plan, convolutions=tuple(replace(c, causal=True) for c in plan.convolutions))
    assert causal.latency(19).worst_ms == 780
    costs = dict(plan.costs(19))
    assert costs["lookahead 19"].parameters == 51_200
    assert costs["GRU 2 2560 → 2560"].parameters == 3 * 2560 * (2 * 2560 + 1)
    assert costs["convolution 1 1×161 → 32×81"].parameters == 32 * (11 * 41 + 1)
    # The first convolution makes a frame every 20 ms, twice per output.
    assert costs["convolution 1 1×161 → 32×81"].flops_per_frame == 2 * (2 * 32 * 11 * 41 * 81)


def test_heads_are_all_stored_and_one_runs() -> None:
    costs = {head: dict(Blueprint().costs(head))["lookahead 0, 4, 8, 19"] for head in (0, 19)}
    assert costs[0].parameters == costs[19].parameters == 192 * (1 + 5 + 9 + 20)
    assert (costs[0].flops_per_frame, costs[19].flops_per_frame) == (2 * 192, 2 * 192 * 20)


def test_a_concatenation_widens_what_is_above() -> None:
    names = [name for name, _ in Blueprint(bidirectional=True, heads=()).costs(None)]
    assert names[2:4] == ["GRU 1 192 → 384", "GRU 2 384 → 384"]
    assert names[-1] == "output 384 → 29"


def test_a_convolution_over_time_reads_all_bands() -> None:
    shape = ConvolutionShape(kernel=3, stride=2, channels=64)
    plan = Blueprint(stack=1, convolutions=(shape,))
    assert plan.frame_ms == 20
    assert plan.input_size == 64
    assert dict(plan.costs(0))["convolution 1 1×40 → 64×1"].parameters == 64 * (40 * 3 + 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bidirectional": True}, "waits for what is already there"),
        ({"bidirectional": True, "heads": (), "mixing": True}, "waits for what is already there"),
        ({"heads": ()}, "at least one head"),
        ({"heads": (4, -1)}, "-1"),
        ({"heads": (4, 4)}, "one head"),
        ({"layers": 0}, "layers"),
        ({"window_ms": math.inf}, "window_ms"),
        ({"rate": 11025}, "275.625 samples"),
        ({"hidden": 0}, "not 0"),
        ({"mels": 0}, "mels"),
        ({"merge": "sum"}, "one direction"),
        ({"batch_norm": True}, "biases=1, not 2"),
    ],
)
def test_what_makes_no_model_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        Blueprint(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": 0, "channels": 1}, "kernel"),
        ({"kernel": 1, "channels": 0}, "channels"),
        ({"kernel": 3, "channels": 1, "band_stride": 2}, "kernel over bands"),
    ],
)
def test_impossible_convolutions_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        ConvolutionShape(**options)
