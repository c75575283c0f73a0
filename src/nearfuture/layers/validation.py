"""What a layer is given, looked at once: where a caller calls, and not again inside.

A wrong length is worse than an error: a row that is said to be longer than its batch would read the
frames of the next row. The look costs a microsecond, which a graph that is compiled or exported
does not pay, nor a layer that another one calls.

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
    """A layer's method `(x, lengths)` that looks at what callers give it: see `check_batch`.

    Options of its own are passed on by their names.
    """

    @wraps(method)
    def checked(self: Any, x: Tensor, lengths: Tensor, **options: Any) -> Any:
        if _is_compiling() or _caller.is_layer:
            return method(self, x, lengths, **options)
        if not _fits(x, lengths, self.input_size):
            check_batch(x, lengths, features=self.input_size, layer=self)
        _caller.is_layer = True
        try:
            return method(self, x, lengths, **options)
        finally:
            _caller.is_layer = False

    return cast(Method, checked)


def validated_step(method: Method) -> Method:
    """The same for `(x, lengths, state)`, whose state must have the rows of the chunk.

    On other devices than the CPU the values of lengths are not looked at: to look means to wait for
    the device, at every step.
    """

    @wraps(method)
    def checked(self: Any, x: Tensor, lengths: Tensor, state: Any, **options: Any) -> Any:
        if _is_compiling() or _caller.is_layer:
            return method(self, x, lengths, state, **options)
        if not _fits(x, lengths, self.input_size):
            check_batch(x, lengths, features=self.input_size, waits=False, layer=self)
        first = state
        while isinstance(first, tuple) and first:
            first = first[0]
        if isinstance(first, Tensor) and first.size(0) != x.size(0):
            raise NearfutureError(
                f"the state is of {first.shape[0]} rows, and the chunk of {x.shape[0]}: each row "
                f"goes on from its own state; a row without news has a length of 0"
            )
        _caller.is_layer = True
        try:
            return method(self, x, lengths, state, **options)
        finally:
            _caller.is_layer = False

    return cast(Method, checked)


def _fits(x: Tensor, lengths: Tensor, features: int) -> bool:
    """Whether a batch on the CPU is one, as fast as that can be said."""
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
    except (AttributeError, TypeError):  # no tensor, or one without a dimension
        return False


def check_batch(
    x: Tensor,
    lengths: Tensor,
    *,
    features: int | None = None,
    waits: bool = True,
    layer: object = None,
) -> None:
    """Refuse what is no batch: `x` (B, T, D) in floating point and `lengths` (B,) int64 in [0, T].

    Args:
        x: the frames.
        lengths: frames of each row.
        features: D; any unless given.
        waits: whether to look at the values of lengths where that means to wait for a device.
        layer: who asks, for the message.

    Raises:
        NearfutureError: naming what is wrong, and the row.

    >>> check_batch(torch.zeros(2, 5, 1), torch.tensor([5, 9]))
    Traceback (most recent call last):
    ...
    nearfuture.error.NearfutureError: row 1 has a length of 9, but the batch has 5 frames: lengths \
go from 0 to 5
    """
    if not (isinstance(x, Tensor) and x.dim() == 3 and x.is_floating_point()):
        raise NearfutureError(f"{_shown(x)} is no batch of frames: {_WANTED}")
    B, T, D = x.shape
    if features is not None and features != D:
        reads = "these layers read" if layer is None else f"{type(layer).__name__} reads"
        raise NearfutureError(
            f"x has {D} features, and {reads} {features}: its shape is {_shape(x)}"
        )
    if not isinstance(lengths, Tensor) or lengths.dtype != torch.int64:
        raise NearfutureError(
            f"lengths is {_shown(lengths)}: it counts the frames of each row, in int64, as in "
            f"torch.tensor([{T}]) or lengths.long()"
        )
    if lengths.shape != (B,):
        raise NearfutureError(
            f"lengths has shape {_shape(lengths)}, and the batch {_shape(x)}: a length for each of "
            f"its rows is wanted, ({B},)"
        )
    if lengths.device != x.device:
        raise NearfutureError(
            f"lengths is on {lengths.device}, and the frames are on {x.device}: move one of them"
        )
    if lengths.device.type == "meta" or not (waits or lengths.device.type == "cpu"):
        return
    for row, length in enumerate(lengths.tolist()):
        if not 0 <= length <= T:
            raise NearfutureError(
                f"row {row} has a length of {length}, but the batch has {T} frames: lengths go "
                f"from 0 to {T}"
            )


_WANTED = "x is (batch, frames, features) in floating point; one recording is x[None]"


def _shape(x: Tensor) -> str:
    return str(tuple(x.shape))


def _shown(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of {str(value.dtype).removeprefix('torch.')} and shape {_shape(value)}"
    return f"a {type(value).__name__}"
