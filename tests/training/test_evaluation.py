"""Error rates against decoding by hand."""

import itertools

import numpy as np
import pytest
import torch

from nearfuture.budget import RecognizerConfig
from nearfuture.data import Utterance
from nearfuture.model import Recognizer
from nearfuture.training import evaluate
from tests.training.tones import CONFIG, sentences, spoken

SPACED = CONFIG.replace(symbols=(" ", "a", "b", "c", "d"))


def model_of(config: RecognizerConfig, seed: int = 0) -> Recognizer:
    """Random weights, and no liking for the blank, so that there is much to count."""
    torch.manual_seed(seed)
    model = Recognizer(config)
    frames = [model.features(*_alone(one))[0][0] for one in sentences(5)]
    model.features.fit(torch.cat(frames))
    with torch.no_grad():
        model.output.module[-2].weight.mul_(6)  # type: ignore[index,union-attr]
    return model


def _alone(one: Utterance) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(one.samples)[None, :, None], torch.tensor([one.samples.size])


def distance(a: list[str], b: list[str]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def by_hand(model: Recognizer, head: int | None, one: Utterance) -> str:
    model.eval()
    with torch.no_grad():
        y, n = model.at(head)(*_alone(one))
    best = y[0, : int(n)].argmax(-1).tolist()
    symbols = [s for s, _ in itertools.groupby(best) if s]
    return " ".join("".join(model.config.symbols[s - 1] for s in symbols).split())


@pytest.mark.parametrize("config", [CONFIG, SPACED, CONFIG.twin()], ids=["one", "spaced", "twin"])
def test_it_is_decoding_by_hand(config: RecognizerConfig) -> None:
    model, utterances = model_of(config), sentences(9, seed=4)
    found = evaluate(model, utterances, batch_size=4)
    assert tuple(found) == config.lookaheads
    written = set()
    for head, (words, characters) in found.items():
        heard = [by_hand(model, head, one) for one in utterances]
        written |= set(heard)
        pairs = list(zip([one.text for one in utterances], heard, strict=True))
        assert characters.errors == sum(distance(list(a), list(b)) for a, b in pairs)
        assert words.errors == sum(distance(a.split(), b.split()) for a, b in pairs)
        assert characters.reference == sum(len(one.text) for one in utterances)
        assert words.reference == 9
    assert len(written) > 3


@pytest.mark.parametrize("batch_size", [1, 2, 7, 100])
def test_the_batch_size_and_the_order_change_nothing(batch_size: int) -> None:
    model, utterances = model_of(CONFIG), sentences(7)
    expected = evaluate(model, utterances)
    assert evaluate(model, utterances[::-1], batch_size=batch_size) == expected


def test_it_leaves_no_trace_but_the_mode() -> None:
    model = model_of(CONFIG).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    evaluate(model, sentences(3))
    assert not model.training
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())
    assert all(p.grad is None for p in model.parameters())


def test_nothing_and_too_little_to_hear() -> None:
    model = model_of(CONFIG)
    assert {words.reference for words, _ in evaluate(model, []).values()} == {0}
    click = Utterance(name="click", samples=np.zeros(50, np.float32), text="ab")
    nothing = Utterance(name="nothing", samples=np.zeros(0, np.float32), text="")
    for words, characters in evaluate(model, [click, nothing]).values():
        assert (words.deletions, characters.deletions, characters.errors) == (1, 2, 2)
    for words, _ in evaluate(model, [click, nothing, spoken("ab")], batch_size=2).values():
        assert words.reference == 2


def test_a_model_of_another_precision_is_heard_as_it_is() -> None:
    model, utterances = model_of(CONFIG), sentences(5, seed=2)
    expected = evaluate(model, utterances)
    assert evaluate(model.double(), utterances) == expected
