"""The steps that a `StreamingLayer` brings along, in the form that any engineer's have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nearfuture.audit.target import TorchTarget
from nearfuture.error import NotStreamable

Steps = tuple[
    Callable[[Any, Any], tuple[Any, Any]] | None,
    Callable[[], Any] | None,
    Callable[[Any], Any] | None,
]


def own_steps(target: TorchTarget) -> Steps:
    """`step(chunk, state)`, `start()` and `finish(state)` of a layer that has them; else None."""
    import torch

    layer = target.function
    if not all(hasattr(layer, part) for part in ("field", "start", "step", "finish")):
        return None, None, None
    try:
        layer.start(1)
    except NotStreamable:
        return None, None, None

    def step(chunk: Any, state: Any) -> tuple[Any, Any]:
        y, n, state = layer.step(chunk, torch.tensor([chunk.shape[1]]), state)
        return y[:, : int(n[0])], state

    def start() -> Any:
        return layer.start(1, dtype=target.dtype)

    def finish(state: Any) -> Any:
        y, n = layer.finish(state)
        return y[:, : int(n[0])]

    return step, start, finish
