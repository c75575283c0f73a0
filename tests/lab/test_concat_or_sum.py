"""What a second direction costs: the page's bars are those of the facts and of real layers."""

from itertools import pairwise
from typing import Any

import pytest

from nearfuture.lab.pages.concat_or_sum import costs
from nearfuture.layers import GRU, Bidirectional


@pytest.mark.parametrize(
    ("design", "times"),
    [
        ({"merge": "concat"}, [2.0, 3.0, 3.0]),
        ({"merge": "sum"}, [2.0, 2.0, 2.0]),
        ({"merge": "sum", "shared": True}, [1.5, 1.5, 1.5]),
        ({"merge": "concat", "shared": True}, [1.5, 2.0, 2.0]),
    ],
)
def test_where_the_input_is_as_wide_as_the_state(design: Any, times: list[float]) -> None:
    found = costs(inputs=640, hidden=640, layers=3, **design)
    assert [layer["times"] for layer in found["layers"]] == times


def test_a_narrow_input_is_little_to_share() -> None:
    first = costs(merge="sum", shared=True)["layers"][0]
    assert round(first["times"], 2) == 1.94


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("merge", ["concat", "sum"])
def test_the_bars_are_the_tensors_of_the_layers(merge: Any, shared: bool) -> None:
    found = costs(inputs=40, hidden=64, layers=3, merge=merge, shared=shared)
    width = 128 if merge == "concat" else 64
    for layer, inputs in zip(found["layers"], (40, width, width), strict=True):
        one = GRU(inputs if inputs == 40 else 64, 64)
        both = Bidirectional(GRU(inputs, 64), merge=merge, share_input=shared)
        weights = [each for each in both.parameters() if each.dim() == 2]
        assert layer["one"] == one.weight_ih.numel() + one.weight_hh.numel()
        assert layer["both"] == sum(each.numel() for each in weights)
        assert layer["reads"] == inputs
        assert layer["both"] == 2 * layer["each"] + layer["common"]
        assert layer["common"] == (both.ahead.weight_ih.numel() if shared else 0)


def test_the_table_adds_up_the_layers() -> None:
    for layers, more in pairwise([costs(layers=n) for n in (2, 3)]):
        assert more["one"]["parameters"] - layers["one"]["parameters"] == more["layers"][2]["one"]
    found = costs(merge="sum", shared=True, layers=4)
    total = found["designs"][found["chosen"]]
    assert found["chosen"] == "sum-shared"
    assert total["parameters"] == sum(layer["both"] for layer in found["layers"])
    assert total["flops_per_second"] == 2 * total["parameters"] * 25
