"""A model that reads features before time was read as one that accepts one length only."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture import audit


@pytest.mark.parametrize(
    ("model", "shape", "layout", "lookahead"),
    [
        (nn.Conv1d(16, 16, 3, padding=1), (1, 16, 100), "NCT", 1),
        (nn.Conv1d(80, 4, 5, padding=2, stride=1), (2, 80, 60), "NCT", 2),
        (
            nn.Sequential(nn.BatchNorm1d(6), nn.ConstantPad1d((2, 0), 0.0), nn.Conv1d(6, 6, 3)),
            (1, 6, 40),
            "NCT",
            0,
        ),
        (nn.Linear(16, 4), (1, 30, 16), "NTC", 0),
    ],
)
def test_the_layout_is_the_one_in_which_lengths_may_change(
    model: nn.Module, shape: tuple[int, ...], layout: str, lookahead: int
) -> None:
    report = audit.model(model, torch.randn(shape), at_most=lookahead)
    assert (report.layout, report.lookahead, report.holds) == (layout, lookahead, True)
    assert ("read as NCT" in " ".join(report.notes[:1])) == (layout == "NCT")


def test_a_layout_that_was_given_is_kept_and_doubted_first() -> None:
    report = audit.model(nn.Conv1d(16, 16, 3, padding=1), torch.randn(1, 16, 100), layout="NTC")
    assert report.layout == "NTC"
    assert "runs on 16 frames only" in report.notes[0]
    assert "`layout` NCT" in report.notes[0]


class Mixer(nn.Module):
    """A forecast from 24 frames, by a linear layer over time: the axes are ambiguous."""

    def __init__(self) -> None:
        super().__init__()
        self.over_time = nn.Linear(24, 24)

    def forward(self, x: Tensor) -> Tensor:
        return self.over_time(x.transpose(1, 2)).transpose(1, 2)


def unnamed(x: Tensor) -> Tensor:
    return F.conv1d(x, torch.ones(16, 16, 3), padding=1)


@pytest.mark.parametrize(("model", "frames"), [(Mixer(), 24), (unnamed, 16)])
def test_where_no_layer_tells_the_report_asks_first(model: Any, frames: int) -> None:
    report = audit.model(model, torch.randn(1, frames, 30))
    assert report.verdict == "undecided"
    assert (report.layout, report.findings[0].kind) == ("NTC", "layout")
    assert f"runs on {frames} frames only" in report.findings[0].message
    assert "did you mean `layout` NCT?" in report.findings[0].message
    broken = audit.model(model, torch.randn(1, frames, 30), at_most=0)
    assert [finding.kind for finding in broken.findings] == ["layout", "future"]
    assert audit.model(model, torch.randn(1, frames, 30), layout="NTC").verdict == "holds"
