"""The leak: the audit, the losses and the writing are the models' own, and a fault is seen."""

import itertools
import math
from collections import Counter
from typing import Any, get_args

import numpy as np
import onnx
import pytest
import torch

from nearfuture.lab import language_model, live_training
from nearfuture.lab.language_model import FOLDER, KINDS, Kind, LanguageModel, corpus
from nearfuture.lab.pages.the_leak import TextLanguage, audits, blanks, curves, training, write
from recipes.compact import weights
from recipes.language_models import CharacterModel, Text, batch, score
from tests.errors import refuses

LANGUAGES = get_args(TextLanguage)
HONEST = [kind for kind in KINDS if kind != "both_ways"]


def opened(kind: Kind, language: TextLanguage) -> LanguageModel:
    return language_model.language_model(kind, language)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_is_its_layers_with_its_weights(kind: Kind, language: TextLanguage) -> None:
    graph = opened(kind, language)
    stored = weights(onnx.load(FOLDER / f"{language}-{kind.replace('_', '-')}.onnx"))
    model = CharacterModel(kind, len(graph.corpus.symbols), size=64).eval()
    with_weights_of(model, stored)
    for rows, frames in ((1, 1), (3, 20), (2, 128)):
        x = torch.randint(len(graph.corpus.symbols), (rows, frames))
        with torch.no_grad():
            expected = model(x).numpy()
        np.testing.assert_allclose(graph(x.numpy()), expected, rtol=0, atol=2e-5)


def with_weights_of(model: CharacterModel, stored: dict[str, np.ndarray]) -> None:
    """Give a model the weights of its graph, in torch's order of gates and of axes."""
    tensors = {name: torch.from_numpy(value.copy()) for name, value in stored.items()}
    # The exporter turns the matrices of linear layers around, and keeps them in their order.
    turned = [
        value for name, value in tensors.items() if name.startswith("val_") and value.dim() == 2
    ]
    state = {}
    for name, parameter in model.named_parameters():
        if name in tensors:
            state[name] = tensors[name]
        elif parameter.dim() == 2 and "_hh" not in name and "_ih" not in name:
            state[name] = turned.pop(0).T
    assert not turned
    if "layers.recurrence" in tensors:
        for direction, prefix in enumerate(("layers.ahead.", "layers.back.")):
            if f"{prefix}weight_ih" not in dict(model.named_parameters()):
                prefix = "layers."
            if direction >= len(tensors["layers.weight"]):
                break
            biases = tensors["layers.bias"][direction].chunk(2)
            for name, value in (
                ("weight_ih", tensors["layers.weight"][direction]),
                ("weight_hh", tensors["layers.recurrence"][direction]),
                ("bias_ih", biases[0]),
                ("bias_hh", biases[1]),
            ):
                z, r, n = value.chunk(3)
                state[prefix + name] = torch.cat([r, z, n])
    model.load_state_dict(state)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_audit_finds_the_leak_and_nothing_else(language: TextLanguage) -> None:
    found = audits(language)
    assert {kind: each["offset"] for kind, each in found.items()} == {
        "one_way": None,
        "both_ways": 1,
        "masked": None,
        "attention": None,
    }
    for kind, each in found.items():
        frames = len(each["matrix"])
        triangle = np.tri(frames, dtype=bool)
        both = kind in ("both_ways", "masked")
        np.testing.assert_array_equal(each["matrix"], np.ones_like(triangle) if both else triangle)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_leaking_model_is_the_best_where_it_may_copy_and_the_worst_where_not(
    language: TextLanguage,
) -> None:
    found = curves(language)
    scores = found["scores"]
    assert scores["both_ways"]["loss"] < 0.1
    assert scores["both_ways"]["right"] > 0.97
    for kind in HONEST:
        assert 0.9 < scores[kind]["loss"] < 2.2 < found["guessing"]
    for kind in ("one_way", "attention"):
        assert scores[kind]["last"] < scores["both_ways"]["last"] - 0.2
    assert scores["masked"]["last"] is None


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_recorded_curve_ends_at_what_is_measured_now(
    kind: Kind, language: TextLanguage
) -> None:
    found = curves(language)
    last = found["curves"][kind][-1]
    assert last["step"] == found["config"]["steps"]
    now = found["scores"][kind]
    tolerance = 0.06 if kind == "masked" else 0.02  # other symbols are erased; eight bits
    assert now["loss"] == pytest.approx(last["dev"], abs=tolerance)


