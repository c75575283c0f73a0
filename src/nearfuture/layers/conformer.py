"""The Conformer block, whole and in chunks."""

from __future__ import annotations

from typing import Literal

from torch import nn

from nearfuture.error import NearfutureError
from nearfuture.layers.attention import SelfAttention
from nearfuture.layers.container import Residual, Serial
from nearfuture.layers.contract import Pointwise, StreamingLayer
from nearfuture.layers.convolution import Convolution
from nearfuture.layers.normalization import LayerNorm, SequenceBatchNorm
from nearfuture.layers.transformer import FeedForward, dropped


class ConformerBlock(Serial):
    """Half a feed-forward network, self-attention, a convolution, the other half, and a norm.

    Gulati et al. 2020 (arXiv 2005.08100) §2.3, eq. 1:
    `a = x + ½ ff(x)`, `b = a + attention(norm(a))`, `c = b + convolution(b)`,
    `y = norm(c + ½ ff'(c))`, where `convolution` is a norm, a gated linear layer, a depthwise
    convolution over time, a norm, SiLU and a linear layer. The linear layers have biases, so
    padding is cleared behind each: the convolution reads zeros beyond both ends of a sequence.

    Its lookahead is that of the attention and of the convolution together; shortcuts wait for them.

    Args:
        attention: with its mask and positions; its width is that of the block.
        left: frames of the past that the convolution reads.
        right: frames of the future that it reads; 0 is causal, `left` is the paper's.
        hidden: features inside each feed-forward network; four times the width by default.
        norm: behind the convolution: "layer" (over a frame), or "batch" as in the paper (over all
            valid frames of a batch in training, by fixed statistics when it runs).
        dropout: share of the values that training drops, inside and behind each part.

    Raises:
        NearfutureError: for another norm, a dropout below 0 or of all.

    >>> from nearfuture.layers import ChunkedMask
    >>> attention = SelfAttention(8, heads=2, mask=ChunkedMask(chunk=4, left_chunks=4))
    >>> block = ConformerBlock(attention, left=14)
    >>> [block.field.emitted(n) for n in (3, 4, 9)], block.field.left, block.field.right
    ([0, 4, 8], 33, 3)
    """

    def __init__(
        self,
        attention: SelfAttention,
        *,
        left: int,
        right: int = 0,
        hidden: int | None = None,
        norm: Literal["layer", "batch"] = "layer",
        dropout: float = 0.0,
    ) -> None:
        if norm not in ("layer", "batch"):
            raise NearfutureError(f"`norm` must be layer or batch, not {norm!r}", parameter="norm")
        dim = attention.input_size
        wide = 4 * dim if hidden is None else hidden

        def half() -> Residual:
            network = FeedForward(dim, wide, activation=nn.SiLU(), dropout=dropout, scale=0.5)
            return Residual(Serial(LayerNorm(dim), Pointwise(network, dim)))

        layers: list[StreamingLayer] = [
            LayerNorm(dim),
            Pointwise(nn.Sequential(nn.Linear(dim, 2 * dim), nn.GLU(dim=-1)), dim),
            Convolution(dim, dim, left=left, right=right, groups=dim),
            LayerNorm(dim) if norm == "layer" else SequenceBatchNorm(dim),
            Pointwise(nn.Sequential(nn.SiLU(), nn.Linear(dim, dim)), dim),
        ]
        super().__init__(
            half(),
            Residual(dropped(LayerNorm(dim), attention, dropout=dropout)),
            Residual(dropped(*layers, dropout=dropout)),
            half(),
            LayerNorm(dim),
        )
