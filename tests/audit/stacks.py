"""Layers as people write them in plain torch, right as they stand, and random stacks of them.

Every layer reads `x` (N, T, C) and `valid` (N, T), which is False in the padding; none of its valid
outputs depends on the padding. Shapes: `N` rows, `T` frames, `C` features.
"""

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Layer(nn.Module):
    """A layer whose outputs look a number of frames ahead."""

    lookahead: float = 0


class Convolution(Layer):
    """Frames from `left` before to `right` after; what lies in the padding is set to 0."""

    def __init__(self, width: int, left: int, right: int, dilation: int) -> None:
        super().__init__()
        self.lookahead, self.around = right * dilation, (left * dilation, right * dilation)
        self.conv = nn.Conv1d(width, width, left + right + 1, dilation=dilation)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        x = x.masked_fill(~valid[..., None], 0).transpose(1, 2)
        return torch.tanh(self.conv(F.pad(x, self.around))).transpose(1, 2)


class Recurrent(Layer):
    def __init__(self, width: int, cell: type[nn.RNNBase]) -> None:
        super().__init__()
        self.rnn = cell(width, width, batch_first=True)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        return self.rnn(x)[0]


class Attention(Layer):
    """Attention to the frames from `left` before to `right` after that are valid."""

    def __init__(self, width: int, left: int, right: int) -> None:
        super().__init__()
        self.lookahead, self.left, self.right = right, left, right
        self.project = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        q, k, v = self.project(x).chunk(3, dim=-1)
        place = torch.arange(x.shape[1])
        ahead = place[None] - place[:, None]
        mask = (ahead <= self.right) & (ahead >= -self.left) & valid[:, None]
        mask = mask | (ahead == 0)  # a frame of padding looks at itself rather than at nothing
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class FeedForward(Layer):
    def __init__(self, width: int, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.expand, self.contract = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.activation = activation

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        return self.contract(self.activation(self.expand(x)))


class NormOfAFrame(Layer):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        return self.norm(x)


class LessTheMeanSoFar(Layer):
    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        return x - 0.5 * x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]


class FullAttention(Layer):
    """nn.MultiheadAttention over every frame that is valid."""

    lookahead = float("inf")

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 1, batch_first=True)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        return self.attention(x, x, x, key_padding_mask=~valid, need_weights=False)[0]


class PackedBothWays(Layer):
    lookahead = float("inf")

    def __init__(self, width: int) -> None:
        super().__init__()
        self.rnn = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.merge = nn.Linear(2 * width, width)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, valid.sum(1), batch_first=True, enforce_sorted=False)
        y = pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=x.shape[1])[0]
        return self.merge(y)


class LessTheMeanOfWhatIsValid(Layer):
    lookahead = float("inf")

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        inside = x.masked_fill(~valid[..., None], 0)
        return x - 0.5 * inside.sum(1, keepdim=True) / valid.sum(1)[:, None, None]


class Halved(Layer):
    """A convolution of stride 2 that ends at its own frame."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, stride=2)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        return torch.tanh(self.conv(F.pad(x.transpose(1, 2), (2, 0)))).transpose(1, 2)


class Residual(Layer):
    def __init__(self, inner: "Stack") -> None:
        super().__init__()
        self.inner = inner
        self.lookahead = inner.lookahead

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        return x + self.inner(x, valid)


class Stack(Layer):
    def __init__(self, layers: list[Layer]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.lookahead = sum(layer.lookahead for layer in layers)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, valid)
        return x


class Model(nn.Module):
    """A stack, perhaps behind a front-end of stride 2.

    Args:
        layers: the stack.
        front: whether there is a front-end.
    """

    def __init__(self, stack: Stack, width: int, *, front: bool) -> None:
        super().__init__()
        self.front = Halved(width) if front else None
        self.stack = stack
        self.head = nn.Linear(width, 3)

    @property
    def lookahead(self) -> float:
        return self.stack.lookahead * (1 if self.front is None else 2)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        n = torch.full((len(x),), x.shape[1]) if lengths is None else lengths
        valid = torch.arange(x.shape[1]) < n[:, None]
        if self.front is not None:
            x, valid = self.front(x, valid), valid[:, ::2]
        return self.head(self.stack(x, valid))


def drawn(rng: random.Random, width: int, *, most: int, whole: bool, depth: int = 2) -> Stack:
    """Draw a stack of one to four layers, each possibly a residual of more.

    Args:
        rng: what draws.
        width: C.
        most: how far a layer may look ahead.
        whole: layers may look at the whole sequence.
        depth: how deep residuals nest.
    """
    return Stack([_layer(rng, width, most, whole, depth) for _ in range(rng.randint(1, 4))])


def _layer(rng: random.Random, width: int, most: int, whole: bool, depth: int) -> Layer:
    right = rng.randint(0, most)
    activation = rng.choice([F.gelu, F.silu, torch.tanh, F.leaky_relu])
    choices: list[Callable[[], Layer]] = [
        lambda: Convolution(width, rng.randint(1, 3), right, 1),
        lambda: Convolution(width, 2, 0, rng.randint(1, 3)),
        lambda: Recurrent(width, rng.choice([nn.GRU, nn.LSTM, nn.RNN])),
        lambda: Attention(width, rng.choice([2, 10**6]), right),
        lambda: FeedForward(width, activation),
        lambda: NormOfAFrame(width),
        lambda: LessTheMeanSoFar(),
    ]
    if whole:
        choices += [
            lambda: FullAttention(width),
            lambda: PackedBothWays(width),
            lambda: LessTheMeanOfWhatIsValid(),
        ]
    if depth:
        inner = drawn(rng, width, most=most, whole=whole, depth=depth - 1)
        choices += [lambda: Residual(inner)] * 3
    return rng.choice(choices)()
