"""Self-attention that looks exactly as far as its mask says, whole and in chunks."""

from nearfuture.layers.attention.dynamic_chunks import DynamicChunks, with_mask
from nearfuture.layers.attention.mask import (
    AttentionMask,
    CausalMask,
    ChunkedMask,
    FullMask,
    SlidingMask,
)
from nearfuture.layers.attention.positions import RelativePositions, RotaryPositions
from nearfuture.layers.attention.self_attention import SelfAttention

__all__ = [
    "AttentionMask",
    "CausalMask",
    "ChunkedMask",
    "DynamicChunks",
    "FullMask",
    "RelativePositions",
    "RotaryPositions",
    "SelfAttention",
    "SlidingMask",
    "with_mask",
]
