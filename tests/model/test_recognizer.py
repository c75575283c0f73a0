"""The acoustic model: its configuration, its heads together and apart, streamed and whole."""

import dataclasses
import json
import math
import random
from typing import Any

import pytest
import torch
from torch import Tensor

from nearfuture import laws
from nearfuture.budget import ConvolutionShape, algorithmic_latency
from nearfuture.error import NearfutureError, NotStreamable
from nearfuture.laws.stream import single_frames, streamed, whole
from nearfuture.layers import StreamingLayer
from nearfuture.model import Recognizer, RecognizerConfig, small, tiny
from tests.laws.cuts import random_partition

SMALL = RecognizerConfig(symbols=tuple("abc"), hidden=6, layers=2, frames=(0, 2, 5), dropout=0.0)
# Windows of 8 samples, so that a receptive field is a matter of 30 of them.
MINUTE = RecognizerConfig(
    symbols=tuple("ab"),
    rate=1000,
    window_ms=8.0,
    hop_ms=4.0,
    mel_bins=2,
    stack=2,
    hidden=3,
    layers=1,
    frames=(0, 2),
    dropout=0.0,
)
# Deep Speech 2 in all but size.
PLAIN = dataclasses.replace(
    MINUTE,
    mel_bins=None,
    stack=1,
    convolutions=(
        ConvolutionShape(kernel=3, stride=2, channels=2, band_kernel=3, band_stride=2),
        ConvolutionShape(kernel=3, stride=2, channels=2, band_kernel=3, causal=True),
    ),
    batch_norm=True,
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


@pytest.mark.parametrize("config", [SMALL, SMALL.twin(), MINUTE, PLAIN, tiny(), small()])
def test_a_configuration_survives_json(config: RecognizerConfig) -> None:
    again = RecognizerConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert again == config
    assert hash(again) == hash(config)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"symbols": ["a"], "width": 3, "depth": 1}, "no option depth, width"),
        ({}, "symbols"),
        ({"symbols": ["a"], "frames": []}, "needs a lookahead head"),
        ({"symbols": ["a"], "bidirectional": True}, "has seen the whole future already"),
        ({"symbols": ["a"], "cell": "elman"}, "one of rnn, gru, lstm, not 'elman'"),
    ],
)
def test_a_configuration_that_is_none_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        RecognizerConfig.from_json(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"symbols": ("a", "a")}, "twice"),
        ({"symbols": ("ab",)}, "one character"),
        ({"frames": (0, 0)}, "different numbers of frames"),
        ({"frames": (0, -1)}, "different numbers of frames"),
        ({"rate": 11025}, "whole samples"),
    ],
)
def test_a_model_that_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        Recognizer(dataclasses.replace(SMALL, **change))


def test_frames_stand_for_40_ms() -> None:
    assert small().frame_ms == 40.0


# Heads


@pytest.mark.parametrize("config", [SMALL, SMALL.twin()], ids=["streaming", "twin"])
def test_heads_together_are_heads_alone(config: RecognizerConfig) -> None:
    model = made(config)
    x, lengths = heard(3, 5000), torch.tensor([5000, 3210, 100])
    together, counts = model(*model.features(x, lengths))
    heads: tuple[int | None, ...] = config.frames or (None,)
    assert len(together) == len(heads)
    for head, expected in zip(heads, together, strict=True):
        y, n = model.at(head)(x, lengths)
        assert n.tolist() == counts.tolist() == [15, 9, 0]
        torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)
        valid = y[0].exp().sum(-1)
        torch.testing.assert_close(valid, torch.ones_like(valid))
    if len(together) > 1:
        assert not torch.allclose(together[0], together[1])


@pytest.mark.parametrize("tau", SMALL.frames)
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


@pytest.mark.parametrize("tau", MINUTE.frames)
def test_the_laws_of_a_head(tau: int) -> None:
    laws.check(lambda: Recognizer(MINUTE).at(tau))


