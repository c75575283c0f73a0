"""The sizes of a whole recogniser, against the recogniser itself."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

from nearfuture.budget import (
    PRESETS,
    ConvolutionConfig,
    Preset,
    RecognizerConfig,
    deep_speech_2_deployed,
)
from nearfuture.error import NearfutureError
from tests.errors import refuses
from tests.recognizers import recognizer_config


def test_deep_speech_2_is_more_than_760_ms() -> None:
    config = deep_speech_2_deployed()
    assert config.frame_ms == 40
    items = {item.name: item.ms for item in config.latency(19).items}
    assert items == {"window": 20, "convolution 1": 50, "convolution 2": 100, "lookahead": 760}
    assert deep_speech_2_deployed(causal=True).latency(19).worst_ms == 780
    costs = dict(config.costs(19))
    assert costs["lookahead 19"].parameters == 51_200
    assert costs["GRU 2 2560 → 2560"].parameters == 3 * 2560 * (2 * 2560 + 1)
    assert costs["convolution 1 1×161 → 32×81"].parameters == 32 * (11 * 41 + 1)
    # The first convolution makes a frame every 20 ms, twice per output.
    assert costs["convolution 1 1×161 → 32×81"].flops_per_frame == 2 * (2 * 32 * 11 * 41 * 81)


def test_heads_are_all_stored_and_one_runs() -> None:
    costs = {
        head: dict(RecognizerConfig().costs(head))["lookahead 0, 4, 8, 19"] for head in (0, 19)
    }
    assert costs[0].parameters == costs[19].parameters == 192 * (1 + 5 + 9 + 20)
    assert (costs[0].flops_per_frame, costs[19].flops_per_frame) == (2 * 192, 2 * 192 * 20)


def test_a_concatenation_widens_what_is_above() -> None:
    names = [
        name
        for name, _ in recognizer_config(bidirectional=True, merge="concat", heads=()).costs(None)
    ]
    assert names[2:4] == ["GRU 1 192 → 384", "GRU 2 384 → 384"]
    assert names[-1] == "output 384 → 29"


def test_a_convolution_over_time_reads_all_bands() -> None:
    shape = ConvolutionConfig(kernel=3, stride=2, channels=64)
    config = RecognizerConfig(stack=1, convolutions=(shape,))
    assert config.frame_ms == 20
    assert dict(config.costs(0))["convolution 1 1×40 → 64×1"].parameters == 64 * (40 * 3 + 1)


@pytest.mark.parametrize(
    ("fields", "code", "parameter", "named"),
    [
        ({"bidirectional": True}, "conflict", "heads", "waits for what is already there"),
        ({"bidirectional": True, "heads": (), "mixing": True}, "conflict", "mixing", "already"),
        ({"heads": ()}, "invalid", "heads", "at least one"),
        ({"heads": (4, -1)}, "out_of_range", "heads", "-1"),
        ({"heads": (4, 4)}, "invalid", "heads", "(4, 4)"),
        ({"layers": 0}, "out_of_range", "layers", "not 0"),
        ({"window_ms": math.inf}, "out_of_range", "window_ms", "inf"),
        ({"rate": 11025}, "invalid", "window_ms", "275.625 samples"),
        ({"rate": 11025, "window_ms": 24.9433107}, "invalid", "hop_ms", "9.97732426"),
        ({"hidden": 0}, "out_of_range", "hidden", "not 0"),
        ({"mel_bins": 0}, "out_of_range", "mel_bins", "not 0"),
        ({"floor": 0.0}, "out_of_range", "floor", "not 0"),
        ({"stack": 0}, "out_of_range", "stack", "not 0"),
        ({"cell": "elman"}, "invalid", "cell", "rnn, gru, lstm"),
        ({"biases": 3}, "out_of_range", "biases", "not 3"),
        ({"merge": "concat"}, "conflict", "merge", "one direction"),
        ({"share_input": True}, "conflict", "share_input", "one direction"),
        ({"batch_norm": True}, "conflict", "biases", "biases=1"),
        ({"dropout": 1.0}, "out_of_range", "dropout", "not 1.0"),
    ],
)
def test_what_makes_no_model_is_refused_by_name(
    fields: dict[str, Any], code: str, parameter: str, named: str
) -> None:
    with refuses(code, parameter, named):
        recognizer_config(**fields)


@pytest.mark.parametrize(
    ("fields", "code", "parameter"),
    [
        ({"kernel": 0, "channels": 1}, "out_of_range", "kernel"),
        ({"kernel": 1, "channels": 0}, "out_of_range", "channels"),
        ({"kernel": 3, "channels": 1, "band_kernel": 0}, "out_of_range", "band_kernel"),
        ({"kernel": 3, "channels": 1, "band_stride": 2}, "conflict", "band_stride"),
    ],
)
def test_impossible_convolutions_are_refused(
    fields: dict[str, int], code: str, parameter: str
) -> None:
    with refuses(code, parameter):
        ConvolutionConfig(**fields)


_NONSENSE: tuple[Any, ...] = (
    "x", -1, 10**30, 1.5, math.nan, math.inf, [1.5], [[]], {}, {"a": 1}, True, None, "",
)  # fmt: skip


def _places(values: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if place:
        yield place
    if isinstance(values, dict | list):
        for key in values if isinstance(values, dict) else range(len(values[:1])):
            yield from _places(values[key], (*place, key))


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_any_value_at_any_place_of_a_configuration_fits_its_field_or_is_refused(
    preset: Preset,
) -> None:
    written = json.dumps(PRESETS[preset]().to_json())
    for place in _places(json.loads(written)):
        for nonsense in _NONSENSE:
            values = inner = json.loads(written)
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = nonsense
            try:
                config = RecognizerConfig.from_json(values)
            except NearfutureError:
                continue
            # What is accepted computes, and comes back as it was written.
            assert config.latency(config.lookaheads[0]).worst_ms > 0
            assert RecognizerConfig.from_json(config.to_json()) == config, (place, nonsense)


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("stack", 1.5, "must be int, not 1.5"),
        ("stack", True, "must be int, not True"),
        ("heads", [0, "4"], "must be tuple[int, ...], not (0, '4')"),
        ("dropout", "0", "must be float"),
        ("symbols", "abc", "tuple[str, ...]"),
        ("recurrence", [], "no object of fields"),
        ("convolutions", [3], "no object of fields"),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(place: str, value: Any, named: str) -> None:
    with pytest.raises(NearfutureError, match=re.escape(named)):
        RecognizerConfig.from_json({**RecognizerConfig().to_json(), place: value})