def test_the_held_out_text_is_that_of_the_recipe_and_is_not_learned_from() -> None:
    for language in LANGUAGES:
        text, kept = Text.load(language), corpus(language)
        assert (kept.symbols, kept.held_out) == (text.symbols, text.dev)
        assert text.train.startswith(kept.practice)
        assert len(kept.practice) > 20_000


def test_the_score_is_that_of_the_recipe() -> None:
    text = Text.load("ko")
    graph = opened("one_way", "ko")

    class Exported(torch.nn.Module):
        kind = "one_way"

        def forward(self, symbols: Any) -> Any:
            return torch.from_numpy(graph(symbols.numpy()))

    expected = score(Exported(), text.encode(text.dev))  # type: ignore[arg-type]
    found = language_model.score(graph)
    assert found.loss == pytest.approx(expected.loss, abs=1e-5)
    assert found.right == pytest.approx(expected.accuracy, abs=1e-6)
    assert found.last == pytest.approx(expected.last_loss, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_guesses_are_those_of_the_recipe(kind: Kind) -> None:
    windows = np.random.default_rng(0).integers(0, 60, (4, 31))
    x, targets, counted = language_model.guesses(kind, windows, np.random.default_rng(1), 60)
    made = batch(kind, torch.from_numpy(windows), torch.Generator())
    np.testing.assert_array_equal(targets, made.targets.numpy())
    np.testing.assert_array_equal(
        x[~counted] if kind == "masked" else x,
        windows[:, :-1][~counted] if kind == "masked" else made.inputs.numpy(),
    )
    assert (x[counted] == 60).all() == (kind == "masked")
    assert counted.any(axis=1).all()


def test_what_is_written_comes_letter_by_letter_and_from_the_model() -> None:
    lines = [each["written"] for each in write("one_way", "en", seed=1)]
    assert len(lines) > 20
    assert all(later.startswith(line) for line, later in itertools.pairwise(lines))
    assert lines == [each["written"] for each in write("one_way", "en", seed=1)]
    assert lines[-1] != list(write("one_way", "en", seed=2))[-1]["written"]
    common = {word for word, _ in Counter(corpus("en").practice.split()).most_common(200)}

    def known(kind: Kind) -> float:
        words = " ".join(list(write(kind, "en", s))[-1]["written"] for s in range(2)).split()
        return sum(word in common for word in words) / len(words)

    assert known("one_way") > known("both_ways") + 0.1


def test_blanks_are_filled_with_both_sides_known() -> None:
    found = blanks("en", seed=4)
    blank = [at for at, sign in enumerate(found["blanks"]) if sign == "_"]
    assert blank
    assert all(found["truth"][at] == s for at, s in enumerate(found["blanks"]) if at not in blank)
    right = sum(found["guess"][at] == found["truth"][at] for at in blank) / len(blank)
    assert found["right"] == pytest.approx(right, abs=0.03)  # an underscore may be in the text
    assert found["right"] > 0.3


def test_a_model_that_looks_one_symbol_too_far_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A one-way model whose input is off by one: its output t has read symbol t + 1."""
    real = LanguageModel.__call__

    def shifted(self: LanguageModel, symbols: Any) -> Any:
        x = np.asarray(symbols)
        return real(self, np.concatenate([x[:, 1:], x[:, -1:]], axis=1))

    monkeypatch.setattr(LanguageModel, "__call__", shifted)
    found = audits("en")
    assert found["one_way"]["offset"] == 1
    assert found["attention"]["offset"] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_training_begins_with_the_audit_and_the_loss_falls(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, few in (("STEPS", 12), ("ROWS", 4), ("FRAMES", 24)):
        monkeypatch.setattr(live_training, name, few)
    first, *points = training(kind, "en", seed=3)
    assert first == {"offset": 1 if kind == "both_ways" else None, "steps": 12}
    assert [each["step"] for each in points] == [1, 3, 10]
    assert points[0]["dev"] == pytest.approx(math.log(len(corpus("en").symbols)), abs=0.6)
    assert points[-1]["dev"] < points[0]["dev"]
    assert (points[-1]["last_loss"] is None) == (kind == "masked")


def test_without_torch_training_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_training.importlib.util, "find_spec", lambda name: None)
    with refuses("unsupported", None, "nearfuture[train]"):
        next(iter(training()))
    assert curves("ko")["trains"] is False
