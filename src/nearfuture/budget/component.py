"""The parts of a recogniser's configuration: its features, convolutions and recurrent layers."""

import math
from dataclasses import dataclass

from nearfuture.budget.check import positive
from nearfuture.budget.cost import Cell, Cost, Merge, one_direction, recurrent_cost
from nearfuture.budget.field import ReceptiveField
from nearfuture.error import NearfutureError


@dataclass(frozen=True, kw_only=True)
class FeatureConfig:
    """The spectra that a recogniser computes from audio.

    Args:
        rate: samples per second.
        window_ms: length of a spectral window.
        hop_ms: from one window to the next.
        mel_bins: mel bands of a spectrum; None for the power of every frequency.
        floor: smallest energy that is passed to the logarithm.

    Raises:
        NearfutureError: for sizes below 1, a floor of 0 or less, and a window or a hop that is no
            whole number of samples.

    >>> FeatureConfig().window_samples, FeatureConfig(rate=16000, mel_bins=None).bins
    (200, 201)
    """

    rate: int = 8000
    window_ms: float = 25.0
    hop_ms: float = 10.0
    mel_bins: int | None = 40
    floor: float = 1e-7

    def __post_init__(self) -> None:
        positive(rate=self.rate, mel_bins=1 if self.mel_bins is None else self.mel_bins)
        if not 0 < self.floor < math.inf:
            raise NearfutureError(
                f"`floor` must be above 0 and finite, not {self.floor:g}",
                code="out_of_range",
                parameter="floor",
            )
        for name in ("window_ms", "hop_ms"):
            ms = getattr(self, name)
            if not 0 < ms < math.inf:
                raise NearfutureError(
                    f"`{name}` must be above 0 and finite, not {ms}",
                    code="out_of_range",
                    parameter=name,
                )
            samples = ms * self.rate / 1000
            # Milliseconds that a person can write need not be exact.
            if round(samples) < 1 or abs(samples - round(samples)) > 1e-3:
                nearest = max(1, round(samples)) * 1000 / self.rate
                raise NearfutureError(
                    f"`{name}={ms:g}` at {self.rate} Hz is {samples:g} samples; "
                    f"choose a whole number, such as {nearest:.9g} ms",
                    parameter=name,
                )

    @property
    def window_samples(self) -> int:
        """The samples of a window."""
        return round(self.window_ms * self.rate / 1000)

    @property
    def hop_samples(self) -> int:
        """The samples from one window to the next."""
        return round(self.hop_ms * self.rate / 1000)

    @property
    def fft_size(self) -> int:
        """The points of the transform: the window's, or 2ᵏ below mel filters, as in Kaldi."""
        window = self.window_samples
        return window if self.mel_bins is None else 1 << (window - 1).bit_length()

    @property
    def bins(self) -> int:
        """The values of one spectrum."""
        return self.window_samples // 2 + 1 if self.mel_bins is None else self.mel_bins


@dataclass(frozen=True, kw_only=True)
class ConvolutionConfig:
    """A convolution below the recurrent layers, over time or over time and frequency.

    Args:
        kernel: frames of the kernel.
        stride: input frames per output frame.
        channels: channels of the output.
        band_kernel: frequency bands of the kernel; None: all bands are channels of a 1-D one.
        band_stride: input bands per output band.
        causal: all of the padding to the left, instead of half to each side ("same").

    >>> ConvolutionConfig(kernel=11, channels=32).field.right
    5
    """

    kernel: int
    stride: int = 1
    channels: int
    band_kernel: int | None = None
    band_stride: int = 1
    causal: bool = False

    def __post_init__(self) -> None:
        positive(
            kernel=self.kernel,
            stride=self.stride,
            channels=self.channels,
            band_kernel=1 if self.band_kernel is None else self.band_kernel,
            band_stride=self.band_stride,
        )
        if self.band_kernel is None and self.band_stride > 1:
            raise NearfutureError(
                f"`band_stride={self.band_stride}` needs a kernel over bands: set `band_kernel`",
                code="conflict",
                parameter="band_stride",
            )

    @property
    def field(self) -> ReceptiveField:
        """The receptive field in input frames: kernel 11 is 5 to each side, or 10 to the left."""
        right = 0 if self.causal else (self.kernel - 1) // 2
        return ReceptiveField(left=self.kernel - 1 - right, right=right, stride=self.stride)


@dataclass(frozen=True, kw_only=True)
class RecurrenceConfig:
    """The recurrent layers, which are all alike.

    Args:
        cell: "rnn", "gru" or "lstm".
        hidden: width H of each layer's state.
        layers: how many.
        biases: per gate: 2 as torch stores them, 1 beside a batch norm or in textbooks, 0 for none.
        bidirectional: each layer also runs from the end to the start.
        merge: how two directions meet: "sum" or "concat".
        share_input: two directions share their input weights.
        layer_norm: a layer normalisation below each layer and one above them all.
        residual: a shortcut around each layer whose output is as wide as its input.

    Raises:
        NearfutureError: for sizes below 1, an unknown cell, merge or number of biases, and for a
            merge or shared weights where there is one direction.
    """

    cell: Cell = "gru"
    hidden: int = 192
    layers: int = 3
    biases: int = 2
    bidirectional: bool = False
    merge: Merge = "sum"
    share_input: bool = False
    layer_norm: bool = True
    residual: bool = True

    def __post_init__(self) -> None:
        positive(hidden=self.hidden, layers=self.layers)
        if not self.bidirectional and (self.merge != "sum" or self.share_input):
            raise one_direction("share_input" if self.share_input else "merge")
        self.cost(1)  # what no layer can have raises here

    @property
    def output_size(self) -> int:
        """The values of an output frame of each layer."""
        return self.hidden * (2 if self.bidirectional and self.merge == "concat" else 1)

    def cost(self, input_size: int) -> Cost:
        """The cost of one layer that reads frames of so many values."""
        return recurrent_cost(
            self.cell,
            input_size,
            self.hidden,
            biases=self.biases,
            bidirectional=self.bidirectional,
            merge=self.merge if self.bidirectional else "concat",
            share_input=self.share_input,
        )
