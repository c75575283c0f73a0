"""Layers with one leak each, as people plant them by mistake, and what an audit has to say of them.

Shapes: `N` rows, `T` frames, `C` features.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.audit.stacks import Layer

inf = math.inf

LeakKind = Literal["future", "padding", "batch", "state", "norm"]


class Written(Layer):
    """One line of code."""

    def __init__(self, line: Callable[[Tensor, Tensor], Tensor], lookahead: float = 0) -> None:
        super().__init__()
        self.line, self.lookahead = line, lookahead

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        return self.line(x, valid)


class FeaturesFirst(Layer):
    """A layer of torch that reads (N, C, T)."""

    def __init__(self, inner: nn.Module, lookahead: float) -> None:
        super().__init__()
        self.inner, self.lookahead = inner, lookahead

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        return self.inner(x.transpose(1, 2)).transpose(1, 2)


class BothWays(Layer):
    """A recurrent layer in both directions, which begins in the padding."""

    lookahead = inf

    def __init__(self, width: int, cell: type[nn.RNNBase]) -> None:
        super().__init__()
        self.rnn = cell(width, width, batch_first=True, bidirectional=True)
        self.merge = nn.Linear(2 * width, width)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        return self.merge(self.rnn(x)[0])


class Band(Layer):
    """Attention under a mask that ends so many frames too late, by matrix products."""

    def __init__(self, width: int, ahead: float) -> None:
        super().__init__()
        self.lookahead = ahead
        self.project = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        q, k, v = self.project(x).chunk(3, dim=-1)
        frames = x.shape[1]
        ahead = frames if math.isinf(self.lookahead) else int(self.lookahead)
        hidden = torch.ones(frames, frames, dtype=torch.bool).triu(ahead + 1)
        scores = (q @ k.transpose(1, 2)).masked_fill(hidden, -inf)
        return scores.softmax(-1) @ v


class MultiHead(Layer):
    """nn.MultiheadAttention under a mask of (T, T): True must not look."""

    def __init__(
        self, width: int, mask: Callable[[int], Tensor | None], ahead: float, *, rows_first: bool
    ) -> None:
        super().__init__()
        self.lookahead, self.mask = ahead, mask
        self.attention = nn.MultiheadAttention(width, 1, batch_first=rows_first)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        mask = self.mask(x.shape[1])
        return self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]


class KeysOneTooMany(Layer):
    """Attention to every valid frame, and to the first of the padding."""

    lookahead = inf

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        q, k, v = self.project(x).chunk(3, dim=-1)
        keys = torch.arange(x.shape[1]) <= valid.sum(1)[:, None]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=keys[:, None])


class SqueezeExcite(Layer):
    lookahead = inf

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool1d(1)
        self.weigh = nn.Conv1d(width, width, 1)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        return x * torch.sigmoid(self.weigh(self.pool(x.transpose(1, 2)))).transpose(1, 2)


class Trains(Layer):
    """A batch normalisation that nobody put into eval mode."""

    lookahead = inf

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width, track_running_stats=False)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


class Remembers(Layer):
    """A recurrent layer that begins where the last call ended."""

    def __init__(self, width: int, *, checked: bool) -> None:
        super().__init__()
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.h: Tensor | None = None
        self.checked = checked

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        if self.checked and self.h is not None and self.h.shape[1] != len(x):
            self.h = None
        y, self.h = self.rnn(x, self.h)
        return y


class RunningMean(Layer):
    """Less the mean of earlier calls, in a buffer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        y = x - self.mean
        self.mean = 0.9 * self.mean + 0.1 * x.mean((0, 1))
        return y


class Cached(Layer):
    """A convolution whose left context is the end of the last call."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3)
        self.cache: Tensor | None = None

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        if self.cache is None or len(self.cache) != len(x):
            self.cache = x.new_zeros(len(x), 2, x.shape[2])
        longer = torch.cat([self.cache, x], 1)
        self.cache = longer[:, -2:]
        return self.conv(longer.transpose(1, 2)).transpose(1, 2)


class Counts(Layer):
    """Scales by how often it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        self.calls += 1
        return x * (1 + 0.1 * self.calls)


