"""Muon in the floating point of its device: torch's step, without torch's rounding."""

import pytest
import torch
from torch import Tensor

from nearfuture.training.muon import Muon, newton_schulz, newton_schulz_dtype

SHAPES = [(12, 12), (30, 8), (8, 30), (1, 5)]


def drawn(shape: tuple[int, int], seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_singular_values(matrix: Tensor) -> Tensor:
    """The same polynomial, applied to each singular value by itself, in float64."""
    u, s, v = torch.linalg.svd(matrix, full_matrices=False)
    s = s / s.norm()
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return u @ torch.diag(s) @ v


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_a_polynomial_of_the_singular_values(shape: tuple[int, int]) -> None:
    expected = by_singular_values(drawn(shape))
    found = newton_schulz(drawn(shape), torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    found = newton_schulz(drawn(shape).float(), torch.float32)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5)
    values = torch.linalg.svdvals(found)
    assert 0.6 < float(values.min()) <= float(values.max()) < 1.2


def moved(optimizer: torch.optim.Optimizer, matrix: Tensor, steps: int) -> Tensor:
    for step in range(steps):
        matrix.grad = drawn(tuple(matrix.shape), 1 + step).to(matrix.dtype)
        optimizer.step()
    return matrix.detach()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_step_is_the_one_torch_takes_but_for_its_bfloat16(shape: tuple[int, int]) -> None:
    rates = {"lr": 0.02, "weight_decay": 0.1}
    ours, theirs = (torch.nn.Parameter(drawn(shape).float()) for _ in range(2))
    one = moved(Muon([ours], **rates), ours, 4)
    two = moved(torch.optim.Muon([theirs], adjust_lr_fn="match_rms_adamw", **rates), theirs, 4)
    path = (drawn(shape).float() - two).abs().max()
    assert (one - two).abs().max() < 0.02 * path


def test_a_step_in_float32_is_the_one_in_float64() -> None:
    single = torch.nn.Parameter(drawn((30, 8)).float())
    double = torch.nn.Parameter(drawn((30, 8)))
    rates = {"lr": 0.02, "weight_decay": 0.1}
    one = moved(Muon([single], **rates), single, 4)
    two = moved(Muon([double], **rates), double, 4)
    torch.testing.assert_close(one.double(), two, rtol=0, atol=1e-6)


def test_no_gradient_moves_nothing_and_a_gradient_of_zeros_decays_alone() -> None:
    still, decays = (torch.nn.Parameter(drawn((4, 3))) for _ in range(2))
    decays.grad = torch.zeros_like(decays)
    Muon([still, decays], lr=0.1, weight_decay=0.5).step()
    assert torch.equal(still, drawn((4, 3)))
    torch.testing.assert_close(decays.detach(), 0.95 * drawn((4, 3)))


def test_the_floating_point_follows_from_the_device_alone() -> None:
    assert newton_schulz_dtype(torch.device("cpu")) == torch.float32
    assert newton_schulz_dtype(torch.device("cuda")) == torch.bfloat16
