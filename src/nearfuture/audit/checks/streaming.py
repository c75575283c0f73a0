"""The model's streaming `step` gives the outputs of one call with the whole sequence."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from nearfuture.audit.adapters import Adapter, CannotRun, TorchAdapter
from nearfuture.audit.call import StreamingSteps
from nearfuture.audit.checks.result import CheckResult
from nearfuture.audit.comparison import Comparison
from nearfuture.audit.report import Finding
from nearfuture.audit.setup import Setup
from nearfuture.error import NotStreamable

_CHECKED = "whether streaming in chunks equals one call"


def check_streaming(setup: Setup, steps: StreamingSteps) -> CheckResult:
    """Stream the row in chunks of one frame, of two, of many sizes, and all at once."""
    whole = setup.run(setup.base[None])[0]
    for chunks in _partitions(len(setup.base), setup.seed):
        got = _stream(setup, steps, chunks, whole[:0])
        shown = ", ".join(map(str, chunks[:6])) + (", …" if len(chunks) > 6 else "")
        words = ("whole", "in chunks")
        compared = Comparison(got, whole, exact=False, words=words)
        if not compared.differ:
            continue
        if len(got) != len(whole):
            message = f"gives {len(got)} outputs, whole {len(whole)}"
        else:
            message = f"differs from the whole: {compared.describe()}"
        finding = Finding(
            kind="streaming",
            message=f"in chunks of [{shown}] frames it {message}",
            evidence={"chunks": chunks},
        )
        return CheckResult(_CHECKED, (finding,))
    return CheckResult(_CHECKED)


def _stream(
    setup: Setup, steps: StreamingSteps, chunks: list[int], empty: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Return the outputs (U, E) of one row that arrives in these chunks."""
    model, adapter = setup.model, setup.model.adapter
    state = None if steps.start is None else adapter.invoke(steps.start)
    pieces, at = [], 0
    for size in chunks:
        chunk = model.native(setup.base[None, at : at + size])
        at += size
        answer = adapter.invoke(steps.step, chunk, state)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise CannotRun(
                f"step(chunk, state) returns (frames, state), not {type(answer).__name__}",
                parameter="step",
            )
        y, state = answer
        pieces.append(model.frames_of(y))
    if steps.finish is not None:
        pieces.append(model.frames_of(adapter.invoke(steps.finish, state)))
    return np.concatenate([piece for piece in pieces if piece.size] or [empty])


def _partitions(frames: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    most = max(2, frames // 3)
    return [
        [1] * frames,
        [frames],
        _cut(frames, itertools.repeat(2)),
        _cut(frames, itertools.cycle(range(1, 17))),
        *(_cut(frames, iter(lambda: int(rng.integers(1, most)), 0)) for _ in range(2)),
    ]


def _cut(frames: int, sizes: Iterator[int]) -> list[int]:
    """Return chunks of these sizes, until there are no frames left.

    >>> _cut(7, itertools.repeat(3))
    [3, 3, 1]
    """
    chunks: list[int] = []
    while sum(chunks) < frames:
        chunks.append(min(next(sizes), frames - sum(chunks)))
    return chunks


def streaming_layer_steps(adapter: Adapter) -> StreamingSteps:
    """Return the steps of a `StreamingLayer`; none for any other model."""
    layer: Any = getattr(adapter, "function", None)
    parts = ("field", "start", "step", "finish")
    if not isinstance(adapter, TorchAdapter) or not all(hasattr(layer, part) for part in parts):
        return StreamingSteps()
    import torch

    try:
        layer.start(1)
    except NotStreamable:
        return StreamingSteps()

    def step(chunk: Any, state: Any) -> tuple[Any, Any]:
        y, n, state = layer.step(chunk, torch.tensor([chunk.shape[1]]), state)
        return y[:, : int(n[0])], state

    def start() -> Any:
        return layer.start(1, dtype=adapter.dtype)

    def finish(state: Any) -> Any:
        y, n = layer.finish(state)
        return y[:, : int(n[0])]

    return StreamingSteps(step=step, start=start, finish=finish)
