"""Named recognisers: as large, as slow and as expensive as their plans of the same names."""

import dataclasses
from typing import Any

import pytest
import torch
from torch import nn

from nearfuture.budget import algorithmic_latency, presets
from nearfuture.error import NearfutureError
from nearfuture.layers import (
    GRU,
    RNN,
    Bidirectional,
    Convolution2d,
    Pointwise,
    Recurrent,
    SequenceBatchNorm,
    Serial,
)
from nearfuture.model import (
    PRESETS,
    Recognizer,
    RecognizerConfig,
    deep_speech_2_deployed,
    deep_speech_2_research,
)

LARGE = ("deep-speech-2-research", "deep-speech-2-deployed")


def built(config: RecognizerConfig) -> Recognizer:
    """Without its weights, where they would fill the memory."""
    with torch.device("meta" if config.mel_bins is None else "cpu"):
        return Recognizer(config)


@pytest.mark.parametrize("name", PRESETS)
def test_a_plan_counts_the_frames_of_a_recording_as_the_model_does(name: str) -> None:
    config = PRESETS[name]()
    model, plan = built(config), config.blueprint()
    field = Serial(model.features, model.encoder).field
    for samples in range(0, 3 * config.rate // 10, 7):
        assert plan.frames_in(samples / config.rate) == field.total(samples)


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def variants() -> dict[str, RecognizerConfig]:
    found = {name: preset() for name, preset in PRESETS.items()}
    found |= {f"{name}, causal": PRESETS[name](causal=True) for name in LARGE}
    found |= {f"{name}, twin": found[name].twin() for name in PRESETS}
    cells: tuple[Any, ...] = ("rnn", "lstm")
    return found | {f"research, {cell}": deep_speech_2_research(cell=cell) for cell in cells}


def test_the_plans_have_the_same_names_and_sizes() -> None:
    assert list(PRESETS) == list(presets.PRESETS)
    for name, preset in PRESETS.items():
        assert preset().blueprint() == presets.PRESETS[name]()
    for causal in (False, True):
        plan = presets.deep_speech_2_deployed(causal=causal)
        assert deep_speech_2_deployed(causal=causal).blueprint() == plan


@pytest.mark.parametrize("name", variants())
def test_a_model_costs_and_waits_for_what_its_plan_says(name: str) -> None:
    config = variants()[name]
    model, plan = built(config), config.blueprint()
    expected = sum(c.parameters for _, c in plan.costs(max(config.frames, default=None)))
    assert parameters(model) == expected
    for tau in config.frames or (None,):
        latency = algorithmic_latency(model.links(tau), rate=config.rate)
        assert latency == plan.latency(tau)
        assert latency.worst_ms * config.rate / 1000 == model.at(tau).field.right + 1
        assert latency.frame_ms == config.frame_ms == plan.frame_ms == 40
    if config.mel_bins is None:
        assert all(p.is_meta for p in model.parameters())
    else:
        assert expected < (1_500_000 if config.bidirectional else 1_000_000)


def test_deep_speech_2_as_deployed() -> None:
    model = built(deep_speech_2_deployed())
    layers = list(model.encoder)
    kinds = [type(layer) for layer in layers]
    front = [Convolution2d, SequenceBatchNorm, Pointwise]
    assert kinds == [*front, *front, *[GRU] * 5]
    assert all(layer.norm is not None for layer in layers if isinstance(layer, GRU))
    assert [layer.output_size for layer in layers[6:]] == [2560] * 5
    assert layers[6].input_size == 32 * 41
    assert parameters(model.lookahead) == 51_200  # type: ignore[arg-type]
    assert algorithmic_latency(model.links(19), rate=16000).worst_ms == 930
    causal = built(deep_speech_2_deployed(causal=True))
    assert algorithmic_latency(causal.links(19), rate=16000).worst_ms == 780


@pytest.mark.parametrize("cell", ["gru", "rnn"])
def test_deep_speech_2_as_studied(cell: Any) -> None:
    model = built(deep_speech_2_research(cell=cell))
    recurrent = [layer for layer in model.encoder if isinstance(layer, Bidirectional)]
    assert len(recurrent) == 7
    for layer in recurrent:
        assert layer.merge == "sum"
        assert layer.ahead.weight_ih is layer.back.weight_ih
        assert layer.ahead.weight_hh is not layer.back.weight_hh
        assert layer.ahead.norm is layer.back.norm is not None
        assert isinstance(layer.ahead, Recurrent)
        if isinstance(layer.ahead, RNN):
            assert layer.ahead.nonlinearity == "clipped_relu"
    assert isinstance(recurrent[0].ahead, RNN if cell == "rnn" else GRU)
    assert model.lookahead is None


def test_a_row_convolution_on_bidirectional_layers_is_refused_with_the_reason() -> None:
    with pytest.raises(NearfutureError, match="has seen the whole future already"):
        dataclasses.replace(deep_speech_2_research(), frames=(19,))


@pytest.mark.parametrize("name", PRESETS)
def test_presets_take_a_vocabulary_of_their_own(name: str) -> None:
    config = PRESETS[name](symbols=("x", "y"))
    assert config.symbols == ("x", "y")
    assert built(config).output.output_size == 3
    assert RecognizerConfig.from_json(config.to_json()) == config
