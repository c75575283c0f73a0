"""The acoustic model: waveform in, log-probabilities of characters out, one head for every budget.

    PCM ─ log-mel ─ stack ─ project ─ K × (LayerNorm, GRU, shortcut) ─┬─ Lookahead τ₁ ─ output
                                                                      ├─ Lookahead τ₂ ─ output
                                                                      └─ …

The bidirectional twin has the same width and depth, reads both ways and has no lookahead: it knows
the whole future already.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from nearfuture.budget import ReceptiveField
from nearfuture.error import NearfutureError
from nearfuture.layers import (
    GRU,
    Bidirectional,
    LayerNorm,
    Lookahead,
    Pointwise,
    Residual,
    Serial,
    Stack,
    StreamingLayer,
)
from nearfuture.speech.features import LogMel
from nearfuture.text import Vocabulary

__all__ = ["Recognizer", "RecognizerConfig"]


@dataclass(frozen=True, kw_only=True)
class RecognizerConfig:
    """Everything that makes a `Recognizer`, but its weights.

    Attributes:
        symbols: the vocabulary, without the blank.
        rate: samples per second the model hears.
        window_ms, hop_ms, mel_bins: the log-mel features.
        stack: feature frames per model frame; 4 × 10 ms is one frame of 40 ms.
        hidden: width H of every recurrent layer.
        layers: number of recurrent layers.
        frames: lookahead τ of every head, in model frames; empty for the bidirectional twin.
        bidirectional: read both ways, directions summed.
        dropout: share of a layer's outputs that training drops.

    Raises:
        NearfutureError: for a bidirectional model with lookahead heads, or a streaming one without.

    >>> config = RecognizerConfig(symbols=("a", "b"))
    >>> RecognizerConfig.from_json(config.to_json()) == config
    True
    """

    symbols: tuple[str, ...]
    rate: int = 8000
    window_ms: float = 25.0
    hop_ms: float = 10.0
    mel_bins: int = 40
    stack: int = 4
    hidden: int = 192
    layers: int = 3
    frames: tuple[int, ...] = (0, 4, 8, 19)
    bidirectional: bool = False
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if self.bidirectional and self.frames:
            raise NearfutureError(
                f"a bidirectional model has seen the whole future already: lookahead heads "
                f"{self.frames} would add nothing; leave frames empty"
            )
        if not self.bidirectional and not self.frames:
            raise NearfutureError("a streaming model needs a lookahead head or more, e.g. (0, 8)")

    @property
    def frame_ms(self) -> float:
        """Milliseconds of audio a model frame stands for."""
        return self.hop_ms * self.stack

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
        lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
        return cls(**{**values, **lists})

    def twin(self) -> RecognizerConfig:
        """The bidirectional model of the same width and depth."""
        return dataclasses.replace(self, frames=(), bidirectional=True)


class Recognizer(nn.Module):
    """Waveform → log-probabilities, one head for every lookahead budget (Deep Speech 2 §3).

    `features`, `encoder` and `output` are shared by all heads; `at(τ)` is the streaming layer of
    one budget, from PCM samples to log-probabilities, to which the laws apply.

    Args:
        config: the shape of it.

    >>> import torch
    >>> model = Recognizer(RecognizerConfig(symbols=tuple("abc"), hidden=8, layers=1)).eval()
    >>> layer = model.at(8)
    >>> layer.field.stride, (layer.field.right + 1) / 8  # samples, ms
    (320, 375.0)
    >>> y, n = layer(torch.zeros(1, 8000, 1), torch.tensor([8000]))
    >>> tuple(y.shape)
    (1, 24, 4)
    """

    def __init__(self, config: RecognizerConfig) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = Vocabulary(config.symbols)
        width = config.hidden
        self.features = LogMel(
            config.rate,
            window_ms=config.window_ms,
            hop_ms=config.hop_ms,
            bins=config.mel_bins,
        )
        stack = Stack(config.mel_bins, config.stack)
        project = Pointwise(nn.Linear(stack.output_size, width), stack.output_size, width)
        blocks = [_block(config) for _ in range(config.layers)]
        self.encoder = Serial(stack, project, *blocks, LayerNorm(width))
        self.lookahead = Lookahead(width, config.frames) if config.frames else None
        symbols = len(self.vocabulary)
        self.output = Pointwise(
            nn.Sequential(
                nn.Linear(width, width),
                nn.SiLU(),
                nn.Dropout(config.dropout),
                nn.Linear(width, symbols),
                nn.LogSoftmax(dim=-1),
            ),
            width,
            symbols,
        )

    def at(self, tau: int | None) -> Serial:
        """The whole chain of one budget as a layer; `None` for the bidirectional model."""
        self._check(tau)
        layers: list[StreamingLayer] = [self.features, self.encoder]
        if tau is not None and self.lookahead is not None:
            layers.append(self.lookahead.at(tau))
        return Serial(*layers, self.output)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[list[Tensor], Tensor]:
        """Every head from features (B, T, M): log-probabilities (B, T', V) each, and lengths T'."""
        x, lengths = self.encoder(features, lengths)
        if self.lookahead is None:
            return [self.output(x, lengths)[0]], lengths
        heads = self.lookahead.all(x, lengths)
        return [self.output(head, lengths)[0] for head in heads], lengths

    def links(self, tau: int | None) -> Sequence[tuple[str, ReceptiveField]]:
        """What waits for the future, in order, by name: what `algorithmic_latency` itemises."""
        self._check(tau)
        links = [("window", self.features.field), ("stack", next(iter(self.encoder)).field)]
        if tau is None:
            return [*links, ("bidirectional layers", ReceptiveField(left=math.inf, right=math.inf))]
        return [*links, ("lookahead", ReceptiveField(right=tau))]

    def _check(self, tau: int | None) -> None:
        if tau not in (self.config.frames or (None,)):
            heads = ", ".join(map(str, self.config.frames))
            raise NearfutureError(
                f"this streaming model has heads for a lookahead of {heads} frames, not {tau}"
                if heads
                else f"this model is bidirectional: its only head is None, not {tau}"
            )


def _block(config: RecognizerConfig) -> Residual:
    width = config.hidden
    recurrent: StreamingLayer = GRU(width, width)
    if config.bidirectional:
        recurrent = Bidirectional(GRU(width, width), merge="sum")
    dropout = Pointwise(nn.Dropout(config.dropout), width)
    return Residual(Serial(LayerNorm(width), recurrent, dropout))
