"""Rounding was called an influence where the input is integers, or where precisions are mixed."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nearfuture import audit


def by_fourier(x: Tensor, kernel: Tensor) -> Tensor:
    """A causal convolution along time, whose rounding depends on all of its input."""
    frames = x.shape[1]
    spectrum = (
        torch.fft.rfft(x, n=2 * frames, dim=1) * torch.fft.rfft(kernel, n=2 * frames)[:, None]
    )
    return torch.fft.irfft(spectrum, n=2 * frames, dim=1)[:, :frames]


class Words(nn.Module):
    """Tokens, then a long convolution."""

    def __init__(self, *, ahead: float = 0.0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 6)
        self.kernel = nn.Parameter(torch.tensor([1.0, 0.5, 0.2]))
        self.ahead = ahead

    def forward(self, x: Tensor) -> Tensor:
        y = by_fourier(self.embedding(x), self.kernel)
        return y + self.ahead * y.roll(-1, 1)


class Mixed(nn.Module):
    """A model in float64 or bfloat16 that computes its transform in float32."""

    def __init__(self, convert: str, dtype: torch.dtype) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.tensor([1.0, 0.5, 0.2], dtype=dtype))
        self.convert = convert

    def forward(self, x: Tensor) -> Tensor:
        if self.convert == "float":
            return by_fourier(x.float(), self.kernel.float())
        if self.convert == "to":
            return by_fourier(x.to(torch.float32), self.kernel.to(dtype=torch.float32))
        return by_fourier(x.type(torch.float32), self.kernel.type(torch.FloatTensor))


def frames(dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(2, 24, 6, generator=torch.Generator().manual_seed(0)).to(dtype)


def tokens() -> Tensor:
    return torch.randint(0, 30, (2, 24), generator=torch.Generator().manual_seed(0))


def test_rounding_behind_tokens_is_no_influence() -> None:
    report = audit.model(Words(), tokens(), at_most=0)
    assert (report.lookahead, report.verdict) == (0, "holds")
    assert audit.lookahead(Words(), tokens()) == 0


@pytest.mark.parametrize("convert", ["float", "to", "type"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounding_in_a_part_of_less_precision_is_no_influence(
    convert: str, dtype: torch.dtype
) -> None:
    report = audit.model(Mixed(convert, dtype), frames(dtype), at_most=0)
    assert (report.lookahead, report.verdict) == (0, "holds")


def test_an_influence_as_small_as_rounding_is_found_behind_tokens() -> None:
    report = audit.model(Words(ahead=1e-6), tokens(), at_most=0)
    assert report.verdict == "broken"


def test_a_function_that_has_no_double_is_undecided_and_never_broken() -> None:
    def in_numpy(x: np.ndarray) -> np.ndarray:
        kernel = np.array([1.0, 0.5, 0.2], np.float32)
        n = 2 * x.shape[1]
        x = x.astype(np.float32)
        spectrum = np.fft.rfft(x, n, axis=1) * np.fft.rfft(kernel, n)[:, None]
        return np.fft.irfft(spectrum, n, axis=1)[:, : x.shape[1]].astype(np.float32)

    report = audit.model(in_numpy, frames().numpy(), at_most=0)
    assert report.verdict == "undecided"
    assert not report.holds
    (finding,) = report.findings
    assert (finding.kind, finding.severity) == ("future", "undecided")
    assert "as small as rounding" in finding.message
    with pytest.raises(AssertionError, match="undecided"):
        audit.assert_lookahead(in_numpy, frames().numpy(), at_most=0)


def test_a_real_look_ahead_in_numpy_is_broken_all_the_same() -> None:
    def ahead(x: np.ndarray) -> np.ndarray:
        return x.astype(np.float32) + np.roll(x, -1, 1).astype(np.float32) * 1e-3

    assert audit.model(ahead, frames().numpy(), at_most=0).verdict == "broken"