@dataclass(frozen=True, kw_only=True)
class Leak:
    """A wrong layer.

    Attributes:
        name: what it does.
        kind: what leaks.
        build: draws the layer, so many features wide.
        operations: the operations that an audit may name; any of them is where it enters.
        padding: further operations by which the padding may enter a layer that looks ahead.
        where: the submodule that calls them, below the layer.
    """

    name: str
    kind: LeakKind
    build: Callable[[random.Random, int], Layer]
    operations: tuple[str, ...]
    padding: tuple[str, ...] = ()
    where: str = ""


def _some(rng: random.Random) -> int:
    return rng.randint(4, 6)  # farther than any layer that is right


def _conv(rng: random.Random, width: int) -> Layer:
    k = _some(rng)
    return FeaturesFirst(nn.Conv1d(width, width, 2 * k + 1, padding=k), k)


def _pool(rng: random.Random, width: int) -> Layer:
    k = _some(rng)
    return FeaturesFirst(nn.AvgPool1d(2 * k + 1, 1, padding=k), k)


def _cell(rng: random.Random) -> type[nn.RNNBase]:
    return rng.choice([nn.GRU, nn.LSTM, nn.RNN])


def _shifted(rng: random.Random, width: int) -> Layer:
    k = _some(rng)
    return Written(lambda x, _: x + F.pad(x, (0, 0, 0, k))[:, k:], k)


def _rolled(rng: random.Random, width: int) -> Layer:
    k = _some(rng)
    return Written(lambda x, _: x + x.roll(-k, 1), k)


def _sign(rng: random.Random, width: int) -> Layer:
    k = _some(rng)
    return Written(lambda x, _: x * (1 + (F.pad(x, (0, 0, 0, k))[:, k:] > 0).to(x)), k)


def _band(rng: random.Random, width: int) -> Layer:
    k = _some(rng)

    def mixed(x: Tensor, _: Tensor) -> Tensor:
        band = torch.ones(x.shape[1], x.shape[1]).triu(-2).tril(k).to(x)
        return torch.einsum("ts,nsc->ntc", band, x) / (k + 3)

    return Written(mixed, k)


def _masked(rng: random.Random, width: int) -> Layer:
    k = _some(rng)
    return MultiHead(
        width, lambda n: torch.ones(n, n, dtype=torch.bool).triu(k + 1), k, rows_first=True
    )


def _written(
    line: Callable[[Tensor, Tensor], Tensor], lookahead: float = inf
) -> Callable[..., Layer]:
    return lambda rng, width: Written(line, lookahead)


def _low_pass(x: Tensor, _: Tensor) -> Tensor:
    spectrum = torch.fft.rfft(x, dim=1)
    keep = torch.arange(spectrum.shape[1])[:, None] < spectrum.shape[1] // 2
    return torch.fft.irfft(spectrum * keep, n=x.shape[1], dim=1)


def _standardised(x: Tensor, _: Tensor) -> Tensor:
    return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-3)


def _flipped_gru(rng: random.Random, width: int) -> Layer:
    class Backwards(Layer):
        lookahead = inf

        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(width, width, batch_first=True)

        def forward(self, x: Tensor, valid: Tensor) -> Tensor:
            return self.rnn(x.flip(1))[0].flip(1)

    return Backwards()


RECURRENCES = ("gru", "lstm", "rnn_tanh")
ATTENTION = ("multi_head_attention_forward",)

