"""Every layer kind and option, each by name: a new layer is covered by adding one line."""

from collections.abc import Callable

import torch
from torch import nn

from nearfuture.layers import (
    GRU,
    LSTM,
    RNN,
    Bidirectional,
    CausalMask,
    ChunkedMask,
    ConformerBlock,
    Convolution,
    Convolution2d,
    CumulativeLayerNorm,
    DynamicChunks,
    FullMask,
    LayerNorm,
    Lookahead,
    Pointwise,
    RelativePositions,
    Residual,
    RMSNorm,
    RotaryPositions,
    SelfAttention,
    SequenceBatchNorm,
    Serial,
    SlidingMask,
    Stack,
    StreamingLayer,
    TransformerBlock,
)


def settled(layer: StreamingLayer) -> StreamingLayer:
    """The layer after three batches, so that its batch norms no longer leave an input as it is."""
    for module in layer.modules():
        if isinstance(module, SequenceBatchNorm):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias)
    for frames in (9, 6, 4):
        layer.train()(2 * torch.randn(3, frames, layer.input_size) + 1, torch.tensor([frames] * 3))
    return layer


LAYERS: dict[str, Callable[[], StreamingLayer]] = {
    # recurrent
    "rnn tanh": lambda: RNN(3, 4),
    "rnn relu": lambda: RNN(3, 4, nonlinearity="relu"),
    "rnn clipped relu": lambda: RNN(3, 4, nonlinearity="clipped_relu"),
    "rnn no bias": lambda: RNN(3, 4, bias=False),
    "gru": lambda: GRU(3, 4),
    "gru no bias": lambda: GRU(3, 4, bias=False),
    "lstm": lambda: LSTM(3, 4),
    "lstm no bias": lambda: LSTM(3, 4, bias=False),
    "rnn batch norm": lambda: settled(RNN(3, 4, batch_norm=True)),
    "rnn clipped batch norm": lambda: settled(
        RNN(3, 4, nonlinearity="clipped_relu", batch_norm=True)
    ),
    "gru batch norm": lambda: settled(GRU(3, 4, batch_norm=True)),
    "lstm batch norm": lambda: settled(LSTM(3, 4, batch_norm=True)),
    # lookahead
    "lookahead 0": lambda: Lookahead(3, 0),
    "lookahead 1": lambda: Lookahead(3, 1),
    "lookahead 3": lambda: Lookahead(3, 3),
    "lookahead 19": lambda: Lookahead(2, 19),
    "lookahead of several at 0": lambda: Lookahead(3, (0, 2, 5)).at(0),
    "lookahead of several at 2": lambda: Lookahead(3, (0, 2, 5)).at(2),
    "lookahead of several at 5": lambda: Lookahead(3, (0, 2, 5)).at(5),
    # convolution
    "convolution of one frame": lambda: Convolution(3, 2),
    "convolution causal": lambda: Convolution(3, 2, left=4),
    "convolution same": lambda: Convolution(3, 2, left=2, right=2),
    "convolution right only": lambda: Convolution(3, 2, right=3),
    "convolution no bias": lambda: Convolution(3, 2, left=1, right=1, bias=False),
    "convolution stride 2": lambda: Convolution(3, 2, left=1, right=1, stride=2),
    "convolution stride 2 causal": lambda: Convolution(3, 2, left=4, stride=2),
    "convolution stride 3": lambda: Convolution(3, 2, left=2, right=3, stride=3),
    "convolution stride 3 right only": lambda: Convolution(3, 2, right=2, stride=3),
    "convolution complete": lambda: Convolution(3, 2, right=2, padded=False),
    "convolution complete stride 2": lambda: Convolution(3, 2, right=2, stride=2, padded=False),
    "convolution complete stride 3": lambda: Convolution(3, 2, right=6, stride=3, padded=False),
    "convolution dilated": lambda: Convolution(3, 2, left=4, right=2, dilation=3),
    "convolution dilated off its frame": lambda: Convolution(3, 2, left=1, right=1, dilation=2),
    "convolution dilated stride": lambda: Convolution(3, 2, left=2, right=4, dilation=3, stride=2),
    "convolution dilated complete": lambda: Convolution(
        3, 2, right=4, dilation=2, stride=3, padded=False
    ),
    "convolution grouped": lambda: Convolution(4, 6, left=1, right=2, groups=2),
    "convolution depthwise": lambda: Convolution(3, 3, left=2, right=1, groups=3),
    "convolution depthwise dilated": lambda: Convolution(
        2, 4, left=6, dilation=3, groups=2, bias=False
    ),
    "convolution 2d": lambda: Convolution2d((1, 2), bands=3, band_kernel=3, left=1, right=1),
    "convolution 2d causal": lambda: Convolution2d((2, 1), bands=2, band_kernel=2, left=3),
    "convolution 2d strides": lambda: Convolution2d(
        (2, 2), bands=3, band_kernel=3, band_stride=2, left=2, right=2, stride=2, bias=False
    ),
    "stack of 1": lambda: Stack(3, 1),
    "stack of 2": lambda: Stack(3, 2),
    "stack of 4": lambda: Stack(2, 4),
    # attention
    "attention to itself": lambda: SelfAttention(4, 2, mask=SlidingMask(left=0)),
    "attention sliding": lambda: SelfAttention(4, 2, mask=SlidingMask(left=3), bias=False),
    "attention sliding ahead": lambda: SelfAttention(
        4, 2, mask=SlidingMask(left=2, right=2), positions=RotaryPositions()
    ),
    "attention chunked": lambda: SelfAttention(
        4, 2, mask=ChunkedMask(chunk=3, left_chunks=1), positions=RelativePositions(distance=3)
    ),
    "attention chunked ahead": lambda: SelfAttention(
        4, 2, mask=ChunkedMask(chunk=2, left_chunks=2, right=3), positions=RotaryPositions()
    ),
    "attention of dynamic chunks": lambda: DynamicChunks(
        Residual(SelfAttention(4, 2, mask=FullMask(), positions=RotaryPositions())),
        [ChunkedMask(chunk=c, left_chunks=1) for c in (3, 1)] + [FullMask()],
    ),
    # frame by frame
    "layer norm": lambda: LayerNorm(3),
    "rms norm": lambda: RMSNorm(3),
    "batch norm": lambda: settled(SequenceBatchNorm(3)),
    "batch norm of 2 channels": lambda: settled(SequenceBatchNorm(6, bands=3)),
    "cumulative norm": lambda: CumulativeLayerNorm(3),
    "linear": lambda: Pointwise(nn.Linear(3, 2), 3, 2),
    "linear and relu": lambda: Pointwise(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), 3, 4),
}

