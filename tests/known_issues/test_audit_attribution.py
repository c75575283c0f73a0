"""The operation that looks ahead was named wrongly where the number of operations depends on T."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nearfuture import audit


def features(frames: int) -> Tensor:
    return torch.randn(1, frames, 4, generator=torch.Generator().manual_seed(0))


class FilledInALoop(nn.Module):
    """A causal mask that a loop over frames fills, and a convolution that looks two ahead."""

    def __init__(self, *, before: bool) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 5, padding=2)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.before = before

    def forward(self, x: Tensor) -> Tensor:
        frames = x.shape[1]
        if self.before:
            x = self.conv(x.transpose(1, 2)).transpose(1, 2)
        mask = torch.ones(frames, frames, dtype=torch.bool)
        for t in range(frames):
            mask[t, : t + 1] = False
        x = x + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]
        if not self.before:
            x = self.conv(x.transpose(1, 2)).transpose(1, 2)
        return x


class StepByStep(nn.Module):
    """A recurrence in Python, and a convolution that looks two ahead."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.conv = nn.Conv1d(4, 4, 5, padding=2)

    def forward(self, x: Tensor) -> Tensor:
        state, outputs = x[:, 0] * 0, []
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
            outputs.append(state)
        return self.conv(torch.stack(outputs, 1).transpose(1, 2)).transpose(1, 2)


@pytest.mark.parametrize("frames", [26, 40])
@pytest.mark.parametrize(
    "model", [FilledInALoop(before=True), FilledInALoop(before=False), StepByStep()]
)
def test_a_convolution_is_named_with_its_own_lookahead(model: nn.Module, frames: int) -> None:
    report = audit.model(model, features(frames), at_most=0)
    assert report.lookahead == 2
    assert [(each.where, each.frames) for each in report.lookahead_sources] == [("conv", 2)]


class OverAllKeys(nn.Module):
    """Linear attention, causal but for a maximum over all keys that keeps exp in range."""

    def __init__(self, dims: Any) -> None:
        super().__init__()
        self.dims = dims
        self.project = nn.Linear(4, 12)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x).chunk(3, dim=-1)
        k = torch.exp(k - torch.amax(k, dim=self.dims, keepdim=True))
        context = (k * v).cumsum(1) / (k.cumsum(1) + 1e-2)
        first, second = (q * context).chunk(2, dim=-1)
        return torch.cat([first, second], dim=-1)


class Stacked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([OverAllKeys((1, 2)), OverAllKeys((1, 2))])
        self.norm = nn.LayerNorm(4)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer(self.norm(x))
        return x


@pytest.mark.parametrize("frames", [4, 6, 8, 12, 13, 24, 36])
@pytest.mark.parametrize(
    ("build", "where"),
    [(lambda: OverAllKeys((1, 2)), ""), (lambda: OverAllKeys(1), ""), (Stacked, "layers.")],
)
def test_a_maximum_over_all_keys_is_named_at_every_length(
    build: Callable[[], nn.Module], where: str, frames: int
) -> None:
    torch.manual_seed(frames)
    report = audit.model(build(), features(frames), at_most=0)
    assert report.lookahead == math.inf
    culprit = report.findings[0].culprit
    assert culprit is not None
    assert culprit.where.startswith(where)
    assert culprit.operation == "amax"
