"""What makes a recogniser, but its weights: plain values that a file can hold."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from nearfuture.budget import Blueprint, Cell, ConvolutionShape
from nearfuture.budget.cost import GATES
from nearfuture.error import NearfutureError


@dataclass(frozen=True, kw_only=True)
class RecognizerConfig:
    """Everything that makes a `Recognizer`, but its weights.

    Attributes:
        symbols: the vocabulary, without the blank.
        rate: samples per second the model hears.
        window_ms, hop_ms, mel_bins, floor: the log-mel features.
        stack: feature frames per model frame; 4 × 10 ms is one frame of 40 ms.
        hidden: width H of every recurrent layer.
        layers: number of recurrent layers.
        frames: lookahead τ of every head, in model frames; empty for the bidirectional twin.
        bidirectional: read both ways, directions summed.
        batch_norm: Deep Speech 2's plain stack. Convolutions and input projections are normalised
            by the batch, and two directions share them; there are no layer norms and shortcuts, no
            projection below and no hidden layer above.
        dropout: share of a layer's outputs that training drops.

    Raises:
        NearfutureError: for a bidirectional model with lookahead heads, a streaming one without, or
            a cell that is none.

    >>> config = RecognizerConfig(symbols=("a", "b"))
    >>> RecognizerConfig.from_json(config.to_json()) == config
    True
    """

    symbols: tuple[str, ...]
    rate: int = 8000
    window_ms: float = 25.0
    hop_ms: float = 10.0
    mel_bins: int | None = 40
    floor: float = 1e-7
    stack: int = 4
    convolutions: tuple[ConvolutionShape, ...] = ()
    cell: Cell = "gru"
    hidden: int = 192
    layers: int = 3
    frames: tuple[int, ...] = (0, 4, 8, 19)
    bidirectional: bool = False
    batch_norm: bool = False
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if self.bidirectional and self.frames:
            raise NearfutureError(
                f"a bidirectional model has seen the whole future already: lookahead heads "
                f"{self.frames} would add nothing; leave frames empty"
            )
        if not self.bidirectional and not self.frames:
            raise NearfutureError("a streaming model needs a lookahead head or more, e.g. (0, 8)")
        if self.cell not in GATES:
            raise NearfutureError(f"a cell is one of {', '.join(GATES)}, not {self.cell!r}")

    @property
    def frame_ms(self) -> float:
        """Milliseconds of audio a model frame stands for."""
        strides = math.prod(shape.stride for shape in self.convolutions)
        return self.hop_ms * self.stack * strides

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> RecognizerConfig:
        """The inverse of `to_json`; an unknown key is an error, and so are missing symbols."""
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := set(values) - known:
            raise NearfutureError(f"a recogniser has no option {', '.join(sorted(unknown))}")
        if "symbols" not in values:
            raise NearfutureError("a recogniser needs its vocabulary: symbols")
        if "convolutions" in values:
            shapes = [ConvolutionShape(**shape) for shape in values["convolutions"]]
            values = {**values, "convolutions": shapes}
        lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
        return cls(**{**values, **lists})

    def twin(self) -> RecognizerConfig:
        """The bidirectional model of the same width and depth."""
        return dataclasses.replace(self, frames=(), bidirectional=True)

    def blueprint(self) -> Blueprint:
        """The same sizes as a plan: what such a model waits for and what it costs.

        >>> RecognizerConfig(symbols=("a", "b")).blueprint().latency(8).worst_ms
        375.0
        """
        return Blueprint(
            rate=self.rate,
            window_ms=self.window_ms,
            hop_ms=self.hop_ms,
            mels=self.mel_bins,
            stack=self.stack,
            convolutions=self.convolutions,
            project=not self.batch_norm,
            cell=self.cell,
            hidden=self.hidden,
            layers=self.layers,
            biases=1 if self.batch_norm else 2,
            bidirectional=self.bidirectional,
            merge="sum" if self.bidirectional else "concat",
            share_input=self.bidirectional and self.batch_norm,
            batch_norm=self.batch_norm,
            layer_norm=not self.batch_norm,
            heads=self.frames,
            output_hidden=not self.batch_norm,
            outputs=len(self.symbols) + 1,
        )