# The cells by themselves obey the laws in tests/laws: what stands around them is the same.
@pytest.mark.parametrize(
    "cell", ["gru", *(pytest.param(cell, marks=pytest.mark.slow) for cell in ("rnn", "lstm"))]
)
def test_the_laws_of_deep_speech_2(cell: Any) -> None:
    config = dataclasses.replace(PLAIN, cell=cell)
    others = [law for law in laws.ALL if law is not laws.declared_is_measured]
    laws.check(made(config).at(2), others)
    laws.check(made(config.twin()).at(None), others)


def test_the_field_of_deep_speech_2_is_measured() -> None:
    layer = made(PLAIN).at(2)
    # A window, its 3 frames around, then 2 on the left in steps of 8 samples, then the lookahead.
    assert (layer.field.stride, layer.field.right) == (16, 7 + 4 + 2 * 16)
    laws.declared_is_measured(layer, frames=100)


def test_the_laws_of_the_twin() -> None:
    def twin() -> StreamingLayer:
        return Recognizer(MINUTE.twin()).at(None)

    laws.check(twin)


def test_the_twin_does_not_stream() -> None:
    layer = made(SMALL.twin()).at(None)
    with pytest.raises(NotStreamable, match="whole sequence"):
        layer.start(1)


@pytest.mark.parametrize("method", ["at", "links"])
@pytest.mark.parametrize(
    ("config", "tau", "message"),
    [
        (SMALL, None, "lookahead of 0, 2, 5 frames, not None"),
        (SMALL, 4, "lookahead of 0, 2, 5 frames, not 4"),
        (SMALL.twin(), 0, "bidirectional"),
    ],
)
def test_a_head_that_is_not_there(
    method: str, config: RecognizerConfig, tau: int | None, message: str
) -> None:
    with pytest.raises(NearfutureError, match=message):
        getattr(Recognizer(config), method)(tau)


@pytest.mark.parametrize("samples", [0, 1, 199, 200, 439, 440, 760])
def test_recordings_too_short_for_a_frame_have_none(samples: int) -> None:
    for config in (SMALL, SMALL.twin()):
        model = made(config)
        outputs, counts = model(*model.features(heard(2, samples), torch.tensor([samples, 0])))
        assert counts.tolist() == [int(samples >= 440) + int(samples >= 760), 0]
        for head, output in zip(config.frames or (None,), outputs, strict=True):
            y, n = model.at(head)(heard(2, samples), torch.tensor([samples, 0]))
            assert n.tolist() == counts.tolist()
            assert y.shape == output.shape


# Budgets


def test_the_latency_of_every_head() -> None:
    model = Recognizer(dataclasses.replace(small(), hidden=4))
    found = {}
    for tau in (0, 4, 8, 19):
        latency = algorithmic_latency(model.links(tau), rate=8000)
        found[tau] = latency.worst_ms
        assert latency.worst_ms * 8 == model.at(tau).field.right + 1
        assert latency.frame_ms == 40
    assert found == {0: 55, 4: 215, 8: 375, 19: 815}
    items = algorithmic_latency(model.links(8), rate=8000).items
    assert [(item.name, item.ms) for item in items] == [
        ("window", 25),
        ("stack", 30),
        ("lookahead", 320),
    ]


def test_the_twin_waits_for_the_end() -> None:
    latency = algorithmic_latency(Recognizer(MINUTE.twin()).links(None), rate=1000)
    assert latency.worst_ms == math.inf
    assert latency.within(1234) == 1234


def test_the_twin_has_the_same_width_and_depth() -> None:
    twin = small().twin()
    assert (twin.hidden, twin.layers) == (small().hidden, small().layers)
    assert (twin.frames, twin.bidirectional) == ((), True)
    assert dataclasses.replace(twin, frames=small().frames, bidirectional=False) == small()


def test_only_statistics_and_weights_are_stored() -> None:
    names = set(Recognizer(MINUTE).state_dict())
    assert {"features.mean", "features.scale"} <= names
    assert not {"features.basis", "features.filters"} & names
