"""The acoustic model: its configuration, its heads together and apart, streamed and whole."""

import json
import math
import random
from typing import Any

import pytest
import torch
from torch import Tensor

from nearfuture import laws
from nearfuture.budget import ConvolutionConfig, RecognizerConfig, small, tiny
from nearfuture.error import NearfutureError, NotStreamable
from nearfuture.laws.stream import single_frames, streamed, whole
from nearfuture.layers import StreamingLayer
from nearfuture.model import Recognizer
from tests.errors import refuses
from tests.laws.cases import obey_in_explicit_cases
from tests.laws.cuts import random_partition
from tests.recognizers import PLAIN, recognizer_config

SMALL = recognizer_config(symbols=tuple("abc"), hidden=6, layers=2, heads=(0, 2, 5), dropout=0.0)
# Windows of 8 samples, so that a receptive field is a matter of 30 of them.
MINUTE = recognizer_config(
    symbols=tuple("ab"),
    rate=1000,
    window_ms=8.0,
    hop_ms=4.0,
    mel_bins=2,
    stack=2,
    hidden=3,
    layers=1,
    heads=(0, 2),
    dropout=0.0,
)
# Deep Speech 2 in all but size.
DEEP = MINUTE.replace(
    mel_bins=None,
    stack=1,
    convolutions=(
        ConvolutionConfig(kernel=3, stride=2, channels=2, band_kernel=3, band_stride=2),
        ConvolutionConfig(kernel=3, stride=2, channels=2, band_kernel=3, causal=True),
    ),
    **PLAIN,
)


def made(config: RecognizerConfig, *, seed: int = 0) -> Recognizer:
    torch.manual_seed(seed)
    model = Recognizer(config).double().eval()
    model.features.fit(torch.randn(50, model.features.output_size, dtype=torch.float64) - 4)
    for _ in range(10):  # batch norms, if there are any, are no longer those of a new model
        model.train()(*model.features(heard(3, 400), torch.tensor([400, 333, 250])))
    return model.eval()


def heard(batch: int, samples: int, *, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 0.1 * torch.randn(batch, samples, 1, generator=generator, dtype=torch.float64)


# Configuration


@pytest.mark.parametrize("config", [SMALL, SMALL.twin(), MINUTE, DEEP, tiny(), small()])
def test_a_configuration_survives_json(config: RecognizerConfig) -> None:
    again = RecognizerConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert again == config
    assert hash(again) == hash(config)


@pytest.mark.parametrize(
    ("values", "parameter", "named"),
    [
        ({"symbols": ["a"], "width": 3, "depth": 1}, None, "'depth', 'width'"),
        ({"symbols": ["a"], "features": {"mels": 3}}, None, "FeatureConfig has no field 'mels'"),
        ({}, "symbols", "vocabulary"),
        ({"symbols": ["a"], "heads": []}, "heads", "at least one"),
        (
            {"symbols": ["a"], "recurrence": {"cell": "elman"}},
            "cell",
            "not 'elman'",
        ),
    ],
)
def test_a_configuration_that_is_none_is_refused(
    values: dict[str, Any], parameter: str | None, named: str
) -> None:
    with refuses("invalid", parameter, named):
        RecognizerConfig.from_json(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"symbols": ("a", "a")}, "twice"),
        ({"symbols": ("ab",)}, "one character"),
        ({"mixing": True}, "mixing=True"),
        ({"biases": 1}, "biases=1"),
    ],
)
def test_a_model_that_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        Recognizer(SMALL.replace(**change))


@pytest.mark.parametrize(
    "change",
    [
        {"biases": 0},
        {"projection": False},
        {"residual": False},
        {"layer_norm": False},
        {"output_hidden": False},
        {"heads": (), "bidirectional": True, "merge": "concat"},
        {"heads": (), "bidirectional": True, "share_input": True},
    ],
)
def test_every_size_is_that_of_the_model(change: dict[str, Any]) -> None:
    config = SMALL.replace(**change)
    model = Recognizer(config)
    expected = sum(cost.parameters for _, cost in config.costs(config.lookaheads[-1]))
    assert sum(parameter.numel() for parameter in model.parameters()) == expected
    outputs, n = model(*model.features(heard(1, 2000).float(), torch.tensor([2000])))
    assert outputs[0].shape == (1, n.item(), 4)


def test_frames_stand_for_40_ms() -> None:
    assert small().frame_ms == 40.0


# Heads


@pytest.mark.parametrize("config", [SMALL, SMALL.twin()], ids=["streaming", "twin"])
def test_heads_together_are_heads_alone(config: RecognizerConfig) -> None:
    model = made(config)
    x, lengths = heard(3, 5000), torch.tensor([5000, 3210, 100])
    together, counts = model(*model.features(x, lengths))
    assert len(together) == len(config.lookaheads)
    for head, expected in zip(config.lookaheads, together, strict=True):
        y, n = model.at(head)(x, lengths)
        assert n.tolist() == counts.tolist() == [15, 9, 0]
        torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)
        valid = y[0].exp().sum(-1)
        torch.testing.assert_close(valid, torch.ones_like(valid))
    if len(together) > 1:
        assert not torch.allclose(together[0], together[1])


