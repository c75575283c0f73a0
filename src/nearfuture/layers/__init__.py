"""The layers: exact in chunks, each with a declared and proved receptive field."""

from nearfuture.layers.attention import (
    AttentionMask,
    CausalMask,
    ChunkedMask,
    DynamicChunks,
    FullMask,
    RelativePositions,
    RotaryPositions,
    SelfAttention,
    SlidingMask,
    with_mask,
)
from nearfuture.layers.bidirectional import Bidirectional
from nearfuture.layers.cell import GRU, LSTM, RNN
from nearfuture.layers.conformer import ConformerBlock
from nearfuture.layers.container import Residual, Serial
from nearfuture.layers.contract import Pointwise, StreamingLayer
from nearfuture.layers.convolution import Convolution, Convolution2d, Stack
from nearfuture.layers.final_state import final_state
from nearfuture.layers.lookahead import Lookahead
from nearfuture.layers.normalization import (
    CumulativeLayerNorm,
    LayerNorm,
    RMSNorm,
    SequenceBatchNorm,
)
from nearfuture.layers.recurrent import Recurrent
from nearfuture.layers.state import Device, DType, State
from nearfuture.layers.torch_weights import from_torch, to_torch
from nearfuture.layers.transformer import TransformerBlock
from nearfuture.layers.windowed import Windowed

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "AttentionMask",
    "Bidirectional",
    "CausalMask",
    "ChunkedMask",
    "ConformerBlock",
    "Convolution",
    "Convolution2d",
    "CumulativeLayerNorm",
    "DType",
    "Device",
    "DynamicChunks",
    "FullMask",
    "LayerNorm",
    "Lookahead",
    "Pointwise",
    "RMSNorm",
    "Recurrent",
    "RelativePositions",
    "Residual",
    "RotaryPositions",
    "SelfAttention",
    "SequenceBatchNorm",
    "Serial",
    "SlidingMask",
    "Stack",
    "State",
    "StreamingLayer",
    "TransformerBlock",
    "Windowed",
    "final_state",
    "from_torch",
    "to_torch",
    "with_mask",
]
