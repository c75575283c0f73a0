"""The configuration of a recogniser, with its latency and its cost."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nearfuture.budget.attention import AttentionConfig
from nearfuture.budget.check import positive
from nearfuture.budget.component import ConvolutionConfig, FeatureConfig, RecurrenceConfig
from nearfuture.budget.cost import (
    GATES,
    Cost,
    batch_norm_cost,
    convolution_cost,
    features_cost,
    layer_norm_cost,
    linear_cost,
    lookahead_cost,
)
from nearfuture.budget.field import ReceptiveField
from nearfuture.budget.json_values import from_json_values
from nearfuture.budget.latency import Latency, algorithmic_latency
from nearfuture.error import NearfutureError
from nearfuture.text import Vocabulary


@dataclass(frozen=True, kw_only=True)
class RecognizerConfig:
    """Everything that makes a recogniser, but its weights; it round-trips through JSON.

    The defaults are this project's small model for telephone audio, English letters.

    Args:
        symbols: the vocabulary, without the blank.
        features: the spectra.
        stack: consecutive spectra that are read as one frame.
        convolutions: those between the features and the recurrent layers.
        projection: a linear layer below the recurrent layers, to their width.
        recurrence: the recurrent layers; None where there is `attention`.
        attention: self-attention layers in the place of the recurrent ones.
        batch_norm: a batch normalisation above each convolution and on each recurrent layer's input
            projection (Deep Speech 2 §3.2); its shift is their one bias.
        heads: the lookahead τ of each head in frames; empty in a bidirectional model.
        mixing: lookaheads of whole matrices instead of one weight per channel.
        output_hidden: a linear layer more below the output, as wide as the layers.
        dropout: share of a layer's outputs that training drops.

    Raises:
        NearfutureError: for sizes that make no model, or for options that have no effect.

    >>> config = RecognizerConfig()
    >>> [config.latency(frames).worst_ms for frames in config.heads]
    [55.0, 215.0, 375.0, 815.0]
    >>> config.frame_ms
    40.0
    >>> RecognizerConfig.from_json(config.to_json()) == config
    True
    """

    symbols: tuple[str, ...] = Vocabulary.english().symbols
    features: FeatureConfig = field(default_factory=FeatureConfig)
    stack: int = 4
    convolutions: tuple[ConvolutionConfig, ...] = ()
    projection: bool = True
    recurrence: RecurrenceConfig | None = field(default_factory=RecurrenceConfig)
    attention: AttentionConfig | None = None
    batch_norm: bool = False
    heads: tuple[int, ...] = (0, 4, 8, 19)
    mixing: bool = False
    output_hidden: bool = True
    dropout: float = 0.1

    def __post_init__(self) -> None:
        positive(stack=self.stack)
        if (self.recurrence is None) == (self.attention is None):
            raise NearfutureError(
                "the layers of a model are recurrent or attend: set one of `recurrence` and "
                "`attention`, and the other to None",
                code="conflict",
                parameter="attention",
            )
        heads, bidirectional = self.heads, self.bidirectional
        if bidirectional and (heads or self.mixing):
            raise NearfutureError(
                f"a lookahead of {heads} frames above bidirectional layers waits for what is "
                f"already there; leave it out, or make the layers unidirectional",
                code="conflict",
                parameter="heads" if heads else "mixing",
            )
        if not bidirectional and not heads:
            raise NearfutureError(
                "a streaming model needs at least one lookahead in `heads`; 0 is causal",
                parameter="heads",
            )
        if any(frames < 0 for frames in heads):
            raise NearfutureError(
                f"a lookahead must be 0 frames or more, not {min(heads)}",
                code="out_of_range",
                parameter="heads",
            )
        if len(set(heads)) < len(heads):
            raise NearfutureError(
                f"`heads` must be different lookaheads, not {heads}", parameter="heads"
            )
        if self.attention is not None:
            self._check_attention(self.attention)
        if self.batch_norm and self.recurrence is not None and self.recurrence.biases != 1:
            raise NearfutureError(
                f"the shift of a batch norm is the one bias of each gate: set `biases=1`, not "
                f"{self.recurrence.biases}",
                code="conflict",
                parameter="biases",
            )
        if not 0 <= self.dropout < 1:
            raise NearfutureError(
                f"`dropout` must be 0 or more and below 1, not {self.dropout}",
                code="out_of_range",
                parameter="dropout",
            )

    def _check_attention(self, attention: AttentionConfig) -> None:
        if self.batch_norm:
            raise NearfutureError(
                "`batch_norm` is about recurrent layers and what is below them; attention layers "
                "have layer norms: set it to False",
                code="conflict",
                parameter="batch_norm",
            )
        if not self.projection:
            raise NearfutureError(
                f"attention layers read frames of their own width, {attention.hidden}: set "
                f"`projection=True`",
                code="conflict",
                parameter="projection",
            )

    @property
    def encoder(self) -> RecurrenceConfig | AttentionConfig:
        """The layers between the front end and the heads, whichever kind they are."""
        encoder = self.recurrence or self.attention
        assert encoder is not None
        return encoder

    @property
    def bidirectional(self) -> bool:
        """Whether the model needs the whole recording before its first output."""
        return self.encoder.bidirectional

    @property
    def frame_ms(self) -> float:
        """The audio that one output stands for, in ms."""
        return self.features.hop_ms * self._spectra_per_output

    @property
    def lookaheads(self) -> tuple[int | None, ...]:
        """The lookahead of each head in frames; (None,) where the one head waits for the end."""
        return self.heads or (None,)

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON file; the kind of layers that the model lacks is left out."""
        values = dataclasses.asdict(self)
        del values["attention" if self.attention is None else "recurrence"]
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RecognizerConfig:
        """The inverse of `to_json`; an unknown field is an error, and so are missing symbols."""
        if "symbols" not in values:
            raise NearfutureError(
                "the configuration of a recogniser needs its vocabulary, `symbols`",
                parameter="symbols",
            )
        parts: dict[str, Any] = dict(values)
        if "attention" in parts:
            parts.setdefault("recurrence", None)
        for name, kind in _PARTS.items():
            if parts.get(name) is not None:
                parts[name] = from_json_values(kind, parts[name])
        if isinstance(shapes := parts.get("convolutions"), list | tuple):
            parts["convolutions"] = tuple(
                from_json_values(ConvolutionConfig, each) for each in shapes
            )
        return from_json_values(cls, parts)

    def replace(self, **changes: Any) -> RecognizerConfig:
        """A copy with other values of some fields: its own, or those of its features and layers.

        Raises:
            NearfutureError: for a field that neither has.

        >>> RecognizerConfig().replace(rate=16000, hidden=96, heads=(0, 8)).features.rate
        16000
        """
        for name in _PARTS:
            part = changes.get(name, getattr(self, name))
            if part is None:
                continue
            known = {each.name for each in dataclasses.fields(part)}
            inner = {each: changes.pop(each) for each in known & set(changes)}
            if inner:
                changes[name] = dataclasses.replace(part, **inner)
        own = {each.name for each in dataclasses.fields(self)}
        for name in changes:
            if name in own:
                continue
            kind = "recurrent" if self.attention is None else "attention"
            raise NearfutureError(
                f"`{name}` is no size of a model with {kind} layers",
                code="conflict",
                parameter=name,
            )
        return dataclasses.replace(self, **changes)

    def twin(self) -> RecognizerConfig:
        """The bidirectional model of the same width and depth.

        Attention layers see the whole sequence, and their convolutions as much of the future as of
        the past.

        >>> RecognizerConfig().twin().latency(None).worst_ms
        inf
        """
        if self.attention is not None:
            return self.replace(heads=(), mixing=False, chunk=None, left_chunks=0, right_context=0)
        return self.replace(
            heads=(), mixing=False, bidirectional=True, merge="sum", share_input=self.batch_norm
        )

    def check_head(self, lookahead_frames: int | None) -> None:
        """Refuse a lookahead that no head has; None is the head of a bidirectional model."""
        if lookahead_frames in self.lookaheads:
            return
        if self.heads:
            raise NearfutureError(
                f"this streaming model has heads for a lookahead of "
                f"{', '.join(map(str, self.heads))} frames, not {lookahead_frames}",
                code="not_found",
                parameter="lookahead_frames",
            )
        raise NearfutureError(
            f"this model is bidirectional: its only head is None, not {lookahead_frames}",
            code="not_found",
            parameter="lookahead_frames",
        )

    def links(self, lookahead_frames: int | None) -> list[tuple[str, ReceptiveField]]:
        """The receptive fields of the layers of a head, in order and by name."""
        self.check_head(lookahead_frames)
        window, hop = self.features.window_samples, self.features.hop_samples
        links = [("window", ReceptiveField(right=window - 1, stride=hop, padded=False))]
        if self.stack > 1:
            stack = ReceptiveField(right=self.stack - 1, stride=self.stack, padded=False)
            links.append(("stack", stack))
        for number, convolution in enumerate(self.convolutions, start=1):
            links.append((f"convolution {number}", convolution.field))
        if self.attention is not None:
            links.append((f"{self.attention.block} layers", self.attention.field))
        else:
            assert self.recurrence is not None
            future = math.inf if self.bidirectional else 0
            layers = f"{self.recurrence.cell.upper()} layers"
            links.append((layers, ReceptiveField(left=math.inf, right=future)))
        if lookahead_frames is not None:
            links.append(("lookahead", ReceptiveField(right=lookahead_frames)))
        return links

    def frames_in(self, seconds: float) -> int:
        """Return the number of outputs of a complete recording of so many seconds.

        >>> config = RecognizerConfig()  # a frame of 40 ms whose window is 15 ms longer
        >>> [config.frames_in(seconds) for seconds in (0.0, 0.054, 0.055, 0.5)]
        [0, 0, 1, 12]
        """
        count = round(seconds * self.features.rate)
        for _, link in self.links(self.lookaheads[0]):
            count = link.total(count)
        return count

    def latency(
        self,
        lookahead_frames: int | None,
        *,
        resampler_ms: float = 0.0,
        quantum_wait_ms: float = 0.0,
    ) -> Latency:
        """Return the itemised algorithmic latency of a head, see `algorithmic_latency`."""
        return algorithmic_latency(
            self.links(lookahead_frames),
            rate=self.features.rate,
            resampler_ms=resampler_ms,
            quantum_wait_ms=quantum_wait_ms,
        )

    def costs(self, lookahead_frames: int | None) -> Iterator[tuple[str, Cost]]:
        """Each layer's name and cost per output of the model, while one of its heads runs.

        Parameters are those of the whole model, that is of all heads.
        """
        features, width = self.features, self.encoder.output_size
        runs = self._spectra_per_output
        window = features.window_samples
        spectrum = features_cost(window, features.mel_bins, dft_samples=features.fft_size)
        yield f"features {window} → {features.bins}", spectrum.times(runs)
        runs //= self.stack
        channels, bands = self.stack, features.bins
        batch_norms = Cost()
        for number, convolution in enumerate(self.convolutions, start=1):
            below = f"{channels}×{bands}"
            inputs = channels if convolution.band_kernel else channels * bands
            channels = convolution.channels
            bands = -(-bands // convolution.band_stride) if convolution.band_kernel else 1
            runs //= convolution.stride
            cost = convolution_cost(
                inputs,
                channels,
                convolution.kernel,
                band_kernel=convolution.band_kernel or 1,
                bands=bands,
            )
            yield f"convolution {number} {below} → {channels}×{bands}", cost.times(runs)
            batch_norms += batch_norm_cost(channels)
        size = channels * bands
        if self.projection:
            hidden = self.encoder.hidden
            yield f"projection {size} → {hidden}", linear_cost(size, hidden)
            size = hidden
        if self.recurrence is not None:
            yield from self._recurrence_costs(self.recurrence, size, batch_norms)
        if self.attention is not None:
            for number in range(1, self.attention.layers + 1):
                yield f"{self.attention.block} {number}", self.attention.cost()
            if self.attention.block == "transformer":
                yield "layer norm", layer_norm_cost(width)
        if lookahead_frames is not None:
            costs = {head: lookahead_cost(width, head, mixing=self.mixing) for head in self.heads}
            stored = sum(cost.parameters for cost in costs.values())
            running = costs[lookahead_frames].flops_per_frame
            name = f"lookahead {', '.join(map(str, self.heads))}"
            yield name, Cost(parameters=stored, flops_per_frame=running)
        if self.output_hidden:
            yield f"output {width} → {width}", linear_cost(width, width)
        outputs = len(self.symbols) + 1
        yield f"output {width} → {outputs}", linear_cost(width, outputs)

    def _recurrence_costs(
        self, recurrence: RecurrenceConfig, size: int, batch_norms: Cost
    ) -> Iterator[tuple[str, Cost]]:
        """The layers above `size` values a frame, and the norms of the convolutions below."""
        width, layer_norms = recurrence.output_size, Cost()
        for number in range(1, recurrence.layers + 1):
            yield f"{recurrence.cell.upper()} {number} {size} → {width}", recurrence.cost(size)
            layer_norms += layer_norm_cost(size)
            projections = 1 if recurrence.share_input else 1 + recurrence.bidirectional
            gates = GATES[recurrence.cell] * recurrence.hidden
            batch_norms += batch_norm_cost(gates * projections)
            size = width
        if self.batch_norm:
            yield f"batch norm × {len(self.convolutions) + recurrence.layers}", batch_norms
        if recurrence.layer_norm:
            yield f"layer norm × {recurrence.layers + 1}", layer_norms + layer_norm_cost(width)

    @property
    def _spectra_per_output(self) -> int:
        strides = (convolution.stride for convolution in self.convolutions)
        return math.prod((self.stack, *strides))


_PARTS = {
    "features": FeatureConfig,
    "recurrence": RecurrenceConfig,
    "attention": AttentionConfig,
}
