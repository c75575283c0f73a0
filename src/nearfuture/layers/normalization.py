"""Normalisation that needs no other frame: what streaming can do exactly."""

from __future__ import annotations

from torch import nn

from nearfuture.layers.contract import Pointwise

__all__ = ["LayerNorm"]


class LayerNorm(Pointwise):
    """Normalise each frame over its features: `y = (x - E[x]) / √(Var[x] + ε) · γ + β`.

    Ba et al. 2016. It looks at one frame only; a norm over time would read the future.

    Args:
        dim: features in and out.
        eps: ε.

    >>> import torch
    >>> y, n = LayerNorm(2)(torch.tensor([[[1.0, 3.0]]]), torch.tensor([1]))
    >>> y.flatten().round().tolist()
    [-1.0, 1.0]
    """

    def __init__(self, dim: int, *, eps: float = 1e-5) -> None:
        super().__init__(nn.LayerNorm(dim, eps=eps), dim)
