"""The Transformer block, whole and in chunks."""

from __future__ import annotations

from torch import Tensor, nn

from nearfuture.error import NearfutureError
from nearfuture.layers.attention import SelfAttention
from nearfuture.layers.container import Residual, Serial
from nearfuture.layers.contract import Pointwise, StreamingLayer
from nearfuture.layers.normalization import LayerNorm


class FeedForward(nn.Module):
    """Two linear layers, frame by frame: `y = scale · (W_2 f(W_1 x + b_1) + b_2)`.

    Args:
        dim: features in and out.
        hidden: features in between.
        activation: f.
        dropout: share of the values in between, and of the outputs, that training drops.
        scale: of the outputs.

    Raises:
        NearfutureError: for no features in between, or a dropout below 0 or of all.
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        *,
        activation: nn.Module,
        dropout: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        if hidden < 1:
            raise NearfutureError(
                f"`hidden` must be 1 or more, not {hidden}",
                code="out_of_range",
                parameter="hidden",
            )
        if not 0 <= dropout < 1:
            raise NearfutureError(
                f"`dropout` must be 0 or more and below 1, not {dropout}",
                code="out_of_range",
                parameter="dropout",
            )
        self.up = nn.Linear(dim, hidden)
        self.activation = activation
        self.down = nn.Linear(hidden, dim)
        self.dropout = nn.Dropout(dropout)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.dropout(self.down(self.dropout(self.activation(self.up(x)))))
        return y if self.scale == 1 else y * self.scale


def dropped(*layers: StreamingLayer, dropout: float) -> Serial:
    """Layers, and dropout behind them where there is any."""
    if dropout:
        dim = layers[-1].output_size
        return Serial(*layers, Pointwise(nn.Dropout(dropout), dim))
    return Serial(*layers)


class TransformerBlock(Serial):
    """Self-attention and a feed-forward network, each normalised first, each with a shortcut.

    `u = x + attention(norm(x))`, `y = u + W_2 gelu(W_1 norm(u))`: Vaswani et al. 2017 with the
    norms before (Xiong et al. 2020, pre-norm). Its field is that of the attention, and so is what
    it can stream.

    Args:
        attention: with its mask and positions; its width is that of the block.
        hidden: features inside the feed-forward network; four times the width by default.
        dropout: share of the values that training drops, behind attention and inside and behind
            the feed-forward network.

    Raises:
        NearfutureError: for a dropout below 0, or of all.

    >>> from nearfuture.layers import SlidingMask
    >>> block = TransformerBlock(SelfAttention(8, heads=2, mask=SlidingMask(left=16)))
    >>> block.field.left, block.field.right, sum(p.numel() for p in block.parameters())
    (16, 0, 872)
    """

    def __init__(
        self, attention: SelfAttention, *, hidden: int | None = None, dropout: float = 0.0
    ) -> None:
        dim = attention.input_size
        wide = 4 * dim if hidden is None else hidden
        network = FeedForward(dim, wide, activation=nn.GELU(), dropout=dropout)
        super().__init__(
            Residual(dropped(LayerNorm(dim), attention, dropout=dropout)),
            Residual(Serial(LayerNorm(dim), Pointwise(network, dim))),
        )
