"""Running a layer: a copy of it over whole sequences, and over chunks.

Shapes: `B` batch, `T` frames, `C` frames of a chunk, `D` features.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn

from nearfuture.error import NearfutureError
from nearfuture.laws.violation import Violation
from nearfuture.layers import State, StreamingLayer
from nearfuture.layers.random import manual_seed

LayerOrFactory: TypeAlias = "StreamingLayer | Callable[[], StreamingLayer]"
"""A layer, which the laws copy, or a function that makes a new layer."""

Partition: TypeAlias = tuple[tuple[int, ...], ...]
"""`partition[k][b]` is how many frames row `b` gets in chunk `k`."""


def prepare(layer: LayerOrFactory, *, seed: int, dtype: torch.dtype) -> StreamingLayer:
    """Copy or make a layer, in eval mode and of this dtype.

    Raises:
        NearfutureError: for anything but a `StreamingLayer` or a function that makes one.
    """
    if isinstance(layer, nn.Module) and not isinstance(layer, StreamingLayer):
        raise _no_streaming_layer(layer)
    if not callable(layer):
        raise NearfutureError(
            f"{layer!r} is neither a StreamingLayer nor a function that makes one",
            parameter="layer",
        )
    with torch.random.fork_rng(devices=[]):
        manual_seed(seed)
        made: object = copy.deepcopy(layer) if isinstance(layer, StreamingLayer) else layer()
    if not isinstance(made, StreamingLayer):
        raise _no_streaming_layer(made)
    return made.to(dtype).eval()


def _no_streaming_layer(made: object) -> NearfutureError:
    return NearfutureError(
        f"{type(made).__name__} is no StreamingLayer: the laws test forward, start, step and "
        f"finish; a module that treats each frame by itself becomes one with Pointwise",
        parameter="layer",
    )


def variants(
    layer: LayerOrFactory, *, count: int, seed: int, dtype: torch.dtype
) -> list[StreamingLayer]:
    """Layers that differ in their initialisation; a layer that exists comes first, unchanged."""
    made = [prepare(layer, seed=seed + i, dtype=dtype) for i in range(count)]
    if isinstance(layer, StreamingLayer):
        for i, other in enumerate(made[1:]):
            with torch.random.fork_rng(devices=[]), torch.no_grad():
                manual_seed(seed + i)
                for module in other.modules():
                    reset = getattr(module, "reset_parameters", None)
                    if callable(reset):
                        reset()
    return made


def inputs(layer: StreamingLayer, batch: int, frames: int, *, seed: int) -> Tensor:
    """Standard normal values (B, T, D) in the layer's dtype and on its device."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, frames, layer.input_size, generator=generator, dtype=torch.float64)
    return x if layer.dtype is None else x.to(layer.new_zeros(0))


def lengths_of(partition: Partition, batch: int | None = None) -> list[int]:
    """The frames that each row gets in all; a partition without chunks needs `batch`."""
    rows = len(partition[0]) if batch is None else batch
    return [sum(chunk[b] for chunk in partition) for b in range(rows)]


def described(partition: Partition) -> str:
    """Describe a partition in words.

    >>> described(((1, 2), (0, 3))), described(((5,),))
    ('in chunks of [(1, 2), (0, 3)] frames', 'in chunks of [5] frames')
    """
    lengths = lengths_of(partition)
    if len(lengths) > 8:
        cut = "in single frames" if len(partition) > 1 else "at once"
        return f"for rows of {lengths[0]} … {lengths[-1]} frames {cut}"
    shown = ", ".join(str(chunk[0] if len(chunk) == 1 else chunk) for chunk in partition)
    return f"in chunks of [{shown}] frames"


def single_frames(lengths: Sequence[int]) -> Partition:
    """Every row one frame at a time, until it has none left.

    >>> single_frames([2, 1])
    ((1, 1), (1, 0))
    """
    return tuple(tuple(int(t < n) for n in lengths) for t in range(max(lengths, default=0)))


def at_once(lengths: Sequence[int]) -> Partition:
    """Every row in one chunk."""
    return (tuple(lengths),)


