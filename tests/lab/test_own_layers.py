"""Layers that somebody types are parsed, never evaluated, and measured as any others."""

import builtins
from typing import Any

import pytest

from nearfuture.lab import own_layers
from nearfuture.lab.own_layers import INPUT, MOST, WORDS, parse
from nearfuture.lab.pages import who_looks_at_whom
from nearfuture.lab.refusal import Refusal


@pytest.mark.parametrize(
    ("stack", "lookahead"),
    [
        ("gru 8, lookahead 2, attention 4", 2),
        ("lookahead 2, gru, lookahead 3", 5),
        ("rnn 3, lstm 5", 0),
        ("convolution 2 1, attention 3 2", 3),
        ("gru, bidirectional 2", None),
        ("Chunks 4 1", 3),
    ],
)
def test_a_stack_is_measured_and_is_what_it_declares(stack: str, lookahead: int | None) -> None:
    found = who_looks_at_whom.own(stack)
    assert found["agree"]
    ahead = found["measured"].shape[0] - 1 if lookahead is None else lookahead
    assert found["farthest"] == ahead


def test_a_layer_reads_as_many_values_as_the_one_below_writes() -> None:
    layers = parse("gru 8, lookahead 2, attention 4, lstm 3, rnn")
    assert [layer.width for layer in layers] == [INPUT, 8, 8, 8, 3]
    assert parse("gru 8") == parse("gru 8 ,")


@pytest.mark.parametrize(
    ("stack", "key"),
    [
        ("", "stack-size"),
        (", ,", "stack-size"),
        (", ".join(["gru"] * (MOST + 1)), "stack-size"),
        ("__import__('os')", "stack-word"),
        ("gru lookahead", "stack-number"),
        ("gru 17", "stack-number"),
        ("gru 0", "stack-number"),
        ("lookahead -1", "stack-number"),
        ("lookahead 1_0", "stack-number"),
        ("lookahead ２", "stack-number"),
        ("lookahead 2.5", "stack-number"),
        ("lookahead 1 2", "stack-numbers"),
    ],
)
def test_what_is_no_layer_is_refused_by_name(
    stack: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def evaluated(*_: Any) -> None:
        raise AssertionError("a text of a user was evaluated")

    monkeypatch.setattr(builtins, "eval", evaluated)
    with pytest.raises(Refusal) as raised:
        parse(stack)
    assert raised.value.key == key


@pytest.mark.parametrize("word", WORDS)
def test_every_word_works_with_its_defaults_and_at_its_limits(word: str) -> None:
    limits = WORDS[word].numbers
    for numbers in ((), [low for low, _, _ in limits], [high for _, high, _ in limits]):
        (layer,) = parse(" ".join([word, *map(str, numbers)]))
        assert layer.field.right >= 0


def test_a_layer_that_looks_too_far_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is measured: what it declares alone would not show a wrong layer."""
    monkeypatch.setattr(
        own_layers.TorchLayer, "field", property(lambda self: parse("lookahead 1")[0]._layer.field)
    )
    found = who_looks_at_whom.own("lookahead 2")
    assert found["lookahead"] == 2
    assert not found["agree"]


def test_without_torch_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(who_looks_at_whom, "available", lambda: False)
    assert not who_looks_at_whom.installed()["torch"]
    with pytest.raises(Refusal) as raised:
        who_looks_at_whom.own("gru")
    assert raised.value.key == "no-torch"
