"""A whole recogniser as a set of sizes: enough to say what it waits for and what it costs."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from nearfuture.budget.cost import (
    GATES,
    Cell,
    Cost,
    Merge,
    batch_norm_cost,
    convolution_cost,
    features_cost,
    layer_norm_cost,
    linear_cost,
    lookahead_cost,
    recurrent_cost,
)
from nearfuture.budget.field import ReceptiveField
from nearfuture.budget.latency import Latency, algorithmic_latency
from nearfuture.error import NearfutureError


@dataclass(frozen=True, kw_only=True)
class ConvolutionShape:
    """A convolution below the recurrent layers, over time or over time and frequency.

    Args:
        kernel: frames of the kernel.
        stride: input frames per output frame.
        channels: channels of the output.
        band_kernel: frequency bands of the kernel; None: all bands are channels of a 1-D one.
        band_stride: input bands per output band.
        causal: all of the padding to the left, instead of half to each side ("same").
    """

    kernel: int
    stride: int = 1
    channels: int
    band_kernel: int | None = None
    band_stride: int = 1
    causal: bool = False

    def __post_init__(self) -> None:
        for name in ("kernel", "stride", "channels", "band_stride"):
            if getattr(self, name) < 1:
                raise NearfutureError(f"{name} counts from 1, not {getattr(self, name)}")
        if self.band_kernel is None and self.band_stride > 1:
            raise NearfutureError("a stride over bands needs a kernel over bands")

    @property
    def field(self) -> ReceptiveField:
        """Kernel 11: 5 frames to each side, or 10 to the left."""
        right = 0 if self.causal else (self.kernel - 1) // 2
        return ReceptiveField(left=self.kernel - 1 - right, right=right, stride=self.stride)


@dataclass(frozen=True, kw_only=True)
class Blueprint:
    """The sizes of a recogniser: features, stack or convolutions, recurrence, lookahead, output.

    The defaults are this project's small model for telephone audio, English letters.

    Args:
        rate: samples per second.
        window_ms: length of a spectral window.
        hop_ms: from one window to the next.
        mels: mel bands per window; None for the power spectrum.
        stack: consecutive frames that are read as one.
        convolutions: those between the features and the recurrence.
        project: a linear layer below the recurrence, to its width.
        cell: "rnn", "gru" or "lstm".
        hidden: width of each recurrent state.
        layers: recurrent layers.
        biases: per gate, see `recurrent_cost`.
        bidirectional: each layer also runs from the end to the start.
        merge: how two directions meet: "concat" or "sum".
        share_input: two directions share their input weights.
        batch_norm: a batch normalisation above each convolution and on each recurrent layer's input
            projection (Deep Speech 2 §3.2); its shift is their one bias.
        layer_norm: a layer normalisation below each recurrent layer and one above them all.
        heads: lookaheads in frames, one head each; empty in a bidirectional model.
        mixing: lookaheads of whole matrices instead of one weight per channel.
        output_hidden: a linear layer more below the output, as wide as the recurrence.
        outputs: symbols, the blank included.

    Raises:
        NearfutureError: for sizes that make no model, or for options that have no effect.

    >>> small = Blueprint()
    >>> [small.latency(frames).worst_ms for frames in small.heads]
    [55.0, 215.0, 375.0, 815.0]
    >>> small.frame_ms, small.input_size
    (40.0, 160)
    """

    rate: int = 8000
    window_ms: float = 25.0
    hop_ms: float = 10.0
    mels: int | None = 40
    stack: int = 4
    convolutions: tuple[ConvolutionShape, ...] = ()
    project: bool = True
    cell: Cell = "gru"
    hidden: int = 192
    layers: int = 3
    biases: int = 2
    bidirectional: bool = False
    merge: Merge = "concat"
    share_input: bool = False
    batch_norm: bool = False
    layer_norm: bool = True
    heads: tuple[int, ...] = (0, 4, 8, 19)
    mixing: bool = False
    output_hidden: bool = True
    outputs: int = 29

    def __post_init__(self) -> None:
        for name in ("rate", "window_ms", "hop_ms", "stack", "layers", "outputs"):
            if not 0 < getattr(self, name) < math.inf:
                raise NearfutureError(f"{name} is above 0, not {getattr(self, name)}")
        for name in ("window_ms", "hop_ms"):
            samples = getattr(self, name) * self.rate / 1000
            if abs(samples - round(samples)) > 1e-3:
                raise NearfutureError(
                    f"{name}={getattr(self, name):g} at {self.rate} Hz is {samples:g} samples; "
                    f"choose a whole number, such as {round(samples) * 1000 / self.rate:.9g} ms"
                )
        if self.bidirectional and (self.heads or self.mixing):
            raise NearfutureError(
                "a lookahead above bidirectional layers waits for what is already there; leave it "
                "out, or make the layers unidirectional"
            )
        if not self.bidirectional and not self.heads:
            raise NearfutureError("a streaming model has at least one head; (0,) looks at nothing")
        if any(frames < 0 for frames in self.heads):
            raise NearfutureError(f"a lookahead is 0 frames or more, not {min(self.heads)}")
        if len(set(self.heads)) < len(self.heads):
            raise NearfutureError(f"each lookahead has one head, not {self.heads}")
        if self.batch_norm and self.biases != 1:
            raise NearfutureError(
                f"a batch norm's shift is the one bias of each gate: biases=1, not {self.biases}"
            )
        list(self.costs(max(self.heads, default=None)))  # sizes that no layer can have raise here

    @property
    def frame_ms(self) -> float:
        """The audio that one output stands for, in ms."""
        return self.hop_ms * self._frames_per_output

    @property
    def input_size(self) -> int:
        """Values per frame below the recurrent layers and their projection."""
        *_, (channels, bands) = self._shapes()
        return channels * bands

    def links(self, frames: int | None) -> list[tuple[str, ReceptiveField]]:
        """The chain of receptive fields, for a head of so many frames (None: bidirectional)."""
        window, hop = self._window_samples, round(self.hop_ms * self.rate / 1000)
        links = [("window", ReceptiveField(right=window - 1, stride=hop, padded=False))]
        if self.stack > 1:
            field = ReceptiveField(right=self.stack - 1, stride=self.stack, padded=False)
            links.append(("stack", field))
        for number, convolution in enumerate(self.convolutions, start=1):
            links.append((f"convolution {number}", convolution.field))
        future = math.inf if self.bidirectional else 0
        links.append((f"{self.cell.upper()} layers", ReceptiveField(left=math.inf, right=future)))
        if frames is not None:
            links.append(("lookahead", ReceptiveField(right=frames)))
        return links

    def frames_in(self, seconds: float) -> int:
        """How many outputs a recording of so many seconds has when it is over.

        >>> plan = Blueprint()  # a frame of 40 ms whose window is 15 ms longer
        >>> [plan.frames_in(seconds) for seconds in (0.0, 0.054, 0.055, 0.5)]
        [0, 0, 1, 12]
        """
        count = round(seconds * self.rate)
        for _, field in self.links(None):
            count = field.total(count)
        return count

    def latency(
        self, frames: int | None, *, resampler_ms: float = 0.0, quantum_wait_ms: float = 0.0
    ) -> Latency:
        """The itemised algorithmic latency of a head, see `algorithmic_latency`."""
        return algorithmic_latency(
            self.links(frames),
            rate=self.rate,
            resampler_ms=resampler_ms,
            quantum_wait_ms=quantum_wait_ms,
        )

    def costs(self, frames: int | None) -> Iterator[tuple[str, Cost]]:
        """Each layer's name and cost per output of the model, while the head of `frames` runs.

        Parameters are those of the whole model, that is of all heads.
        """
        runs = self._frames_per_output
        window = self._window_samples
        # Mel filters come after a transform of 2ᵏ points, as in Kaldi.
        dft = window if self.mels is None else 1 << (window - 1).bit_length()
        features = features_cost(window, self.mels, dft_samples=dft)
        yield f"features {window} → {self._bands}", features.times(runs)
        runs //= self.stack
        shapes = self._shapes()
        channels, bands = next(shapes)
        scales = Cost()
        for number, convolution in enumerate(self.convolutions, start=1):
            before, (channels, bands) = (channels, bands), next(shapes)
            runs //= convolution.stride
            cost = convolution_cost(
                before[0] if convolution.band_kernel else before[0] * before[1],
                channels,
                convolution.kernel,
                band_kernel=convolution.band_kernel or 1,
                bands=bands,
            )
            name = f"convolution {number} {before[0]}×{before[1]} → {channels}×{bands}"
            yield name, cost.times(runs)
            scales += batch_norm_cost(channels)
        size = channels * bands
        if self.project:
            yield f"projection {size} → {self.hidden}", linear_cost(size, self.hidden)
            size = self.hidden
        width = self.hidden * (2 if self.bidirectional and self.merge == "concat" else 1)
        norm = Cost()
        for number in range(1, self.layers + 1):
            cost = recurrent_cost(
                self.cell,
                size,
                self.hidden,
                biases=self.biases,
                bidirectional=self.bidirectional,
                merge=self.merge,
                share_input=self.share_input,
            )
            yield f"{self.cell.upper()} {number} {size} → {width}", cost
            norm += layer_norm_cost(size)
            projections = 1 if self.share_input else 1 + self.bidirectional
            scales += batch_norm_cost(GATES[self.cell] * self.hidden * projections)
            size = width
        if self.batch_norm:
            yield f"batch norm × {len(self.convolutions) + self.layers}", scales
        if self.layer_norm:
            yield f"layer norm × {self.layers + 1}", norm + layer_norm_cost(width)
        if frames is not None:
            heads = [lookahead_cost(width, head, mixing=self.mixing) for head in self.heads]
            running = lookahead_cost(width, frames, mixing=self.mixing)
            parameters = sum(cost.parameters for cost in heads)
            name = f"lookahead {', '.join(map(str, self.heads))}"
            yield name, Cost(parameters=parameters, flops_per_frame=running.flops_per_frame)
        if self.output_hidden:
            yield f"output {width} → {width}", linear_cost(width, width)
        yield f"output {width} → {self.outputs}", linear_cost(width, self.outputs)

    @property
    def _window_samples(self) -> int:
        return round(self.window_ms * self.rate / 1000)

    @property
    def _bands(self) -> int:
        return self._window_samples // 2 + 1 if self.mels is None else self.mels

    @property
    def _frames_per_output(self) -> int:
        return math.prod((self.stack, *(convolution.stride for convolution in self.convolutions)))

    def _shapes(self) -> Iterator[tuple[int, int]]:
        """(channels, bands) of a frame below the convolutions and above each."""
        channels, bands = self.stack, self._bands
        yield channels, bands
        for convolution in self.convolutions:
            bands = -(-bands // convolution.band_stride) if convolution.band_kernel else 1
            channels = convolution.channels
            yield channels, bands