def whole(
    layer: StreamingLayer, x: Tensor, lengths: Sequence[int], *, gradients: bool = False
) -> list[Tensor]:
    """Run `forward` once; return every row's valid outputs (T', E)."""
    counts = torch.tensor(lengths, device=x.device)
    with torch.set_grad_enabled(gradients):
        y, n = layer(x, counts)
    return rows(layer, y, n)


def started(layer: StreamingLayer, x: Tensor) -> State:
    """The state before the first frame of a batch."""
    return layer.start(x.shape[0], device=x.device, dtype=x.dtype)


def rows(layer: StreamingLayer, y: Tensor, n: Tensor) -> list[Tensor]:
    """Split a batch into rows of valid frames, and check shapes, lengths and padding."""
    if n.dtype != torch.int64 or n.shape != y.shape[:1] or y.shape[2] != layer.output_size:
        raise Violation(
            f"outputs are (B, T, {layer.output_size}) with int64 lengths (B,), not "
            f"{tuple(y.shape)} with {n.dtype} lengths {tuple(n.shape)}"
        )
    if bool((n < 0).any() | (n > y.shape[1]).any()):
        raise Violation(f"lengths {n.tolist()} do not fit {y.shape[1]} frames")
    beyond = torch.arange(y.shape[1], device=y.device) >= n[:, None]
    dirty = beyond[..., None] & (y != 0)
    if bool(dirty.any()):
        b, t, i = (int(index) for index in dirty.nonzero()[0])
        raise Violation(
            f"row {b}, frame {t}, feature {i} lies past the row's {int(n[b])} valid outputs and "
            f"is {y[b, t, i].item()!r} instead of 0"
        )
    return [y[b, : int(n[b])] for b in range(y.shape[0])]


def advance(
    layer: StreamingLayer,
    x: Tensor,
    partition: Partition,
    state: State | None = None,
    position: Sequence[int] | None = None,
    *,
    gradients: bool = False,
) -> Iterator[tuple[list[Tensor], State]]:
    """Feed the chunks one after another; yield each step's new outputs per row, and the state.

    What lies past a row's frames in a chunk is NaN, and a chunk of an odd number of frames is one
    frame wider than any row needs.
    """
    state = started(layer, x) if state is None else state
    read = list(position or [0] * x.shape[0])
    for chunk in partition:
        piece = x.new_full((x.shape[0], max(chunk) + sum(chunk) % 2, x.shape[2]), math.nan)
        for b, n in enumerate(chunk):
            piece[b, :n] = x[b, read[b] : read[b] + n]
            read[b] += n
        with torch.set_grad_enabled(gradients):
            y, n_y, state = layer.step(piece, torch.tensor(chunk, device=x.device), state)
        yield rows(layer, y, n_y), state


def until(
    layer: StreamingLayer, x: Tensor, partition: Partition
) -> tuple[list[Tensor], State, list[int]]:
    """Feed some chunks; return every row's outputs so far, the state, and the frames read."""
    state = started(layer, x)
    outputs = [x.new_zeros(0, layer.output_size)] * x.shape[0]
    for new, after in advance(layer, x, partition, state):
        outputs = [torch.cat(pair) for pair in zip(outputs, new, strict=True)]
        state = after
    return outputs, state, lengths_of(partition, x.shape[0])


def streamed(
    layer: StreamingLayer,
    x: Tensor,
    partition: Partition,
    state: State | None = None,
    position: Sequence[int] | None = None,
    *,
    gradients: bool = False,
) -> list[Tensor]:
    """Feed chunks to a new stream or to `state`, and finish; return every row's outputs (T', E)."""
    state = started(layer, x) if state is None else state
    pieces: list[list[Tensor]] = []
    for new, after in advance(layer, x, partition, state, position, gradients=gradients):
        pieces.append(new)
        state = after
    with torch.set_grad_enabled(gradients):
        pieces.append(rows(layer, *layer.finish(state)))
    return [torch.cat(parts) for parts in zip(*pieces, strict=True)]