@pytest.mark.parametrize("tau", SMALL.heads)
def test_streaming_equals_forward(tau: int) -> None:
    layer = made(SMALL, seed=tau).at(tau)
    lengths = [2600, 1999, 519, 0]
    x = heard(4, 2600, seed=tau)
    expected = whole(layer, x, lengths)
    assert [len(row) for row in expected] == [layer.field.total(n) for n in lengths]
    rng = random.Random(tau)
    cuts = [(tuple(lengths),), *(random_partition(lengths, rng) for _ in range(3))]
    for cut in cuts:
        for got, row in zip(streamed(layer, x, cut), expected, strict=True):
            torch.testing.assert_close(got, row, rtol=0, atol=1e-10)


def test_streaming_sample_by_sample_equals_forward() -> None:
    layer, x, lengths = made(SMALL).at(0), heard(2, 900), [900, 761]
    expected = whole(layer, x, lengths)
    assert [len(row) for row in expected] == [2, 2]
    for got, row in zip(streamed(layer, x, single_frames(lengths)), expected, strict=True):
        torch.testing.assert_close(got, row, rtol=0, atol=1e-10)


@pytest.mark.parametrize("tau", MINUTE.heads)
def test_the_laws_of_a_head(tau: int) -> None:
    obey_in_explicit_cases(lambda: Recognizer(MINUTE).at(tau))


@pytest.mark.slow
@pytest.mark.parametrize("tau", [*MINUTE.heads, None])
def test_the_laws_of_a_head_in_drawn_cases(tau: int | None) -> None:
    config = MINUTE.twin() if tau is None else MINUTE
    laws.check(lambda: Recognizer(config).at(tau))


# The cells by themselves obey the laws in tests/laws: what stands around them is the same.
@pytest.mark.parametrize(
    "cell", ["gru", *(pytest.param(cell, marks=pytest.mark.slow) for cell in ("rnn", "lstm"))]
)
def test_the_laws_of_deep_speech_2(cell: Any) -> None:
    config = DEEP.replace(cell=cell)
    others = [law for law in laws.ALL if law is not laws.declared_is_measured]
    obey_in_explicit_cases(made(config).at(2), others)
    obey_in_explicit_cases(made(config.twin()).at(None), others)


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["gru", "rnn", "lstm"])
def test_the_laws_of_deep_speech_2_in_drawn_cases(cell: Any) -> None:
    config = DEEP.replace(cell=cell)
    others = [law for law in laws.ALL if law is not laws.declared_is_measured]
    laws.check(made(config).at(2), others)
    laws.check(made(config.twin()).at(None), others)


def test_the_field_of_deep_speech_2_is_measured() -> None:
    layer = made(DEEP).at(2)
    # A window, its 3 frames around, then 2 on the left in steps of 8 samples, then the lookahead.
    assert (layer.field.stride, layer.field.right) == (16, 7 + 4 + 2 * 16)
    laws.declared_is_measured(layer, frames=100)


def test_the_laws_of_the_twin() -> None:
    def twin() -> StreamingLayer:
        return Recognizer(MINUTE.twin()).at(None)

    obey_in_explicit_cases(twin)


def test_the_twin_does_not_stream() -> None:
    layer = made(SMALL.twin()).at(None)
    with pytest.raises(NotStreamable, match="whole sequence"):
        layer.start(1)


@pytest.mark.parametrize(
    ("config", "tau", "named"),
    [
        (SMALL, None, "lookahead of 0, 2, 5 frames, not None"),
        (SMALL, 4, "lookahead of 0, 2, 5 frames, not 4"),
        (SMALL.twin(), 0, "bidirectional"),
    ],
)
def test_a_head_that_is_not_there(config: RecognizerConfig, tau: int | None, named: str) -> None:
    with refuses("not_found", "lookahead_frames", named):
        Recognizer(config).at(tau)
    with refuses("not_found", "lookahead_frames", named):
        config.latency(tau)


@pytest.mark.parametrize("samples", [0, 1, 199, 200, 439, 440, 760])
def test_recordings_too_short_for_a_frame_have_none(samples: int) -> None:
    for config in (SMALL, SMALL.twin()):
        model = made(config)
        outputs, counts = model(*model.features(heard(2, samples), torch.tensor([samples, 0])))
        assert counts.tolist() == [int(samples >= 440) + int(samples >= 760), 0]
        for head, output in zip(config.lookaheads, outputs, strict=True):
            y, n = model.at(head)(heard(2, samples), torch.tensor([samples, 0]))
            assert n.tolist() == counts.tolist()
            assert y.shape == output.shape


# Budgets


def test_the_latency_of_every_head() -> None:
    config = small().replace(hidden=4)
    model = Recognizer(config)
    found = {}
    for tau in (0, 4, 8, 19):
        latency = config.latency(tau)
        found[tau] = latency.worst_ms
        assert latency.worst_ms * 8 == model.at(tau).field.right + 1
        assert latency.frame_ms == 40
    assert found == {0: 55, 4: 215, 8: 375, 19: 815}
    items = config.latency(8).items
    assert [(item.name, item.ms) for item in items] == [
        ("window", 25),
        ("stack", 30),
        ("lookahead", 320),
    ]


def test_the_twin_waits_for_the_end() -> None:
    latency = MINUTE.twin().latency(None)
    assert latency.worst_ms == math.inf
    assert latency.within(1234) == 1234


def test_the_twin_has_the_same_width_and_depth() -> None:
    twin = small().twin()
    assert (twin.heads, twin.recurrence.bidirectional) == ((), True)
    assert twin.replace(heads=small().heads, bidirectional=False) == small()


def test_only_statistics_and_weights_are_stored() -> None:
    names = set(Recognizer(MINUTE).state_dict())
    assert {"features.mean", "features.scale"} <= names
    assert not {"features.basis", "features.filters"} & names