FUTURE = [
    Leak(
        name="same convolution", kind="future", build=_conv, operations=("conv1d",), where="inner"
    ),
    Leak(
        name="same pooling", kind="future", build=_pool, operations=("avg_pool1d",), where="inner"
    ),
    Leak(
        name="shifted",
        kind="future",
        build=_shifted,
        operations=("getitem",),
        padding=("pad",),  # what stands where zeros are added is the padding
    ),
    Leak(name="rolled", kind="future", build=_rolled, operations=("roll",)),
    Leak(
        name="sign of a later frame",
        kind="future",
        build=_sign,
        operations=("getitem",),
        padding=("pad",),
    ),
    Leak(name="banded matrix", kind="future", build=_band, operations=("einsum",)),
    Leak(
        name="mask off by some",
        kind="future",
        build=_masked,
        operations=ATTENTION,
        where="attention",
    ),
    Leak(
        name="mask off by some, by products",
        kind="future",
        build=lambda rng, width: Band(width, _some(rng)),
        operations=("matmul",),
    ),
    Leak(
        name="no mask",
        kind="future",
        build=lambda rng, width: MultiHead(width, lambda n: None, inf, rows_first=True),
        operations=ATTENTION,
        where="attention",
    ),
    Leak(
        name="no mask, by products",
        kind="future",
        build=lambda rng, width: Band(width, inf),
        operations=("matmul", "softmax"),
    ),
    Leak(
        name="both ways",
        kind="future",
        build=lambda rng, width: BothWays(width, _cell(rng)),
        operations=RECURRENCES,
        where="rnn",
    ),
    Leak(
        name="mean over time",
        kind="future",
        build=_written(lambda x, _: x - 0.5 * x.mean(1, keepdim=True)),
        operations=("mean",),
    ),
    Leak(
        name="largest over time",
        kind="future",
        build=_written(lambda x, _: x / (1 + x.abs().amax(1, keepdim=True))),
        operations=("amax",),
    ),
    Leak(
        name="squeeze and excite",
        kind="future",
        build=lambda rng, width: SqueezeExcite(width),
        operations=("adaptive_avg_pool1d",),
        where="pool",
    ),
    Leak(
        name="sum from the end",
        kind="future",
        build=_written(lambda x, _: x + 0.1 * x.flip(1).cumsum(1).flip(1)),
        operations=("flip",),
    ),
    Leak(name="GRU on the reverse", kind="future", build=_flipped_gru, operations=("flip",)),
    Leak(
        name="last frame",
        kind="future",
        build=_written(lambda x, _: x + x[:, -1:]),
        operations=("getitem",),
    ),
    Leak(
        name="low pass by FFT",
        kind="future",
        build=_written(_low_pass),
        operations=("fft_rfft", "fft_irfft"),
    ),
]

NORM = [
    Leak(
        name="GroupNorm",
        kind="norm",
        build=lambda rng, width: FeaturesFirst(nn.GroupNorm(rng.choice([1, width]), width), inf),
        operations=("group_norm",),
        where="inner",
    ),
    Leak(
        name="InstanceNorm1d",
        kind="norm",
        build=lambda rng, width: FeaturesFirst(nn.InstanceNorm1d(width), inf),
        operations=("instance_norm",),
        where="inner",
    ),
    Leak(
        name="layer norm over frames and features",
        kind="norm",
        build=_written(lambda x, _: F.layer_norm(x, x.shape[1:])),
        operations=("layer_norm",),
    ),
    Leak(
        name="mean and deviation of the utterance",
        kind="norm",
        build=_written(_standardised),
        operations=("mean", "std"),
    ),
    Leak(
        name="unit energy over time",
        kind="norm",
        build=_written(lambda x, _: x + F.normalize(x, dim=1)),
        operations=("normalize",),
    ),
    Leak(
        name="batch norm that trains",
        kind="norm",
        build=lambda rng, width: Trains(width),
        operations=("batch_norm",),
        where="norm",
    ),
]

