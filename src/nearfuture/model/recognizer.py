"""The acoustic model: waveform in, log-probabilities of characters out, one head for every budget.

    PCM ─ log-mel ─ stack ─ project ─ K × (LayerNorm, GRU, shortcut) ─┬─ Lookahead τ₁ ─ output
                                                                      ├─ Lookahead τ₂ ─ output
                                                                      └─ …

The bidirectional twin has the same width and depth, reads both ways and has no lookahead: it knows
the whole future already. With `batch_norm` it is Deep Speech 2:

    PCM ─ log spectrum ─ convolutions ─ K × GRU over B(W x) ─ Lookahead τ ─ output
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from torch import Tensor, nn

from nearfuture.budget import Cell, ReceptiveField
from nearfuture.error import NearfutureError
from nearfuture.layers import (
    GRU,
    LSTM,
    RNN,
    Bidirectional,
    Convolution,
    Convolution2d,
    LayerNorm,
    Lookahead,
    Pointwise,
    Recurrent,
    Residual,
    SequenceBatchNorm,
    Serial,
    Stack,
    StreamingLayer,
)
from nearfuture.layers.cell import CLIP
from nearfuture.model.configuration import RecognizerConfig
from nearfuture.model.features import LogMel, LogSpectrum
from nearfuture.text import Vocabulary

_CELLS: dict[Cell, Callable[..., Recurrent]] = {
    "rnn": partial(RNN, nonlinearity="clipped_relu"),
    "gru": GRU,
    "lstm": LSTM,
}


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
        self.features = _features(config)
        front = _front(config, self.features.output_size)
        size = front[-1].output_size
        blocks = [_block(config, width if i else size) for i in range(config.layers)]
        top = [] if config.batch_norm else [LayerNorm(width)]
        self.encoder = Serial(*front, *blocks, *top)
        self.lookahead = Lookahead(width, config.frames) if config.frames else None
        symbols = len(self.vocabulary)
        hidden = [nn.Linear(width, width), nn.SiLU(), nn.Dropout(config.dropout)]
        last = [nn.Linear(width, symbols), nn.LogSoftmax(dim=-1)]
        output = nn.Sequential(*([] if config.batch_norm else hidden), *last)
        self.output = Pointwise(output, width, symbols)

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
        links = [("window", self.features.field)]
        for layer in self.encoder:
            if isinstance(layer, Stack):
                links.append(("stack", layer.field))
            if isinstance(layer, Convolution | Convolution2d):
                number = sum(name.startswith("convolution") for name, _ in links) + 1
                links.append((f"convolution {number}", layer.field))
        if tau is None:
            both = ReceptiveField(left=math.inf, right=math.inf)
            return [*links, (f"{self.config.cell.upper()} layers", both)]
        return [*links, ("lookahead", ReceptiveField(right=tau))]

    def _check(self, tau: int | None) -> None:
        if tau not in (self.config.frames or (None,)):
            heads = ", ".join(map(str, self.config.frames))
            raise NearfutureError(
                f"this streaming model has heads for a lookahead of {heads} frames, not {tau}"
                if heads
                else f"this model is bidirectional: its only head is None, not {tau}"
            )


def _features(config: RecognizerConfig) -> LogMel | LogSpectrum:
    rate, window_ms, hop_ms, floor = config.rate, config.window_ms, config.hop_ms, config.floor
    if config.mel_bins is None:
        return LogSpectrum(rate, window_ms=window_ms, hop_ms=hop_ms, floor=floor)
    return LogMel(rate, window_ms=window_ms, hop_ms=hop_ms, bins=config.mel_bins, floor=floor)


def _front(config: RecognizerConfig, bands: int) -> list[StreamingLayer]:
    """What lies between the features and the recurrent layers."""
    layers: list[StreamingLayer] = []
    if config.stack > 1 or not config.convolutions:
        layers.append(Stack(bands, config.stack))
    channels, size = config.stack, config.stack * bands
    for shape in config.convolutions:
        left, right, stride = int(shape.field.left), int(shape.field.right), shape.stride
        bias = not config.batch_norm
        convolution: Convolution | Convolution2d
        if shape.band_kernel is None:
            bands = 1
            convolution = Convolution(
                size, shape.channels, left=left, right=right, stride=stride, bias=bias
            )
        else:
            convolution = Convolution2d(
                (channels, shape.channels),
                bands=bands,
                band_kernel=shape.band_kernel,
                band_stride=shape.band_stride,
                left=left,
                right=right,
                stride=stride,
                bias=bias,
            )
            bands = convolution.bands
        channels, size = shape.channels, convolution.output_size
        layers.append(convolution)
        if config.batch_norm:
            layers.append(SequenceBatchNorm(size, bands=bands))
        layers.append(Pointwise(nn.Hardtanh(0.0, CLIP), size))
    if not config.batch_norm:
        layers.append(Pointwise(nn.Linear(size, config.hidden), size, config.hidden))
    return layers


def _block(config: RecognizerConfig, size: int) -> StreamingLayer:
    """One recurrent layer and what belongs to it; `size` features in."""
    width = config.hidden
    size = size if config.batch_norm else width
    cell = _CELLS[config.cell](size, width, batch_norm=config.batch_norm)
    recurrent: StreamingLayer = cell
    if config.bidirectional:
        recurrent = Bidirectional(cell, merge="sum", share_input=config.batch_norm)
    dropout = Pointwise(nn.Dropout(config.dropout), width)
    if config.batch_norm:
        return Serial(recurrent, dropout) if config.dropout else recurrent
    return Residual(Serial(LayerNorm(width), recurrent, dropout))
