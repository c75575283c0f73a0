"""Label leakage is shown before the first training step (FACTS A15)."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nearfuture import audit
from tests.errors import refuses

WORDS = torch.randint(1, 50, (4, 17), generator=torch.Generator().manual_seed(0))


class LanguageModel(nn.Module):
    def __init__(self, *, both_ways: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(51, 8)
        self.rnn = nn.LSTM(8, 6, batch_first=True, bidirectional=both_ways)
        self.head = nn.Linear(12 if both_ways else 6, 51)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.rnn(self.embedding(words))[0])


class Tagger(nn.Module):
    """Takes lengths, and packs."""

    def __init__(self, *, both_ways: bool) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 6, batch_first=True, bidirectional=both_ways)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=x.shape[1])[
            0
        ]


def labels(report: audit.Report) -> list[str]:
    return [finding.message for finding in report.findings if finding.kind == "label"]


def test_a_bidirectional_language_model_reads_its_target() -> None:
    report = audit.labels(LanguageModel(both_ways=True), WORDS[:, :-1], WORDS[:, 1:])
    assert not report.holds
    assert labels(report)[0].startswith(
        "the target of output t is input t + 1, on which 15 of 16 outputs depend"
    )


def test_ignored_targets_hide_nothing() -> None:
    targets = WORDS[:, 1:].clone()
    targets[:, 10:] = -100
    report = audit.labels(LanguageModel(both_ways=True), WORDS[:, :-1], targets)
    assert "seen in 40 targets" in labels(report)[0]
    assert report.findings[0].culprit is not None
    assert report.findings[0].culprit.where == "rnn"


def test_a_causal_language_model_does_not() -> None:
    report = audit.labels(LanguageModel(both_ways=False), WORDS[:, :-1], WORDS[:, 1:])
    assert report.holds
    assert "whether targets can be read from the inputs used" in report.checked


def test_a_target_that_was_not_shifted_is_copied_by_any_model() -> None:
    report = audit.labels(LanguageModel(both_ways=False), WORDS[:, :-1], WORDS[:, :-1])
    assert "the target of output t is input t, on which" in labels(report)[0]
    assert "shift the targets" in labels(report)[0]


def test_a_target_shifted_the_wrong_way_is_known_already() -> None:
    report = audit.labels(LanguageModel(both_ways=False), WORDS[:, 1:], WORDS[:, :-1])
    assert "input t - 1" in labels(report)[0]


def test_a_masked_language_model_may_look_both_ways() -> None:
    erased = torch.rand(WORDS.shape, generator=torch.Generator().manual_seed(1)) < 0.3
    inputs = WORDS.masked_fill(erased, 0)
    model = LanguageModel(both_ways=True)
    assert audit.labels(model, inputs, WORDS, where=erased).holds
    everywhere = audit.labels(model, WORDS, WORDS)
    assert not everywhere.holds


def test_a_forecast_of_an_input_feature() -> None:
    x = torch.randn(3, 20, 4, generator=torch.Generator().manual_seed(0))
    target = x[:, 1:, 2:3]
    both = nn.LSTM(4, 5, batch_first=True, bidirectional=True)
    report = audit.labels(both, x[:, :-1], target)
    assert "input t + 1, feature 2" in labels(report)[0]
    assert audit.labels(nn.LSTM(4, 5, batch_first=True), x[:, :-1], target).holds


def test_counting_the_steps_left() -> None:
    lengths = [20, 15, 11, 18]
    x = torch.randn(4, 20, 3, generator=torch.Generator().manual_seed(0))
    left = torch.tensor([[n - t for t in range(20)] for n in lengths])
    report = audit.labels(Tagger(both_ways=True), x, left, lengths)
    assert "follows from the number of frames that remain" in labels(report)[0]
    assert audit.labels(Tagger(both_ways=False), x, left, lengths).holds
    noise = torch.randint(0, 9, left.shape, generator=torch.Generator().manual_seed(2))
    assert audit.labels(Tagger(both_ways=True), x, noise, lengths).holds


def test_counting_the_frames_passed_is_no_leak() -> None:
    lengths = [20, 15, 11, 18]
    x = torch.randn(4, 20, 3, generator=torch.Generator().manual_seed(0))
    passed = torch.arange(20).expand(4, -1)
    assert audit.labels(Tagger(both_ways=True), x, passed, lengths).holds


@pytest.mark.parametrize(
    ("targets", "where", "parameter", "values"),
    [
        (np.zeros(16), None, "targets", ["(16,)"]),
        (np.zeros((3, 16)), None, "targets", ["4 rows", "(3, 16)"]),
        (np.zeros((4, 9)), None, "targets", ["16 outputs", "9 targets"]),
        (np.zeros((4, 16)), np.ones((4, 3)), "where", ["(4, 3)"]),
    ],
)
def test_targets_that_do_not_fit(
    targets: np.ndarray, where: np.ndarray | None, parameter: str, values: list[str]
) -> None:
    with refuses("invalid", parameter, *values):
        audit.labels(LanguageModel(both_ways=False), WORDS[:, :-1], targets, where=where)
