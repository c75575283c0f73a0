"""Named recognisers: as large, as slow and as expensive as their configurations say."""

from typing import Any

import pytest
import torch
from torch import nn

from nearfuture.budget import (
    PRESETS,
    RecognizerConfig,
    deep_speech_2_deployed,
    deep_speech_2_research,
)
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
from nearfuture.model import Recognizer
from tests.errors import refuses

LARGE = ("deep-speech-2-research", "deep-speech-2-deployed")


def built(config: RecognizerConfig) -> Recognizer:
    """Without its weights, where they would fill the memory."""
    with torch.device("meta" if config.features.mel_bins is None else "cpu"):
        return Recognizer(config)


@pytest.mark.parametrize("name", PRESETS)
def test_a_configuration_counts_the_frames_of_a_recording_as_the_model_does(name: str) -> None:
    config = PRESETS[name]()
    model = built(config)
    field = Serial(model.features, model.encoder).field
    rate = config.features.rate
    for samples in range(0, 3 * rate // 10, 7):
        assert config.frames_in(samples / rate) == field.total(samples)


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def variants() -> dict[str, RecognizerConfig]:
    found = {name: preset() for name, preset in PRESETS.items()}
    found |= {f"{name}, causal": PRESETS[name](causal=True) for name in LARGE}
    found |= {f"{name}, twin": found[name].twin() for name in PRESETS}
    cells: tuple[Any, ...] = ("rnn", "lstm")
    return found | {f"research, {cell}": deep_speech_2_research(cell=cell) for cell in cells}


@pytest.mark.parametrize("name", variants())
def test_a_model_costs_and_waits_for_what_its_configuration_says(name: str) -> None:
    config = variants()[name]
    model, rate = built(config), config.features.rate
    expected = sum(cost.parameters for _, cost in config.costs(config.lookaheads[-1]))
    assert parameters(model) == expected
    for tau in config.lookaheads:
        latency, field = config.latency(tau), model.at(tau).field
        assert latency.worst_ms * rate / 1000 == field.right + 1
        assert field.stride * 1000 / rate == latency.frame_ms == config.frame_ms == 40
    if config.features.mel_bins is None:
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
    with refuses("conflict", "heads", "waits for what is already there"):
        deep_speech_2_research().replace(heads=(19,))


@pytest.mark.parametrize("name", PRESETS)
def test_presets_take_a_vocabulary_of_their_own(name: str) -> None:
    config = PRESETS[name](symbols=("x", "y"))
    assert config.symbols == ("x", "y")
    assert built(config).output.output_size == 3
    assert RecognizerConfig.from_json(config.to_json()) == config
