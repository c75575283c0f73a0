"""Padding: aborted audits, a culprit far behind the entry, and two questions asked as one."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nearfuture import audit


def features(frames: int = 48, rows: int = 2) -> Tensor:
    return torch.randn(rows, frames, 4, generator=torch.Generator().manual_seed(0))


def inside(x: Tensor, lengths: Tensor) -> Tensor:
    return torch.arange(x.shape[1]) < lengths[:, None]


class MaskedToTheLongest(nn.Module):
    """A mask as wide as the longest row, which a short row alone does not fit."""

    def __init__(self, *, leaks: bool = False) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 4, batch_first=True, bidirectional=leaks)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        return self.rnn(x * mask[..., None])[0] * mask[..., None]


class PackedToTheLongest(nn.Module):
    """Packs, and unpacks to the longest row of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(4, 4, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]


class OneLength(nn.Module):
    """Positions for 48 frames: no row can be without its padding."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(48, 4))

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = (x + self.positions) * inside(x, lengths)[..., None]
        return x.cumsum(1)


@pytest.mark.parametrize(
    "model",
    [MaskedToTheLongest(), PackedToTheLongest(), OneLength()],
    ids=lambda m: type(m).__name__,
)
def test_a_short_row_stands_beside_one_of_full_length(model: nn.Module) -> None:
    report = audit.model(model, features(), lengths=[48, 29])
    assert report.verdict == "holds"
    assert "whether the content of the padding changes anything" in report.checked


def test_a_leak_behind_such_a_mask_is_found() -> None:
    report = audit.model(MaskedToTheLongest(leaks=True), features(), lengths=[48, 29])
    assert [finding.kind for finding in report.findings] == ["padding"]
    assert "zeros follow it" in report.findings[0].message


class Block(nn.Module):
    """Attention that ignores padding, then a depthwise convolution that does not."""

    def __init__(self, *, masked: bool = False) -> None:
        super().__init__()
        self.a = nn.MultiheadAttention(4, 2, batch_first=True)
        self.c = nn.Conv1d(4, 4, 3, padding=1, groups=4)
        self.masked = masked

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        x = x + self.a(x, x, x, key_padding_mask=padding, need_weights=False)[0]
        if self.masked:
            x = x.masked_fill(padding[..., None], 0)
        return x + self.c(x.transpose(1, 2)).transpose(1, 2)


class Blocks(nn.Module):
    def __init__(self, *masked: bool) -> None:
        super().__init__()
        self.l = nn.ModuleList(Block(masked=each) for each in masked)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        padding = ~inside(x, lengths)
        for layer in self.l:
            x = layer(x, padding)
        return x


class BiasBeforeConvolution(nn.Module):
    """Masks the input, then adds a bias, which a convolution over time spreads (a Conformer)."""

    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Conv1d(4, 4, 1)
        self.depthwise = nn.Conv1d(4, 4, 5, padding=2, groups=4)
        self.later = nn.Conv1d(4, 4, 3, padding=1)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        mask = inside(x, lengths)[:, None]
        x = x.transpose(1, 2) * mask
        x = self.later(self.depthwise(self.expand(x)))
        return (x * mask).transpose(1, 2)


class Mean(nn.Module):
    """Divides by the padded length."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = self.body(x) * inside(x, lengths)[..., None]
        return self.head(x - x.mean(1, keepdim=True))


@pytest.mark.parametrize(
    ("model", "where", "operation"),
    [
        (Blocks(False, False), "l.0.c", "conv1d"),
        (Blocks(True, False), "l.1.c", "conv1d"),
        (BiasBeforeConvolution(), "depthwise", "conv1d"),
        (Mean(), "", "mean"),
    ],
)
def test_the_culprit_is_where_padding_enters(model: nn.Module, where: str, operation: str) -> None:
    report = audit.model(model, features(), lengths=[48, 29])
    places = {
        (finding.culprit.where, finding.culprit.operation)
        for finding in report.findings
        if finding.kind == "padding" and finding.culprit
    }
    assert places == {(where, operation)}


def test_content_and_amount_are_two_findings() -> None:
    def convolved(x: Tensor, lengths: Tensor) -> Tensor:  # zeros are what the border is padded with
        return F.conv1d(x.transpose(1, 2), torch.ones(4, 4, 3), padding=1).transpose(1, 2)

    report = audit.model(convolved, features(), lengths=[48, 29])
    (finding,) = report.findings
    assert finding.evidence["aspect"] == "content"
    assert "whether the amount of zero padding changes anything" in report.checked
    report = audit.model(BiasBeforeConvolution(), features(), lengths=[48, 29])
    assert [finding.evidence["aspect"] for finding in report.findings] == ["amount"]
    report = audit.model(Blocks(False, False), features(), lengths=[48, 29])
    assert {finding.evidence["aspect"] for finding in report.findings} == {"content", "amount"}


@pytest.mark.parametrize("takes", ["mask", "padding_mask", "lengths"])
@pytest.mark.parametrize("right", [True, False])
def test_padding_may_stand_on_the_left(takes: str, right: bool) -> None:
    class SumSoFar(nn.Module):
        def forward(self, x: Tensor, argument: Tensor) -> Tensor:
            mask = argument
            if takes == "lengths":
                start = x.shape[1] - argument[:, None] if not right else 0 * argument[:, None]
                place = torch.arange(x.shape[1])
                mask = (place >= start) & (place < start + argument[:, None])
            elif takes == "padding_mask":
                mask = ~argument
            return (x * mask[..., None]).cumsum(1)

    side = "right" if right else "left"
    report = audit.model(SumSoFar(), features(), lengths=[48, 29], takes=takes, padding=side)
    assert report.verdict == "holds", report
    assert "whether the content of the padding changes anything" in report.checked


def test_a_leak_from_padding_on_the_left_is_found() -> None:
    def summed(x: Tensor, mask: Tensor) -> Tensor:
        return x.cumsum(1)

    report = audit.model(summed, features(), lengths=[48, 29], takes="mask", padding="left")
    (finding,) = report.findings
    assert (finding.kind, finding.evidence["aspect"]) == ("padding", "content")
    assert finding.culprit is not None
    assert finding.culprit.operation == "cumsum"