COMPOSITIONS: dict[str, Callable[[], StreamingLayer]] = {
    # shortcuts
    "residual gru": lambda: Residual(GRU(3, 3)),
    "residual lookahead": lambda: Residual(Lookahead(3, 2)),
    "residual same convolution": lambda: Residual(Convolution(3, 3, left=2, right=2)),
    "residual serial": lambda: Residual(Serial(LayerNorm(3), GRU(3, 3), Lookahead(3, 2))),
    "residual two lookaheads": lambda: Residual(Serial(Lookahead(3, 2), Lookahead(3, 3))),
    "residual nested": lambda: Residual(
        Serial(Residual(Serial(LSTM(3, 3), Lookahead(3, 1))), Lookahead(3, 2))
    ),
    "residual norms": lambda: settled(
        Residual(Serial(CumulativeLayerNorm(3), Lookahead(3, 2), SequenceBatchNorm(3), RMSNorm(3)))
    ),
    "residual attentions": lambda: Residual(
        Serial(
            SelfAttention(4, 2, mask=ChunkedMask(chunk=3, left_chunks=1, right=1)),
            Residual(SelfAttention(4, 1, mask=ChunkedMask(chunk=2, left_chunks=1))),
        )
    ),
    # chains
    "serial of one": lambda: Serial(GRU(3, 4)),
    "two grus": lambda: Serial(GRU(3, 4), GRU(4, 3)),
    "serial nested": lambda: Serial(Serial(GRU(3, 4), Lookahead(4, 1)), Serial(Lookahead(4, 2))),
    "two strides": lambda: Serial(
        Convolution(3, 4, left=1, right=1, stride=2), Convolution(4, 3, left=5, stride=2)
    ),
    "two complete strides": lambda: Serial(
        Convolution(2, 3, right=2, stride=2, padded=False),
        Convolution(3, 2, right=2, stride=2, padded=False),
    ),
    "stack then gru then lookahead": lambda: Serial(Stack(2, 3), GRU(6, 4), Lookahead(4, 2)),
    "complete then padded": lambda: Serial(
        Convolution(3, 4, right=3, stride=2, padded=False), Lookahead(4, 2), LSTM(4, 3)
    ),
    "padded then complete": lambda: Serial(Lookahead(2, 3), Stack(2, 2)),
    "recogniser": lambda: Serial(
        Convolution(3, 4, left=1, right=1, stride=2),
        GRU(4, 4),
        Lookahead(4, 2),
        GRU(4, 4),
        Lookahead(4, 3),
    ),
    "deep speech 2 deployed": lambda: settled(
        Serial(
            Convolution2d((1, 2), bands=4, band_kernel=3, band_stride=2, left=1, right=1, stride=2),
            SequenceBatchNorm(4, bands=2),
            Pointwise(nn.Hardtanh(0, 20), 4),
            Convolution2d((2, 2), bands=2, band_kernel=3, left=2, stride=2, bias=False),
            SequenceBatchNorm(4, bands=2),
            GRU(4, 3, batch_norm=True),
            GRU(3, 3, batch_norm=True),
            Lookahead(3, 2),
        )
    ),
    "transformer": lambda: TransformerBlock(
        SelfAttention(4, 2, mask=ChunkedMask(chunk=2, left_chunks=1), positions=RotaryPositions()),
        hidden=5,
    ),
    "conformer": lambda: settled(
        ConformerBlock(
            SelfAttention(
                4, 2, mask=ChunkedMask(chunk=2, left_chunks=1), positions=RotaryPositions()
            ),
            left=2,
            right=1,
            hidden=5,
            norm="batch",
        )
    ),
    "convolution then lstm then attention then lookahead": lambda: Serial(
        Convolution(3, 4, left=1, right=1, stride=2),
        LSTM(4, 4),
        SelfAttention(4, 2, mask=ChunkedMask(chunk=3, left_chunks=1, right=1)),
        Lookahead(4, 2),
    ),
    "residual recogniser": lambda: Serial(
        Stack(2, 2),
        Pointwise(nn.Linear(4, 3), 4, 3),
        Residual(Serial(LayerNorm(3), GRU(3, 3))),
        Residual(Serial(LayerNorm(3), LSTM(3, 3), Lookahead(3, 1))),
        Lookahead(3, (0, 4)).at(4),
        Pointwise(nn.Linear(3, 5), 3, 5),
    ),
}

