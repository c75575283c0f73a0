"""Convolution over time with its left and right context said out loud."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture.layers.windowed import Windowed

__all__ = ["Convolution", "Stack"]


class Convolution(Windowed):
    """One-dimensional convolution: `y_t = b + Σ_j W_j x_{t·stride - left + j}`.

    Args:
        input_size: features in.
        output_size: features out.
        left: frames of the past in a window.
        right: frames of the future in a window; 0 is causal.
        stride: frames between windows.
        padded: zeros beyond the ends (the default), or complete windows only.
        bias: add `b`.

    The kernel has `left + 1 + right` taps; "same" padding with kernel 11 is `left=5, right=5`,
    its causal form `left=10, right=0`.

    >>> layer = Convolution(1, 1, left=1, right=1, stride=2, bias=False)
    >>> _ = nn.init.ones_(layer.weight)
    >>> x = torch.arange(1.0, 6.0).reshape(1, 5, 1)
    >>> layer(x, torch.tensor([5]))[0].flatten().tolist()
    [3.0, 9.0, 9.0]
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        left: int = 0,
        right: int = 0,
        stride: int = 1,
        padded: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__(
            input_size, output_size, left=left, right=right, stride=stride, padded=padded
        )
        self.weight = nn.Parameter(torch.empty(output_size, input_size, self.kernel))
        self.bias = nn.Parameter(torch.empty(output_size)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within ±1/√(input_size · kernel), as in torch."""
        bound = (self.input_size * self.kernel) ** -0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def slide(self, frames: Tensor) -> Tensor:
        y = F.conv1d(frames.transpose(1, 2), self.weight, self.bias, stride=self.stride)
        return y.transpose(1, 2)


class Stack(Windowed):
    """`frames` neighbouring frames side by side as one: fewer, wider frames.

    `y_t = x_{t·frames} ⊕ … ⊕ x_{t·frames + frames - 1}`, complete groups only.

    >>> y, n = Stack(1, 2)(torch.arange(5.0).reshape(1, 5, 1), torch.tensor([5]))
    >>> y.tolist(), n.tolist()
    ([[[0.0, 1.0], [2.0, 3.0]]], [2])
    """

    def __init__(self, input_size: int, frames: int) -> None:
        super().__init__(
            input_size, input_size * frames, right=frames - 1, stride=frames, padded=False
        )

    def slide(self, frames: Tensor) -> Tensor:
        groups = frames.shape[1] // self.stride
        whole = frames[:, : groups * self.stride]
        return whole.reshape(frames.shape[0], groups, self.output_size)
