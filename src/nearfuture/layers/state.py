"""State as a value: a tree of tensors whose first dimension is the batch, and what to do with it.

A state is a tensor or a tuple of states. Every operation here returns a new tree that shares no
memory with the old one, so a snapshot never changes later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

import torch
from torch import Tensor

from nearfuture.error import NearfutureError

State: TypeAlias = "Tensor | tuple[State, ...]"
Device: TypeAlias = torch.device | str | None
DType: TypeAlias = torch.dtype | None


def flatten(state: State) -> list[Tensor]:
    """The tensors of a state, in order."""
    if isinstance(state, Tensor):
        return [state]
    return [leaf for part in state for leaf in flatten(part)]


def unflatten(like: State, leaves: list[Tensor]) -> State:
    """The inverse of `flatten`, in the shape of the tree `like`.

    >>> tree = (torch.zeros(1), (torch.ones(1),))
    >>> [leaf.item() for leaf in flatten(unflatten(tree, flatten(tree)))]
    [0.0, 1.0]
    """
    expected = len(flatten(like))
    if len(leaves) != expected:
        raise NearfutureError(
            f"this state has {expected} tensors, not {len(leaves)}", code="conflict"
        )
    remaining = iter(leaves)
    return _build(like, remaining)


def _build(like: State, leaves: Iterator[Tensor]) -> State:
    if isinstance(like, Tensor):
        return next(leaves)
    return tuple(_build(part, leaves) for part in like)


def _map(function: Callable[..., Tensor], *states: State) -> State:
    first = states[0]
    if isinstance(first, Tensor):
        return function(*states)
    parts = zip(*(cast("tuple[State, ...]", state) for state in states), strict=True)
    return tuple(_map(function, *part) for part in parts)


def batch_size(state: State) -> int:
    """The number of rows in a state."""
    return int(flatten(state)[0].shape[0])


def clone(state: State) -> State:
    """A snapshot: equal values, no shared memory, detached from the graph."""
    return _map(lambda leaf: leaf.detach().clone(), state)


def to(state: State, device: torch.device | str) -> State:
    """The state on another device; dtypes stay, so counts stay integers."""
    return _map(lambda leaf: leaf.to(device, copy=True), state)


def take_rows(state: State, rows: Tensor) -> State:
    """The rows with these indices (int64), in this order, as a state of their own."""
    return _map(lambda leaf: leaf.index_select(0, rows), state)


def put_rows(state: State, rows: Tensor, values: State) -> State:
    """A copy of `state` in which the rows with these indices are those of `values`.

    Resetting rows is `put_rows(state, rows, layer.start(len(rows)))`.

    >>> put_rows(torch.tensor([1, 2, 3]), torch.tensor([1]), torch.tensor([0])).tolist()
    [1, 0, 3]
    """
    return _map(lambda leaf, value: leaf.index_copy(0, rows, value), state, values)


def serialize(state: State) -> bytes:
    """A state as bytes (safetensors: data only, no code)."""
    from safetensors.torch import save

    return save({str(i): leaf.detach().contiguous() for i, leaf in enumerate(flatten(state))})


def deserialize(data: bytes, like: State) -> State:
    """Read a state written by `serialize`; `like` (`layer.start(1)`) gives tree and device.

    Raises:
        NearfutureError: where the bytes are not a state, or the state of another layer.
    """
    from safetensors.torch import load

    try:
        saved = load(data)
        leaves = [saved[str(i)] for i in range(len(saved))]
    except Exception as error:
        raise NearfutureError(
            f"these {len(data)} bytes are not a saved state: {error}", code="damaged"
        ) from error
    state = unflatten(like, leaves)
    if len({leaf.shape[:1] for leaf in leaves}) > 1 or leaves[0].dim() == 0:
        raise NearfutureError(
            "the tensors of the saved state do not hold the same rows", code="damaged"
        )
    for leaf, expected in zip(flatten(state), flatten(like), strict=True):
        if leaf.shape[1:] != expected.shape[1:] or leaf.dtype != expected.dtype:
            raise NearfutureError(
                f"the saved state holds {leaf.dtype} {tuple(leaf.shape)} where this layer has "
                f"{expected.dtype} {tuple(expected.shape)}: it belongs to another layer",
                code="conflict",
            )
    return _map(lambda leaf, expected: leaf.to(expected.device), state, like)
