"""Attention layers: what they wait for and cost, against the layers themselves."""

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from nearfuture.budget import AttentionConfig, RecognizerConfig, attention_cost, small_conformer
from nearfuture.layers import ChunkedMask, SelfAttention
from nearfuture.model import Recognizer
from tests.errors import refuses

TRANSFORMER: dict[str, Any] = {"block": "transformer", "kernel": None}
NARROW: dict[str, Any] = {"hidden": 8, "layers": 2, "attention_heads": 2}


def test_attention_costs_what_the_layer_costs() -> None:
    layer = SelfAttention(8, 2, mask=ChunkedMask(chunk=1, left_chunks=5)).eval()
    cost = attention_cost(8, keys=6)
    assert cost.parameters == sum(parameter.numel() for parameter in layer.parameters())
    # Of six frames offline each sees all six, masked or not.
    with FlopCounterMode(display=False) as counter:
        layer(torch.zeros(1, 6, 8), torch.tensor([6]))
    assert counter.get_total_flops() == 6 * cost.flops_per_frame


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"chunk": 1},
        {"chunk": 3, "right_context": 1},
        {"chunk": 2, "right_context": 3, "kernel": 1},
        {"left_chunks": 0, "expansion": 3},
        {**TRANSFORMER, "right_context": 1},
    ],
    ids=str,
)
def test_a_model_costs_and_waits_for_what_its_configuration_says(change: dict[str, Any]) -> None:
    config = small_conformer().replace(**NARROW, **change)
    for each in (config, config.twin()):
        model = Recognizer(each)
        expected = sum(cost.parameters for _, cost in each.costs(each.lookaheads[-1]))
        assert sum(parameter.numel() for parameter in model.parameters()) == expected
        for tau in each.lookaheads:
            field = model.at(tau).field
            assert each.latency(tau).worst_ms == (field.right + 1) / 8
            assert each.attention is not None
            # In spectra, of which four are a frame.
            assert model.encoder.field.left == 4 * each.attention.field.left


def test_the_first_frame_of_a_chunk_waits_for_the_others() -> None:
    config = small_conformer()
    items = {item.name: (item.ms, item.mean_ms) for item in config.latency(5).items}
    assert items["block wait (conformer layers)"] == (3 * 40, 1.5 * 40)
    assert config.replace(chunk=1).latency(0).worst_ms == 55
    # A frame of the next chunk exists when that is complete: each of the other layers waits for it.
    ahead = config.replace(right_context=1).latency(0)
    assert {item.name: item.ms for item in ahead.items} == {
        "window": 25,
        "stack": 30,
        "conformer layers": 5 * 40,
        "block wait (conformer layers)": 5 * 120,
    }


def test_what_a_block_sees_adds_up() -> None:
    field = AttentionConfig(layers=2, chunk=4, left_chunks=3, kernel=5).field
    assert (field.emitted(7), field.emitted(8), field.total(7)) == (4, 8, 7)
    # Output 3: its convolution reads from -1, whose chunk begins at -4 and sees from -16; there the
    # convolution below reads from -20, where a chunk begins, which sees from -32.
    assert field.left == 3 + 32


def test_its_cost_grows_with_what_it_sees() -> None:
    near, far = (AttentionConfig(left_chunks=n).cost().flops_per_frame for n in (1, 2))
    assert far - near == 4 * 96 * 4
    assert AttentionConfig(left_chunks=1).cost().parameters == AttentionConfig().cost().parameters


def test_a_configuration_says_which_layers_it_has() -> None:
    config = small_conformer()
    values = config.to_json()
    assert "recurrence" not in values
    assert "attention" not in RecognizerConfig().to_json()
    assert RecognizerConfig.from_json(values) == config
    twin = config.twin()
    assert RecognizerConfig.from_json(twin.to_json()) == twin
    assert (twin.heads, twin.bidirectional, config.bidirectional) == ((), True, False)
    assert twin.encoder.layers == config.encoder.layers


@pytest.mark.parametrize(
    ("fields", "code", "parameter", "named"),
    [
        ({"hidden": 0}, "out_of_range", "hidden", "not 0"),
        ({"chunk": 0}, "out_of_range", "chunk", "not 0"),
        ({"left_chunks": -1}, "out_of_range", "left_chunks", "not -1"),
        ({"right_context": -1}, "out_of_range", "right_context", "not -1"),
        ({"attention_heads": 5}, "out_of_range", "attention_heads", "multiple of 10"),
        ({"block": "mlp"}, "invalid", "block", "'mlp'"),
        ({"block": "transformer"}, "conflict", "kernel", "kernel=9"),
        ({"kernel": None}, "conflict", "kernel", "kernel=None"),
        ({"chunk": None}, "conflict", "left_chunks", "no effect"),
        ({"chunk": None, "heads": ()}, "conflict", "left_chunks", "left_chunks=6"),
        ({"chunk": None, "left_chunks": 0}, "conflict", "heads", "waits for what is already"),
        ({"heads": ()}, "invalid", "heads", "at least one"),
        ({"batch_norm": True}, "conflict", "batch_norm", "layer norms"),
        ({"projection": False}, "conflict", "projection", "projection=True"),
        ({"cell": "gru"}, "conflict", "cell", "attention layers"),
        ({"attention": None}, "conflict", "attention", "set one of"),
    ],
)
def test_what_makes_no_model_is_refused_by_name(
    fields: dict[str, Any], code: str, parameter: str, named: str
) -> None:
    with refuses(code, parameter, named):
        small_conformer().replace(**fields)


def test_both_kinds_of_layers_are_refused() -> None:
    with refuses("conflict", "attention", "set one of"):
        RecognizerConfig(attention=AttentionConfig())
    with refuses("conflict", "chunk", "recurrent layers"):
        RecognizerConfig().replace(chunk=4)
