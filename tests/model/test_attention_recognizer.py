"""Recognisers of chunked attention: the laws of their heads, and their heads together."""

from typing import Any

import pytest
import torch
from torch import nn

from nearfuture import laws
from nearfuture.budget import small_conformer
from nearfuture.layers import SelfAttention
from nearfuture.model import Recognizer
from tests.laws.cases import obey_in_explicit_cases

# Windows of 8 samples, as in test_recognizer.
MINUTE = small_conformer(symbols=tuple("ab")).replace(
    rate=1000,
    window_ms=8.0,
    hop_ms=4.0,
    mel_bins=2,
    stack=2,
    hidden=4,
    layers=2,
    attention_heads=1,
    chunk=2,
    left_chunks=1,
    kernel=3,
    expansion=1,
    heads=(0, 2),
    dropout=0.0,
)
TRANSFORMER: dict[str, Any] = {"block": "transformer", "kernel": None}
_QUICK = (laws.any_partition, laws.padding_is_ignored, laws.emission_schedule)


def test_the_laws_of_a_head() -> None:
    obey_in_explicit_cases(lambda: Recognizer(MINUTE).at(2), _QUICK)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [{}, {"right_context": 1}, TRANSFORMER | {"right_context": 1}], ids=str
)
@pytest.mark.parametrize("tau", MINUTE.heads)
def test_all_laws_of_every_head(change: dict[str, Any], tau: int) -> None:
    laws.check(lambda: Recognizer(MINUTE.replace(**change)).at(tau))


@pytest.mark.slow
def test_the_laws_of_the_twin() -> None:
    laws.check(lambda: Recognizer(MINUTE.twin()).at(None))


def test_heads_together_are_heads_alone() -> None:
    torch.manual_seed(0)
    for config in (MINUTE, MINUTE.twin()):
        model = Recognizer(config).double().eval()
        x, lengths = torch.randn(3, 400, 1, dtype=torch.float64), torch.tensor([400, 123, 5])
        together, counts = model(*model.features(x, lengths))
        assert len(together) == len(config.lookaheads)
        for head, expected in zip(config.lookaheads, together, strict=True):
            y, n = model.at(head)(x, lengths)
            assert n.tolist() == counts.tolist()
            torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)


def test_a_batch_trains_every_weight_and_padding_none() -> None:
    torch.manual_seed(0)
    model = Recognizer(MINUTE).train()
    x = torch.full((2, 60, 2), torch.nan)
    x[0], x[1, :31] = torch.randn(60, 2), torch.randn(31, 2)
    heads, counts = model(x, torch.tensor([60, 31]))
    nn.functional.ctc_loss(
        heads[1].transpose(0, 1), torch.tensor([[1, 2], [2, 1]]), counts, torch.tensor([2, 2])
    ).backward()
    # Of the other head's own weights there is no gradient.
    found = {name: p.grad for name, p in model.named_parameters() if name != "lookahead.weights.0"}
    assert all(grad is not None and bool(grad.isfinite().all()) for grad in found.values())
    idle = {name for name, grad in found.items() if grad is not None and not bool(grad.any())}
    assert not idle


def test_the_twin_sees_all_and_has_the_same_weights() -> None:
    model, twin = Recognizer(MINUTE), Recognizer(MINUTE.twin())
    shapes = {name: p.shape for name, p in twin.named_parameters()}
    own = {name: p.shape for name, p in model.named_parameters() if "lookahead" not in name}
    assert shapes == own
    masks = {module.mask for module in twin.modules() if isinstance(module, SelfAttention)}
    assert [mask.field.right for mask in masks] == [float("inf")]
