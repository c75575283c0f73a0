"""Convolution over time, or time and frequency, with explicit left and right context.

Shapes: `B` batch, `N` frames, `C` channels, `F` bands of a channel.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture.error import NearfutureError
from nearfuture.layers.windowed import Windowed


class Convolution(Windowed):
    """One-dimensional convolution: `y_t = b + Σ_j W_j x_{t·stride - left + j·dilation}`.

    With `groups` = G, `W_j` is block-diagonal: output channels are G equal groups, each of which
    reads its own group of input channels (arXiv 1610.02357, "depthwise" where each channel is a
    group). With a dilation, the taps leave frames between them unread (arXiv 1511.07122).

    Args:
        input_size: features in.
        output_size: features out.
        left: frames of the past in a window, from its first tap.
        right: frames of the future in a window, to its last tap; 0 is causal.
        stride: frames between windows.
        dilation: frames from one tap to the next.
        groups: groups of channels; `groups=input_size` is depthwise.
        padded: zeros beyond the ends (the default), or complete windows only.
        bias: add `b`.

    The kernel has `(left + right) / dilation + 1` taps; "same" padding with kernel 11 is `left=5,
    right=5`, its causal form `left=10, right=0`.

    Raises:
        NearfutureError: where the first or the last frame of a window has no tap, for a dilation
            without a second tap, and for groups that do not divide the features.

    >>> layer = Convolution(1, 1, left=1, right=1, stride=2, bias=False)
    >>> _ = nn.init.ones_(layer.weight)
    >>> x = torch.arange(1.0, 6.0).reshape(1, 5, 1)
    >>> layer(x, torch.tensor([5]))[0].flatten().tolist()
    [3.0, 9.0, 9.0]
    >>> causal = Convolution(1, 1, left=4, dilation=2, bias=False)  # reads t-4, t-2 and t
    >>> _ = nn.init.ones_(causal.weight)
    >>> causal(x, torch.tensor([5]))[0].flatten().tolist()
    [1.0, 2.0, 4.0, 6.0, 9.0]
    >>> tuple(Convolution(8, 8, left=2, groups=8).weight.shape)
    (8, 1, 3)
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        left: int = 0,
        right: int = 0,
        stride: int = 1,
        dilation: int = 1,
        groups: int = 1,
        padded: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__(
            input_size, output_size, left=left, right=right, stride=stride, padded=padded
        )
        _check_dilation(dilation, left=left, right=right)
        _check_groups(groups, input_size=input_size, output_size=output_size)
        self.dilation, self.groups = dilation, groups
        taps = (left + right) // dilation + 1
        self.weight = nn.Parameter(torch.empty(output_size, input_size // groups, taps))
        self.bias = nn.Parameter(torch.empty(output_size)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within ±1/√(inputs of an output), as in torch."""
        bound = self.weight[0].numel() ** -0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def slide(self, frames: Tensor) -> Tensor:
        y = F.conv1d(
            frames.transpose(1, 2),
            self.weight,
            self.bias,
            stride=self.stride,
            dilation=self.dilation,
            groups=self.groups,
        )
        return y.transpose(1, 2)


def _check_positive(**number: int) -> None:
    ((name, value),) = number.items()
    if value < 1:
        raise NearfutureError(
            f"`{name}` must be 1 or more, not {value}", code="out_of_range", parameter=name
        )


def _check_dilation(dilation: int, *, left: int, right: int) -> None:
    _check_positive(dilation=dilation)
    span = left + right
    if dilation > 1 and not span:
        raise NearfutureError(
            f"a dilation of {dilation} has no effect on a kernel of one tap; leave it out, or "
            f"widen `left` or `right`",
            code="conflict",
            parameter="dilation",
        )
    if span % dilation:
        raise NearfutureError(
            f"taps {dilation} frames apart do not reach from left={left} to right={right}: make "
            f"left + right, {span} frames, a multiple of the dilation",
            code="out_of_range",
            parameter="dilation",
        )


def _check_groups(groups: int, **sizes: int) -> None:
    _check_positive(groups=groups)
    for name, size in sizes.items():
        if size % groups:
            raise NearfutureError(
                f"{groups} groups do not divide the {size} features of `{name}`; choose a "
                f"divisor of both sizes",
                code="out_of_range",
                parameter="groups",
            )


class Convolution2d(Windowed):
    """Convolution over time and frequency: `y_{t,f} = b + Σ_{i,j} W_{i,j} x_{t·s + i, f·r + j}`.

    Deep Speech 2 (Amodei et al. 2015) §3.5. A frame is `channels` spectra side by side, channel
    after channel, so that it is one vector as everywhere else. Over bands the padding is "same",
    zeros on both sides: `⌈bands / band_stride⌉` bands come out. Over time it is what `left` and
    `right` say, as in `Convolution`.

    Args:
        channels: C, in and out.
        bands: F, of each channel in.
        band_kernel: bands of the kernel.
        band_stride: r, bands in per band out.
        left: frames of the past in a window.
        right: frames of the future in a window; 0 is causal.
        stride: s, frames between windows.
        bias: add `b`, one per channel.

    Raises:
        NearfutureError: for a size below 1, or for a stride over bands that skips some.

    >>> layer = Convolution2d((1, 32), bands=161, band_kernel=41, band_stride=2, left=5, right=5)
    >>> layer.input_size, layer.output_size == 32 * layer.bands, layer.bands
    (161, True, 81)
    """

    def __init__(
        self,
        channels: tuple[int, int],
        *,
        bands: int,
        band_kernel: int = 1,
        band_stride: int = 1,
        left: int = 0,
        right: int = 0,
        stride: int = 1,
        bias: bool = True,
    ) -> None:
        if min(*channels, bands, band_stride) < 1 or band_kernel < band_stride:
            raise NearfutureError(
                f"channels {channels}, bands={bands}, band_kernel={band_kernel} and band_stride="
                f"{band_stride} count from 1, and a kernel is at least as wide as its stride",
                code="out_of_range",
            )
        self.channels = channels
        self.bands_in, self.bands = bands, -(-bands // band_stride)
        self.band_stride = band_stride
        below = (band_kernel - 1) // 2
        self.band_padding = (below, band_kernel - 1 - below)
        super().__init__(
            channels[0] * bands, channels[1] * self.bands, left=left, right=right, stride=stride
        )
        self.weight = nn.Parameter(torch.empty(channels[1], channels[0], self.kernel, band_kernel))
        self.bias = nn.Parameter(torch.empty(channels[1])) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within ±1/√(inputs of a kernel), as in torch."""
        bound = self.weight[0].numel() ** -0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def slide(self, frames: Tensor) -> Tensor:
        image = frames.reshape(*frames.shape[:2], self.channels[0], self.bands_in).transpose(1, 2)
        image = F.pad(image, self.band_padding)
        y = F.conv2d(image, self.weight, self.bias, stride=(self.stride, self.band_stride))
        return y.transpose(1, 2).flatten(2)


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
