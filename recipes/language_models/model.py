"""Four character models of about the same size, which differ in what an output may look at.

Shapes: `B` rows, `T` symbols, `E` width of an embedding, `V` symbols of the text.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from nearfuture.layers import (
    GRU,
    Bidirectional,
    CausalMask,
    LayerNorm,
    RotaryPositions,
    SelfAttention,
    Serial,
    StreamingLayer,
    TransformerBlock,
)

Kind = Literal["one_way", "both_ways", "masked", "attention"]

TITLES: dict[Kind, str] = {
    "one_way": "one way",
    "both_ways": "both ways",
    "masked": "masked",
    "attention": "causal attention",
}
"""What each model is called in tables and figures."""


class CharacterModel(nn.Module):
    """Embeddings, layers under the contract, and a linear output: log-probabilities of symbols.

    | kind        | layers                                   | target of output t                  |
    |-------------|------------------------------------------|-------------------------------------|
    | `one_way`   | GRU                                      | x_{t+1}                             |
    | `both_ways` | GRU in both directions                   | x_{t+1}, which its input contains   |
    | `masked`    | GRU in both directions                   | x_t, where x_t was erased           |
    | `attention` | two Transformer blocks with a causal mask | x_{t+1}                            |

    Args:
        kind: which of them.
        symbols: V; the masked model reads one symbol more, `erased`, the number V.
        size: width of the one-way model's state; the others get as many weights within a few
            per cent.

    >>> model = CharacterModel("one_way", 60)
    >>> tuple(model(torch.zeros(2, 5, dtype=torch.int64)).shape)
    (2, 5, 60)
    """

    def __init__(self, kind: Kind, symbols: int, *, size: int = 112) -> None:
        super().__init__()
        width = max(8, size // 4)
        self.kind = kind
        self.erased = symbols
        self.layers: StreamingLayer
        if kind == "one_way":
            self.layers = GRU(width, size)
        elif kind == "attention":
            width = 4 * max(1, round(size / 10))  # two heads of an even width
            self.layers = Serial(_block(width), _block(width), LayerNorm(width))
        else:
            self.layers = Bidirectional(GRU(width, round(0.66 * size)))
        self.embedding = nn.Embedding(symbols + (kind == "masked"), width)
        self.output = nn.Linear(self.layers.output_size, symbols)

    def forward(self, symbols: Tensor) -> Tensor:
        """(B, T) int64 → log-probabilities (B, T, V)."""
        lengths = torch.ones_like(symbols).sum(dim=1)
        hidden, _ = self.layers(self.embedding(symbols), lengths)
        return torch.log_softmax(self.output(hidden), dim=-1)

    @property
    def parameter_count(self) -> int:
        """How many weights there are."""
        return sum(parameter.numel() for parameter in self.parameters())


def _block(width: int) -> TransformerBlock:
    """A Transformer block that looks at all symbols so far, and at none after them."""
    return TransformerBlock(
        SelfAttention(width, heads=2, mask=CausalMask(), positions=RotaryPositions())
    )
