"""The acoustic model: waveform in, log-probabilities of characters out, one head for every budget.

    PCM ─ log-mel ─ stack ─ project ─ K × (LayerNorm, GRU, shortcut) ─┬─ Lookahead τ₁ ─ output
                                                                      ├─ Lookahead τ₂ ─ output
                                                                      └─ …

The bidirectional twin has the same width and depth, reads both ways and has no lookahead: its
backward direction has read the whole future. Deep Speech 2 is the same without layer norms,
shortcuts and projection, and with batch norms:

    PCM ─ log spectrum ─ convolutions ─ K × GRU over B(W x) ─ Lookahead τ ─ output

With attention, Transformer or Conformer blocks stand in the place of the recurrent layers. They
emit a chunk at once, which the heads above them pass on:

    PCM ─ log-mel ─ stack ─ project ─ K × block of chunked attention ─ Lookahead τ ─ output
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

from nearfuture.budget import (
    AttentionConfig,
    Cell,
    FeatureConfig,
    RecognizerConfig,
    RecurrenceConfig,
)
from nearfuture.error import NearfutureError
from nearfuture.layers import (
    GRU,
    LSTM,
    RNN,
    AttentionMask,
    Bidirectional,
    ChunkedMask,
    ConformerBlock,
    Convolution,
    Convolution2d,
    FullMask,
    LayerNorm,
    Lookahead,
    Pointwise,
    Recurrent,
    Residual,
    RotaryPositions,
    SelfAttention,
    SequenceBatchNorm,
    Serial,
    Stack,
    StreamingLayer,
    TransformerBlock,
)
from nearfuture.layers.cell import CLIP
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
        config: the layers and their sizes.

    >>> import torch
    >>> from nearfuture.budget import RecurrenceConfig
    >>> model = Recognizer(RecognizerConfig(recurrence=RecurrenceConfig(hidden=8, layers=1))).eval()
    >>> layer = model.at(8)
    >>> layer.field.stride, (layer.field.right + 1) / 8  # samples, ms
    (320, 375.0)
    >>> y, n = layer(torch.zeros(1, 8000, 1), torch.tensor([8000]))
    >>> tuple(y.shape)
    (1, 24, 29)
    """

    def __init__(self, config: RecognizerConfig) -> None:
        super().__init__()
        _check_buildable(config)
        self.config = config
        self.vocabulary = Vocabulary(config.symbols)
        self.features = _features(config.features)
        below = _front(config, self.features.output_size)
        width = config.encoder.output_size
        self.encoder = Serial(*below, *_layers(config, below[-1].output_size))
        self.lookahead = Lookahead(width, config.heads) if config.heads else None
        symbols = len(self.vocabulary)
        hidden = [nn.Linear(width, width), nn.SiLU(), nn.Dropout(config.dropout)]
        last = [nn.Linear(width, symbols), nn.LogSoftmax(dim=-1)]
        output = nn.Sequential(*(hidden if config.output_hidden else []), *last)
        self.output = Pointwise(output, width, symbols)

    def at(self, tau: int | None) -> Serial:
        """The whole chain of one budget as a layer; `None` for the bidirectional model."""
        self.config.check_head(tau)
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


def _check_buildable(config: RecognizerConfig) -> None:
    """Refuse options that `RecognizerConfig.costs` can price and no layer implements."""
    if config.mixing:
        raise NearfutureError(
            "no lookahead layer mixes channels: `mixing=True` can only be priced",
            code="unsupported",
            parameter="mixing",
        )
    if config.recurrence is not None and config.recurrence.biases == 1 and not config.batch_norm:
        raise NearfutureError(
            "a recurrent layer has two biases per gate or none, unless `batch_norm=True`: "
            "`biases=1` can only be priced",
            code="unsupported",
            parameter="biases",
        )


def _features(config: FeatureConfig) -> LogMel | LogSpectrum:
    options = dataclasses.asdict(config)
    if config.mel_bins is not None:
        return LogMel(**options)
    del options["mel_bins"]
    return LogSpectrum(**options)


def _front(config: RecognizerConfig, bands: int) -> list[StreamingLayer]:
    """The layers between the features and the recurrent or attention layers."""
    layers: list[StreamingLayer] = []
    if config.stack > 1 or not config.convolutions:
        layers.append(Stack(bands, config.stack))
    channels, size = config.stack, config.stack * bands
    for shape in config.convolutions:
        window: dict[str, Any] = {
            "left": int(shape.field.left),
            "right": int(shape.field.right),
            "stride": shape.stride,
            "bias": not config.batch_norm,
        }
        convolution: Convolution | Convolution2d
        if shape.band_kernel is None:
            bands = 1
            convolution = Convolution(size, shape.channels, **window)
        else:
            convolution = Convolution2d(
                (channels, shape.channels),
                bands=bands,
                band_kernel=shape.band_kernel,
                band_stride=shape.band_stride,
                **window,
            )
            bands = convolution.bands
        channels, size = shape.channels, convolution.output_size
        layers.append(convolution)
        if config.batch_norm:
            layers.append(SequenceBatchNorm(size, bands=bands))
        layers.append(Pointwise(nn.Hardtanh(0.0, CLIP), size))
    if config.projection:
        width = config.encoder.hidden
        layers.append(Pointwise(nn.Linear(size, width), size, width))
    return layers


def _layers(config: RecognizerConfig, size: int) -> list[StreamingLayer]:
    """The recurrent or attention layers above a front end of `size` features."""
    if config.attention is not None:
        shape = config.attention
        blocks = [_attention_block(shape, config.dropout) for _ in range(shape.layers)]
        # A Conformer block ends with a norm of its own.
        return [*blocks, *([LayerNorm(shape.hidden)] if shape.block == "transformer" else [])]
    assert config.recurrence is not None
    recurrence, width = config.recurrence, config.recurrence.output_size
    return [
        *(_block(config, recurrence, width if i else size) for i in range(recurrence.layers)),
        *([LayerNorm(width)] if recurrence.layer_norm else []),
    ]


def _attention_block(shape: AttentionConfig, dropout: float) -> StreamingLayer:
    """A block of self-attention, which streams unless it sees the whole sequence."""
    mask: AttentionMask = FullMask()
    if shape.chunk is not None:
        mask = ChunkedMask(
            chunk=shape.chunk, left_chunks=shape.left_chunks, right=shape.right_context
        )
    attention = SelfAttention(
        shape.hidden, shape.attention_heads, mask=mask, positions=RotaryPositions()
    )
    wide = shape.expansion * shape.hidden
    if shape.kernel is None:
        return TransformerBlock(attention, hidden=wide, dropout=dropout)
    return ConformerBlock(
        attention,
        left=int(shape.convolved.left),
        right=int(shape.convolved.right),
        hidden=wide,
        dropout=dropout,
    )


def _block(config: RecognizerConfig, shape: RecurrenceConfig, size: int) -> StreamingLayer:
    """A recurrent layer that reads `size` features, with the norm and the shortcut around it."""
    cell = _CELLS[shape.cell](
        size, shape.hidden, bias=shape.biases > 0, batch_norm=config.batch_norm
    )
    recurrent: StreamingLayer = cell
    if shape.bidirectional:
        recurrent = Bidirectional(cell, merge=shape.merge, share_input=shape.share_input)
    layers: list[StreamingLayer] = [LayerNorm(size)] if shape.layer_norm else []
    layers.append(recurrent)
    if config.dropout:
        layers.append(Pointwise(nn.Dropout(config.dropout), shape.output_size))
    block = Serial(*layers) if len(layers) > 1 else recurrent
    return Residual(block) if shape.residual and size == shape.output_size else block
