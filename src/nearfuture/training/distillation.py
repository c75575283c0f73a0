"""Two losses over whole distributions: learn from a teacher, and learn from the next frame.

Shapes: `B` batch, `T` frames, `V` symbols.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nearfuture.layers.ragged import mask


def distillation_loss(
    student_log_probs: Tensor,
    teacher_log_probs: Tensor,
    lengths: Tensor,
    *,
    shift_frames: int = 0,
) -> Tensor:
    """Kullback–Leibler divergence of a student from its teacher, frame by frame, summed.

    `Σ_t Σ_v q_t(v) (log q_t(v) - log p_{t+s}(v))`, where q is the teacher, p the student and s the
    shift: with a positive one the student says the same so many frames later. Frames that have no
    counterpart inside the row count for nothing. The teacher has no gradient.

    Args:
        student_log_probs: (B, T, V).
        teacher_log_probs: (B, T, V).
        lengths: (B,).
        shift_frames: s; a negative one asks the student to be earlier.

    Source: Hinton et al. 2015 (the divergence); Kurata and Audhkhasi 2019 (a bidirectional teacher
    for a unidirectional CTC model).

    >>> p = torch.tensor([[[0.5, 0.5], [0.9, 0.1]]]).log()
    >>> distillation_loss(p, p, torch.tensor([2])).item()
    0.0
    >>> late = torch.tensor([[[0.3, 0.7], [0.5, 0.5]]]).log()
    >>> distillation_loss(late, p, torch.tensor([2]), shift_frames=1).item()
    0.0
    """
    frames = max(0, student_log_probs.shape[1] - abs(shift_frames))
    ahead, behind = max(0, shift_frames), max(0, -shift_frames)
    student = student_log_probs[:, ahead : ahead + frames]
    teacher = teacher_log_probs[:, behind : behind + frames].detach()
    return _divergence(teacher, student, (lengths - abs(shift_frames)).clamp(min=0))


def peak_first_loss(log_probs: Tensor, lengths: Tensor) -> Tensor:
    """Divergence of every frame from the one after it, summed: it moves peaks earlier.

    `Σ_t Σ_v p_{t+1}(v) (log p_{t+1}(v) - log p_t(v))`, without a gradient through the later frame.

    Args:
        log_probs: (B, T, V).
        lengths: (B,).

    Source: Tian et al. 2022, "Peak-First CTC", arXiv 2211.03284: the later frame teaches the one
    before it.

    >>> p = torch.tensor([[[0.5, 0.5], [0.5, 0.5], [0.9, 0.1]]]).log()
    >>> peak_first_loss(p, torch.tensor([2])).item()
    0.0
    >>> round(peak_first_loss(p, torch.tensor([3])).item(), 3)
    0.368
    """
    return _divergence(log_probs[:, 1:].detach(), log_probs[:, :-1], (lengths - 1).clamp(min=0))


def _divergence(teacher: Tensor, student: Tensor, lengths: Tensor) -> Tensor:
    """`Σ q (log q - log p)` over the valid frames, in float32 or better."""
    exact = torch.promote_types(student.dtype, torch.float32)
    teacher, student = mask(teacher.to(exact), lengths), mask(student.to(exact), lengths)
    return (teacher.exp() * (teacher - student)).sum()