OFFLINE: dict[str, Callable[[], StreamingLayer]] = {
    "bidirectional rnn": lambda: Bidirectional(RNN(3, 4)),
    "bidirectional relu": lambda: Bidirectional(RNN(3, 4, nonlinearity="relu")),
    "bidirectional clipped": lambda: Bidirectional(RNN(3, 4, nonlinearity="clipped_relu")),
    "bidirectional gru": lambda: Bidirectional(GRU(3, 4)),
    "bidirectional lstm": lambda: Bidirectional(LSTM(3, 4, bias=False)),
    "bidirectional sum": lambda: Bidirectional(GRU(3, 4), merge="sum"),
    "bidirectional shared": lambda: Bidirectional(GRU(3, 4), share_input=True),
    "bidirectional sum shared": lambda: Bidirectional(LSTM(3, 4), merge="sum", share_input=True),
    "bidirectional batch norm": lambda: settled(Bidirectional(LSTM(3, 4, batch_norm=True))),
    "bidirectional shared batch norm": lambda: settled(
        Bidirectional(GRU(3, 4, batch_norm=True), merge="sum", share_input=True)
    ),
    "bidirectional shared clipped batch norm": lambda: settled(
        Bidirectional(
            RNN(3, 4, nonlinearity="clipped_relu", batch_norm=True), merge="sum", share_input=True
        )
    ),
    "residual bidirectional": lambda: Residual(Bidirectional(GRU(3, 3), merge="sum")),
    "two bidirectional": lambda: Serial(Bidirectional(GRU(3, 2)), Bidirectional(GRU(4, 2))),
    "deep speech 2 research": lambda: settled(
        Serial(
            Convolution2d((1, 2), bands=4, band_kernel=3, band_stride=2, left=1, right=1, stride=2),
            SequenceBatchNorm(4, bands=2),
            Pointwise(nn.Hardtanh(0, 20), 4),
            Bidirectional(GRU(4, 3, batch_norm=True), merge="sum", share_input=True),
            Bidirectional(GRU(3, 3, batch_norm=True), merge="sum", share_input=True),
        )
    ),
    "attention full": lambda: SelfAttention(
        4, 2, mask=FullMask(), positions=RelativePositions(distance=2)
    ),
    "attention causal": lambda: SelfAttention(4, 2, mask=CausalMask(), positions=RotaryPositions()),
    "bidirectional after stride": lambda: Serial(
        Convolution(3, 4, left=1, right=1, stride=2), Bidirectional(GRU(4, 3)), Lookahead(6, 2)
    ),
}

STREAMING = LAYERS | COMPOSITIONS
ALL = STREAMING | OFFLINE
