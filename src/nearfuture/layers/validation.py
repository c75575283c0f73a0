"""Checks of the batches that callers pass to layers, made once at the outermost call.

A wrong length is worse than an error: a row whose length exceeds its batch would read the frames of
the next row. The check costs a microsecond. Graphs that are compiled or exported skip it, and so do
layers that another layer calls.

Shapes: `B` batch, `T` frames, `D` features.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from nearfuture.error import NearfutureError

Method = TypeVar("Method", bound=Callable[..., Any])


class _Caller(threading.local):
    is_layer = False


_caller = _Caller()
_is_compiling = torch.compiler.is_compiling


def validated(method: Method) -> Method:
    """Check the arguments of a layer's method, `(x, lengths)` or `(x, lengths, state)`.

    See `check_batch`; a state must have the rows of its chunk. With a state, lengths on other
    devices than the CPU are not read: reading them would wait for the device at every step.
    Options of the method are passed on by their names.
    """

    @wraps(method)
    def checked(self: Any, x: Tensor, lengths: Tensor, *state: Any, **options: Any) -> Any:
        if _is_compiling() or _caller.is_layer:
            return method(self, x, lengths, *state, **options)
        if "state" in options:
            state = (options.pop("state"),)
        if not _fits(x, lengths, self.input_size):
            check_batch(x, lengths, features=self.input_size, waits=not state, layer=self)
        if state:
            _check_rows(x, state[0])
        _caller.is_layer = True
        try:
            return method(self, x, lengths, *state, **options)
        finally:
            _caller.is_layer = False

    return cast(Method, checked)


def _check_rows(x: Tensor, state: Any) -> None:
    """Refuse a state that has other rows than the chunk."""
    while isinstance(state, tuple) and state:
        state = state[0]
    if isinstance(state, Tensor) and state.size(0) != x.size(0):
        raise NearfutureError(
            f"the state is of {state.shape[0]} rows, and the chunk of {x.shape[0]}: each row "
            f"goes on from its own state; a row without new frames has a length of 0",
            parameter="state",
        )


def _fits(x: Tensor, lengths: Tensor, features: int) -> bool:
    """Whether a batch on the CPU is valid, decided as fast as possible."""
    try:
        if not (x.is_cpu and lengths.is_cpu and lengths.dtype is torch.int64):
            return False
        each = lengths.tolist()
        return (
            x.dim() == 3
            and x.is_floating_point()
            and x.size(2) == features
            and len(each) == x.size(0)
            and (not each or (min(each) >= 0 and max(each) <= x.size(1)))
        )
    except (AttributeError, TypeError):  # no tensor, or a tensor without dimensions
        return False


def check_batch(
    x: Tensor,
    lengths: Tensor,
    *,
    features: int | None = None,
    waits: bool = True,
    layer: object = None,
) -> None:
    """Refuse all but `x` (B, T, D) in floating point with `lengths` (B,) int64 in [0, T].

    Args:
        x: the frames.
        lengths: frames of each row.
        features: D; None for any.
        waits: whether to read lengths that lie on another device than the CPU.
        layer: the layer whose input this is, for the message.

    Raises:
        NearfutureError: naming what is wrong, and the row.

    >>> check_batch(torch.zeros(2, 5, 1), torch.tensor([5, 9]))
    Traceback (most recent call last):
    ...
    nearfuture.error.NearfutureError: row 1 has a length of 9, but the batch has 5 frames: lengths \
go from 0 to 5
    """
    if not (isinstance(x, Tensor) and x.dim() == 3 and x.is_floating_point()):
        raise NearfutureError(f"{_shown(x)} is no batch of frames: {_WANTED}", parameter="x")
    B, T, D = x.shape
    if features is not None and features != D:
        reads = "these layers read" if layer is None else f"{type(layer).__name__} reads"
        raise NearfutureError(
            f"x has {D} features, and {reads} {features}: its shape is {_shape(x)}", parameter="x"
        )
    if not isinstance(lengths, Tensor) or lengths.dtype != torch.int64:
        raise NearfutureError(
            f"lengths is {_shown(lengths)}: it counts the frames of each row, in int64, as in "
            f"torch.tensor([{T}]) or lengths.long()",
            parameter="lengths",
        )
    if lengths.shape != (B,):
        raise NearfutureError(
            f"lengths has shape {_shape(lengths)}, and the batch {_shape(x)}: each of its "
            f"rows needs a length, ({B},)",
            parameter="lengths",
        )
    if lengths.device != x.device:
        raise NearfutureError(
            f"lengths is on {lengths.device}, and the frames are on {x.device}: move one of them",
            parameter="lengths",
        )
    if lengths.device.type == "meta" or not (waits or lengths.device.type == "cpu"):
        return
    for row, length in enumerate(lengths.tolist()):
        if not 0 <= length <= T:
            raise NearfutureError(
                f"row {row} has a length of {length}, but the batch has {T} frames: lengths go "
                f"from 0 to {T}",
                code="out_of_range",
                parameter="lengths",
            )


_WANTED = "x is (batch, frames, features) in floating point; one recording is x[None]"


def _shape(x: Tensor) -> str:
    return str(tuple(x.shape))


def _shown(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of {str(value.dtype).removeprefix('torch.')} and shape {_shape(value)}"
    return f"a {type(value).__name__}"
