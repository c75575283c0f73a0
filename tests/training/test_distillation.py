"""Learning from a teacher and from the next frame: against their equations, frame by frame."""

import math

import pytest
import torch
from torch import Tensor

from nearfuture.training import distillation_loss, peak_first_loss

LENGTHS = torch.tensor([7, 3, 0])


def log_probs(seed: int, *, fill: float = 0.0) -> Tensor:
    """(3, 9, 5), with `fill` past the lengths."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(3, 9, 5, generator=generator, dtype=torch.float64).log_softmax(-1)
    values[torch.arange(9) >= LENGTHS[:, None]] = fill
    return values


def divergence(teacher: Tensor, student: Tensor) -> float:
    return sum((q.exp() * (q - p)).item() for q, p in zip(teacher, student, strict=True))


@pytest.mark.parametrize("shift", [-9, -2, 0, 1, 2, 5, 20])
def test_each_frame_is_compared_with_the_teachers_so_many_before(shift: int) -> None:
    student, teacher = log_probs(0), log_probs(1)
    expected = sum(
        divergence(teacher[row, t], student[row, t + shift])
        for row, length in enumerate(LENGTHS.tolist())
        for t in range(length)
        if 0 <= t + shift < length
    )
    found = distillation_loss(student, teacher, LENGTHS, shift_frames=shift)
    assert found.item() == pytest.approx(expected, abs=1e-12)


def test_it_is_least_where_the_student_says_the_same() -> None:
    teacher = log_probs(1)
    logits = teacher.clone().requires_grad_()
    loss = distillation_loss(logits.log_softmax(-1), teacher, LENGTHS)
    assert loss.item() == pytest.approx(0.0, abs=1e-12)
    loss.backward()
    assert logits.grad.abs().max() < 1e-12
    assert distillation_loss(log_probs(0), teacher, LENGTHS) > 0.1


def test_each_frame_learns_from_the_next() -> None:
    p = log_probs(0)
    expected = sum(
        divergence(p[row, t + 1], p[row, t])
        for row, length in enumerate(LENGTHS.tolist())
        for t in range(length - 1)
    )
    assert peak_first_loss(p, LENGTHS).item() == pytest.approx(expected, abs=1e-12)


def test_the_next_frame_is_not_pulled_back() -> None:
    p = log_probs(0).requires_grad_()
    peak_first_loss(p, LENGTHS).backward()
    assert p.grad[0, :6].abs().min() > 0
    assert not p.grad[0, 6:].any()  # the last frame teaches and does not learn
    teacher = log_probs(1).requires_grad_()
    distillation_loss(log_probs(0).requires_grad_(), teacher, LENGTHS).backward()
    assert teacher.grad is None


def test_a_peak_moves_forward() -> None:
    """Descent on the penalty brings the symbol to an earlier frame."""
    logits = torch.zeros(1, 6, 2, dtype=torch.float64)
    logits[0, 3, 1] = 5.0
    logits.requires_grad_()
    before = logits.detach().softmax(-1)[0, 2, 1].item()
    for _ in range(5):
        (gradient,) = torch.autograd.grad(
            peak_first_loss(logits.log_softmax(-1), torch.tensor([6])), logits
        )
        logits = (logits - 0.5 * gradient).detach().requires_grad_()
    assert logits.softmax(-1)[0, 2, 1].item() > before + 0.1


@pytest.mark.parametrize("fill", [math.nan, math.inf, 1e30])
def test_padding_is_nothing(fill: float) -> None:
    for of in (
        lambda x: distillation_loss(x, log_probs(1, fill=fill), LENGTHS, shift_frames=1),
        lambda x: peak_first_loss(x, LENGTHS),
    ):
        clean, spoilt = log_probs(0).requires_grad_(), log_probs(0, fill=fill).requires_grad_()
        losses = of(clean), of(spoilt)
        for loss in losses:
            loss.backward()
        assert torch.equal(losses[0], losses[1])
        assert torch.equal(clean.grad, spoilt.grad)


def test_no_frames_cost_nothing() -> None:
    nothing = torch.zeros(2, 0, 5, requires_grad=True)
    lengths = torch.tensor([0, 0])
    for loss in (distillation_loss(nothing, nothing, lengths), peak_first_loss(nothing, lengths)):
        loss.backward()
        assert loss.item() == 0.0


def test_bfloat16_is_summed_in_float32() -> None:
    student, teacher = log_probs(0).to(torch.bfloat16), log_probs(1).to(torch.bfloat16)
    found = distillation_loss(student, teacher, LENGTHS)
    assert found.dtype == torch.float32
    expected = distillation_loss(student.double(), teacher.double(), LENGTHS)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
