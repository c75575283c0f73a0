"""Parameters and arithmetic of every kind of layer, from its sizes alone.

A multiply-add is 2 FLOPs. Matrix products are counted, and what a layer consists of otherwise; the
few operations per value of biases and activations are not.
"""

from dataclasses import dataclass
from typing import Literal

from nearfuture.budget.check import positive
from nearfuture.error import NearfutureError

Cell = Literal["rnn", "gru", "lstm"]
Merge = Literal["concat", "sum"]

GATES: dict[Cell, int] = {"rnn": 1, "gru": 3, "lstm": 4}


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The parameters of a layer and its operations for one output frame; costs add.

    Args:
        parameters: numbers to learn and to store.
        flops_per_frame: operations per output frame.

    >>> Cost(parameters=10, flops_per_frame=20) + Cost(parameters=1, flops_per_frame=2)
    Cost(parameters=11, flops_per_frame=22)
    """

    parameters: int = 0
    flops_per_frame: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            parameters=self.parameters + other.parameters,
            flops_per_frame=self.flops_per_frame + other.flops_per_frame,
        )

    def times(self, frames: int) -> "Cost":
        """The cost of `frames` frames of this layer for each output frame of a slower one above.

        >>> Cost(parameters=10, flops_per_frame=20).times(4)
        Cost(parameters=10, flops_per_frame=80)
        """
        return Cost(parameters=self.parameters, flops_per_frame=self.flops_per_frame * frames)

    def flops_per_second(self, frame_ms: float) -> float:
        """Operations per second of audio, where an output frame stands for `frame_ms`.

        >>> Cost(flops_per_frame=1000).flops_per_second(40.0)
        25000.0
        """
        return self.flops_per_frame * 1000 / frame_ms


def recurrent_cost(
    cell: Cell,
    input_size: int,
    hidden_size: int,
    *,
    layers: int = 1,
    biases: int = 2,
    bidirectional: bool = False,
    merge: Merge = "concat",
    share_input: bool = False,
) -> Cost:
    """The cost of recurrent layers: `gates · (H·d + H·H + biases·H)` parameters per direction.

    The next layer reads `d = H`, or `2H` above a bidirectional layer that concatenates. The number
    of steps is no part of the parameters: weights are shared over time.

    Args:
        cell: "rnn" (1 gate), "gru" (3) or "lstm" (4).
        input_size: values per frame, d.
        hidden_size: values of the state, H.
        layers: how many, stacked.
        biases: per gate and direction: 2 as torch stores them, 1 in the textbooks, 0 for weights
            alone.
        bidirectional: a second recurrence, from the end to the start.
        merge: "concat" doubles the width of the output, "sum" keeps it.
        share_input: both directions use the same W and its bias (the recurrent bias, if there are
            two, stays their own).

    Raises:
        NearfutureError: for a size below 1, another number of biases, or a merge or shared input
            in a layer of one direction.

    Source: Deep Speech 2 (arXiv 1512.02595) eq. (9), summed with a shared W.

    >>> recurrent_cost("rnn", 4, 8, biases=1).parameters, recurrent_cost("rnn", 4, 8).parameters
    (104, 112)
    >>> [recurrent_cost(cell, 4, 8).parameters // 112 for cell in ("gru", "lstm")]
    [3, 4]

    Bidirectional against one direction, weights alone, input as wide as the state: 2, 3 in upper
    layers that read a concatenation, 2 with a sum, 1.5 with a sum and shared input weights. With
    narrow inputs the last is nearer to 2:

    >>> def weights(input_size=2560, **options):
    ...     return recurrent_cost("gru", input_size, 2560, biases=0, **options).parameters
    >>> weights(bidirectional=True) / weights()
    2.0
    >>> (weights(bidirectional=True, layers=2) - weights(bidirectional=True)) / weights()
    3.0
    >>> weights(bidirectional=True, merge="sum") / weights()
    2.0
    >>> weights(bidirectional=True, merge="sum", share_input=True) / weights()
    1.5
    >>> round(weights(160, bidirectional=True, merge="sum", share_input=True) / weights(160), 2)
    1.94
    """
    positive(input_size=input_size, hidden_size=hidden_size, layers=layers)
    if cell not in GATES:
        raise NearfutureError(
            f"`cell` must be one of {', '.join(GATES)}, not {cell!r}", parameter="cell"
        )
    if merge not in ("concat", "sum"):
        raise NearfutureError(f"`merge` must be concat or sum, not {merge!r}", parameter="merge")
    if biases not in (0, 1, 2):
        raise NearfutureError(
            f"`biases` must be 0, 1 or 2 per gate, not {biases}",
            code="out_of_range",
            parameter="biases",
        )
    if not bidirectional and (merge == "sum" or share_input):
        raise one_direction("share_input" if share_input else "merge")
    gates, directions = GATES[cell], 2 if bidirectional else 1
    inputs = 1 if share_input else directions  # copies of W and of its bias
    width = hidden_size * (directions if merge == "concat" else 1)
    weights = bias = 0
    for layer in range(layers):
        columns = input_size if layer == 0 else width
        weights += gates * hidden_size * (inputs * columns + directions * hidden_size)
        bias += gates * hidden_size * (inputs * min(biases, 1) + directions * max(biases - 1, 0))
    return Cost(parameters=weights + bias, flops_per_frame=2 * weights)


def lookahead_cost(size: int, frames: int, *, mixing: bool = False) -> Cost:
    """The cost of a row convolution: `D · (τ + 1)` weights, or `D² · (τ + 1)` where channels mix.

    Args:
        size: channels, D.
        frames: the lookahead τ; the current frame is one more.
        mixing: a whole matrix per frame instead of one weight per channel.

    Raises:
        NearfutureError: for a size below 1 or negative frames.

    Source: Deep Speech 2 (arXiv 1512.02595) eq. (11). A mixing one would outweigh five plain RNN
    layers as wide, but not five GRU layers:

    >>> lookahead_cost(2560, 19).parameters, lookahead_cost(2560, 19, mixing=True).parameters
    (51200, 131072000)
    >>> [recurrent_cost(cell, 2560, 2560, layers=5, biases=0).parameters for cell in ("rnn", "gru")]
    [65536000, 196608000]
    """
    positive(size=size)
    if frames < 0:
        raise NearfutureError(
            f"a lookahead must be 0 frames or more, not {frames}",
            code="out_of_range",
            parameter="frames",
        )
    weights = size * (size if mixing else 1) * (frames + 1)
    return Cost(parameters=weights, flops_per_frame=2 * weights)


def convolution_cost(
    in_channels: int,
    out_channels: int,
    kernel: int,
    *,
    bias: bool = True,
    groups: int = 1,
    band_kernel: int = 1,
    bands: int = 1,
) -> Cost:
    """The cost of a convolution over time, or over time and frequency.

    `kernel · band_kernel · in · out / groups` weights, each used once per output frame and band.
    A dilation changes nothing.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel: taps of the kernel over time.
        bias: one per output channel.
        groups: groups of channels that are convolved by themselves; `in` of them: depthwise.
        band_kernel: frequency bands of the kernel; 1 where only time is convolved.
        bands: frequency bands of the output.

    Raises:
        NearfutureError: for a size below 1, or for groups that do not divide the channels.

    >>> convolution_cost(8, 16, 3)
    Cost(parameters=400, flops_per_frame=768)
    >>> convolution_cost(8, 8, 3, groups=8)  # depthwise
    Cost(parameters=32, flops_per_frame=48)
    >>> convolution_cost(1, 32, 11, band_kernel=41, bands=81).parameters
    14464
    """
    positive(
        in_channels=in_channels,
        out_channels=out_channels,
        kernel=kernel,
        groups=groups,
        band_kernel=band_kernel,
        bands=bands,
    )
    if in_channels % groups or out_channels % groups:
        raise NearfutureError(
            f"{groups} groups do not divide {in_channels} and {out_channels} channels; choose a "
            f"divisor of both",
            code="out_of_range",
            parameter="groups",
        )
    weights = kernel * band_kernel * in_channels * out_channels // groups
    return Cost(
        parameters=weights + out_channels * bias,
        flops_per_frame=2 * weights * bands,
    )


def linear_cost(input_size: int, output_size: int, *, bias: bool = True) -> Cost:
    """The cost of a linear layer `y = W x + b`: `out · (in + 1)` parameters.

    Raises:
        NearfutureError: for a size below 1.

    >>> linear_cost(192, 29)
    Cost(parameters=5597, flops_per_frame=11136)
    """
    positive(input_size=input_size, output_size=output_size)
    weights = input_size * output_size
    return Cost(parameters=weights + output_size * bias, flops_per_frame=2 * weights)


def layer_norm_cost(size: int) -> Cost:
    """The cost of a layer normalisation over D values: a scale and a shift each, 7 D FLOPs.

    D for the mean, D to subtract it, 2 D for the variance, D to divide, 2 D to scale and shift.

    Raises:
        NearfutureError: for a size below 1.

    >>> layer_norm_cost(192)
    Cost(parameters=384, flops_per_frame=1344)
    """
    positive(size=size)
    return Cost(parameters=2 * size, flops_per_frame=7 * size)


def batch_norm_cost(size: int) -> Cost:
    """The cost of a batch normalisation over D values: a scale each.

    Its shift is the bias of the layer it normalises, which is counted there. When the model runs,
    both are multiplied into that layer's weights: no operation is left.

    Raises:
        NearfutureError: for a size below 1.

    >>> batch_norm_cost(192)
    Cost(parameters=192, flops_per_frame=0)
    """
    positive(size=size)
    return Cost(parameters=size)


def features_cost(
    window_samples: int, mels: int | None = None, *, dft_samples: int | None = None
) -> Cost:
    """The cost of a spectral frame as matrix products; it has nothing to learn.

    With `F = ⌊dft / 2⌋ + 1` frequencies: the window times a sine and a cosine of each,
    `2 · 2 · F · window`, the power `3 · F`, and the mel bands `2 · F · mels`.

    Args:
        window_samples: samples of a window.
        mels: mel bands; None for the power spectrum itself.
        dft_samples: length of the transform, at least the window; the window itself if None.

    Raises:
        NearfutureError: for a size below 1 or a transform shorter than the window.

    >>> features_cost(200, 40, dft_samples=256)
    Cost(parameters=0, flops_per_frame=113907)
    """
    positive(window_samples=window_samples, mels=1 if mels is None else mels)
    dft = window_samples if dft_samples is None else dft_samples
    if dft < window_samples:
        raise NearfutureError(
            f"a transform of {dft} samples loses a part of the window of {window_samples}; "
            f"make `dft_samples` at least {window_samples}",
            code="out_of_range",
            parameter="dft_samples",
        )
    frequencies = dft // 2 + 1
    return Cost(flops_per_frame=frequencies * (4 * window_samples + 3 + 2 * (mels or 0)))


def one_direction(parameter: str) -> NearfutureError:
    """The error of an option about two directions in a layer that has one."""
    return NearfutureError(
        f"`{parameter}` has no effect on layers of one direction; leave it out, or ask for "
        f"`bidirectional=True`",
        code="conflict",
        parameter=parameter,
    )