PADDING = [
    Leak(
        name="same convolution, unmasked",
        kind="padding",
        build=_conv,
        operations=("conv1d",),
        where="inner",
    ),
    Leak(
        name="same pooling, unmasked",
        kind="padding",
        build=_pool,
        operations=("avg_pool1d",),
        where="inner",
    ),
    Leak(
        name="no padding mask",
        kind="padding",
        build=lambda rng, width: MultiHead(width, lambda n: None, inf, rows_first=True),
        operations=ATTENTION,
        where="attention",
    ),
    Leak(
        name="padding mask off by one",
        kind="padding",
        build=lambda rng, width: KeysOneTooMany(width),
        operations=("scaled_dot_product_attention",),
    ),
    Leak(
        name="not packed",
        kind="padding",
        build=lambda rng, width: BothWays(width, _cell(rng)),
        operations=RECURRENCES,
        where="rnn",
    ),
    Leak(
        name="mean with the padding",
        kind="padding",
        build=_written(lambda x, _: x - 0.5 * x.mean(1, keepdim=True)),
        operations=("mean",),
    ),
    Leak(
        name="masked mean over all frames",
        kind="padding",
        build=_written(
            lambda x, valid: (
                x - x.masked_fill(~valid[..., None], 0).sum(1, keepdim=True) / x.shape[1]
            )
        ),
        operations=("truediv", "div"),
    ),
    Leak(
        name="GroupNorm with the padding",
        kind="padding",
        build=lambda rng, width: FeaturesFirst(nn.GroupNorm(1, width), inf),
        operations=("group_norm",),
        where="inner",
    ),
    Leak(name="GRU on the reverse", kind="padding", build=_flipped_gru, operations=("flip", "gru")),
    Leak(
        name="last frame of the batch",
        kind="padding",
        build=_written(lambda x, _: x + x[:, -1:]),
        operations=("getitem",),
    ),
]

BATCH = [
    Leak(
        name="mean over rows",
        kind="batch",
        build=_written(lambda x, _: x + 0.5 * x.mean(0), 0),
        operations=("mean",),
    ),
    Leak(
        name="largest over rows",
        kind="batch",
        build=_written(lambda x, _: x + x.amax(0), 0),
        operations=("amax",),
    ),
    Leak(
        name="softmax over rows",
        kind="batch",
        build=_written(lambda x, _: x * x.softmax(0), 0),
        operations=("softmax",),
    ),
    Leak(
        name="the row before",
        kind="batch",
        build=_written(lambda x, _: x + 0.5 * x.roll(1, 0), 0),
        operations=("roll",),
    ),
    Leak(
        name="sum over the rows before",
        kind="batch",
        build=_written(lambda x, _: x + x.cumsum(0), 0),
        operations=("cumsum",),
    ),
    Leak(
        name="batch_first forgotten",
        kind="batch",
        build=lambda rng, width: MultiHead(width, lambda n: None, 0, rows_first=False),
        operations=ATTENTION,
        where="attention",
    ),
]

STATE = [
    Leak(
        name="state kept, checked against the batch",
        kind="state",
        build=lambda rng, width: Remembers(width, checked=True),
        operations=("gru",),
        where="rnn",
    ),
    Leak(
        name="state kept",
        kind="state",
        build=lambda rng, width: Remembers(width, checked=False),
        operations=("gru",),
        where="rnn",
    ),
    Leak(
        name="mean of earlier calls",
        kind="state",
        build=lambda rng, width: RunningMean(width),
        operations=("sub",),
    ),
    Leak(
        name="cache of the last call",
        kind="state",
        build=lambda rng, width: Cached(width),
        operations=("cat",),
    ),
    Leak(
        name="number of calls",
        kind="state",
        build=lambda rng, width: Counts(),
        operations=("mul",),
    ),
]

LEAKS: dict[LeakKind, list[Leak]] = {
    "future": FUTURE,
    "padding": PADDING,
    "batch": BATCH,
    "state": STATE,
    "norm": NORM,
}
