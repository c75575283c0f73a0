"""Layers made of layers: one after another, and around a shortcut."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import pairwise

import torch
from torch import Tensor, nn

from nearfuture.budget import ReceptiveField
from nearfuture.error import NearfutureError
from nearfuture.layers.contract import StreamingLayer
from nearfuture.layers.ragged import drop, join, mask
from nearfuture.layers.state import Device, DType, State


def _composed(layers: Iterable[StreamingLayer]) -> ReceptiveField:
    return reduce(lambda below, above: below.then(above), (layer.field for layer in layers))


class Serial(StreamingLayer):
    """Layers in a row, each reading the one before: `y = l_K(… l_2(l_1(x)))`.

    Receptive fields compose, and `finish` cascades: the last outputs of a layer pass through the
    layers above it before those finish themselves.

    Args:
        layers: at least one; each one's `output_size` is the next one's `input_size`.

    Raises:
        NearfutureError: for no layer, or for two neighbours whose sizes differ.

    >>> from nearfuture.layers import GRU, Lookahead
    >>> Serial(GRU(4, 8), Lookahead(8, frames=3), Lookahead(8, frames=2)).field.right
    5
    """

    def __init__(self, *layers: StreamingLayer) -> None:
        super().__init__()
        if not layers:
            raise NearfutureError("Serial needs at least one layer", parameter="layers")
        for i, (below, above) in enumerate(pairwise(layers)):
            if below.output_size != above.input_size:
                raise NearfutureError(
                    f"layer {i} ({type(below).__name__}) gives {below.output_size} features, but "
                    f"layer {i + 1} ({type(above).__name__}) reads {above.input_size}",
                    code="conflict",
                    parameter="layers",
                )
        self.layers = nn.ModuleList(layers)
        self.input_size = layers[0].input_size
        self.output_size = layers[-1].output_size
        self.field = _composed(layers)

    def __iter__(self) -> Iterator[StreamingLayer]:
        return iter(self.layers)  # type: ignore[arg-type]

    def with_layers(self, layers: Iterable[StreamingLayer]) -> Serial:
        """A composition of the same class and of other layers of the same sizes."""
        other = copy.copy(self)
        other._modules = dict(self._modules)
        other.layers = nn.ModuleList(layers)
        other.field = _composed(other)
        return other

    @property
    def dtype(self) -> DType:
        return next((layer.dtype for layer in self if layer.dtype is not None), None)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        for layer in self:
            x, lengths = layer(x, lengths)
        return x, lengths

    def start(self, batch_size: int, *, device: Device = None, dtype: DType = None) -> State:
        like = self.new_zeros(0, device=device, dtype=dtype)
        return tuple(
            layer.start(batch_size, device=like.device, dtype=like.dtype) for layer in self
        )

    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        after = []
        for layer, below in zip(self, state, strict=True):
            x, lengths, moved = layer.step(x, lengths, below)
            after.append(moved)
        return x, lengths, tuple(after)

    def finish(self, state: State) -> tuple[Tensor, Tensor]:
        first, *rest = zip(self, state, strict=True)
        y, n = first[0].finish(first[1])
        for layer, below in rest:
            if y.shape[1] == 0:
                y, n = layer.finish(below)
                continue
            y, n, below = layer.step(y, n, below)
            y, n = join(y, n, *layer.finish(below))
        return y, n


class Residual(StreamingLayer):
    """A shortcut around layers: `y_t = x_t + inner(x)_t`, whatever delay `inner` has.

    Streaming, the input waits in a buffer until the inner layers have caught up with it.

    Args:
        inner: as wide out as in, stride 1, padded.

    Raises:
        NearfutureError: where `inner` changes the width or the number of frames.

    >>> from nearfuture.layers import Lookahead
    >>> layer = Residual(Lookahead(1, frames=2))
    >>> layer.field.right, layer.field.emitted(5)
    (2, 3)
    """

    def __init__(self, inner: StreamingLayer) -> None:
        super().__init__()
        if inner.input_size != inner.output_size:
            raise NearfutureError(
                f"a residual adds its input to its output, but {type(inner).__name__} turns "
                f"{inner.input_size} features into {inner.output_size}",
                parameter="inner",
            )
        if inner.field.stride != 1 or not inner.field.padded:
            raise NearfutureError(
                f"a residual needs one output a frame, but {type(inner).__name__} has stride "
                f"{inner.field.stride}{'' if inner.field.padded else ' and complete windows'}",
                parameter="inner",
            )
        self.inner = inner
        self.input_size = inner.input_size
        self.output_size = inner.output_size
        self.field: ReceptiveField = inner.field

    def with_inner(self, inner: StreamingLayer) -> Residual:
        """The same shortcut around another layer of the same size."""
        other = copy.copy(self)
        other._modules = dict(self._modules)
        other.inner, other.field = inner, inner.field
        return other

    @property
    def dtype(self) -> DType:
        return self.inner.dtype

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        y, n = self.inner(x, lengths)
        return mask(x, lengths) + y, n

    def start(self, batch_size: int, *, device: Device = None, dtype: DType = None) -> State:
        like = self.new_zeros(0, device=device, dtype=dtype)
        inner = self.inner.start(batch_size, device=like.device, dtype=like.dtype)
        waiting = like.new_zeros(batch_size, self._waiting, self.input_size)
        count = torch.zeros(batch_size, dtype=torch.int64, device=waiting.device)
        return waiting, count, inner

    @property
    def _waiting(self) -> int:
        """Frames that may have to wait; `right` of a composition contains the wait for blocks."""
        return int(self.field.right) + self.field.block - 1

    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        waiting, count, inner = state
        assert isinstance(waiting, Tensor)
        assert isinstance(count, Tensor)
        y, n, inner = self.inner.step(x, lengths, inner)
        frames, count = join(waiting, count, x, lengths)
        y = _beside(y, frames, n)
        rest = drop(frames, count, n, self._waiting)
        return y, n, (*rest, inner)

    def finish(self, state: State) -> tuple[Tensor, Tensor]:
        waiting, _, inner = state
        assert isinstance(waiting, Tensor)
        y, n = self.inner.finish(inner)
        return _beside(y, waiting, n), n


def _beside(y: Tensor, frames: Tensor, n: Tensor) -> Tensor:
    """`y_t + frames_t`; inner layers that emit blocks may leave more room than there are frames."""
    width = min(y.shape[1], frames.shape[1])
    return y[:, :width] + mask(frames[:, :width], n)
