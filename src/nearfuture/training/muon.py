"""Muon: a step along the orthogonalised average of a matrix's gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, optim

_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5
_EPS = 1e-7
_MOMENTUM = 0.95


def newton_schulz_dtype(device: torch.device) -> torch.dtype:
    """What matrices are orthogonalised in: float32 on the CPU, bfloat16 anywhere else.

    Most processors have no bfloat16: there a product in it takes fifty times as long as one in
    float32. What those that have it would gain is little beside the rest of a step, and a rule
    that looks at the device alone gives every processor the same training.

    >>> newton_schulz_dtype(torch.device("cpu"))
    torch.float32
    """
    return torch.float32 if device.type == "cpu" else torch.bfloat16


def newton_schulz(matrix: Tensor, dtype: torch.dtype) -> Tensor:
    """The matrix with all its singular values near 1: `U S' Vᵀ` of `U S Vᵀ`, S' in [0.68, 1.13].

    Five iterations `X ← a X + (b X Xᵀ + c (X Xᵀ)²) X` from `X = G / ‖G‖`. Values that were less
    than about 1/300 of the norm stay smaller.

    Args:
        matrix: (M, N).
        dtype: to compute in.

    Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers", and its coefficients.

    >>> x = newton_schulz(torch.tensor([[3.0, 0.0], [0.0, 0.5]]), torch.float32)
    >>> bool((x.diag() - 1).abs().max() < 0.33), bool(x[0, 1] == 0)
    (True, True)
    """
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.to(dtype)
    x = x.t() if tall else x
    x = x / x.norm().clamp(min=_EPS)
    for _ in range(_ITERATIONS):
        gram = x @ x.t()
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=_B, alpha=_C), x, beta=_A)
    return x.t() if tall else x


class Muon(optim.Optimizer):
    """Move matrices as `torch.optim.Muon` does, in the floating point that suits their device.

    `m ← μ m + (1 - μ) g`, `W ← (1 - λ w) W - λ s NS(μ m + (1 - μ) g)`: momentum μ = 0.95 with
    Nesterov's look ahead, decoupled weight decay w, and `s = 0.2 √max(M, N)`, which makes a step as
    large as one of AdamW's. torch always orthogonalises in bfloat16.

    Args:
        matrices: (M, N) each.
        lr: λ.
        weight_decay: w.

    Source: Jordan et al. 2024; Liu et al. 2025, "Muon is scalable for LLM training",
    arXiv 2502.16982 (s).
    """

    def __init__(self, matrices: Iterable[Tensor], *, lr: float, weight_decay: float) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every matrix that has a gradient."""
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is not None:
                    self._move(matrix, matrix.grad, group["lr"], group["weight_decay"])

    def _move(self, matrix: Tensor, gradient: Tensor, lr: float, weight_decay: float) -> None:
        state = self.state[matrix]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        moment = state["momentum_buffer"].lerp_(gradient, 1 - _MOMENTUM)
        dtype = newton_schulz_dtype(matrix.device)
        if dtype == torch.float32:  # of a float64 model it is the least
            dtype = torch.promote_types(matrix.dtype, dtype)
        direction = newton_schulz(gradient.lerp(moment, _MOMENTUM), dtype)
        matrix.mul_(1 - lr * weight_decay)
        matrix.add_(direction, alpha=-lr * 0.2 * math.sqrt(max(matrix.shape)))
