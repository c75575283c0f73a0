"""The model's streaming `step` gives the outputs of one call with the whole sequence."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.adapters import Adapter, CannotRun, TorchAdapter
from nearfuture.audit.call import StreamingSteps
from nearfuture.audit.checks.result import CheckResult
from nearfuture.audit.comparison import Comparison
from nearfuture.audit.report import Finding, Severity
from nearfuture.audit.setup import Setup
from nearfuture.error import NotStreamable

Array = NDArray[Any]

_MAX_SIZES = 8
"""Accepted sizes that are tried alone."""

_CHECKED = "whether streaming in chunks equals one call"


def check_streaming(setup: Setup, steps: StreamingSteps) -> CheckResult:
    """Check that streaming in chunks of each size, mixed or whole, gives the output of one call."""
    whole: dict[int, Array] = {}
    refused: list[Finding] = []
    for chunks in _partitions(len(setup.base), steps, setup.seed):
        frames = sum(chunks)
        shown = ", ".join(map(str, chunks[:6])) + (", …" if len(chunks) > 6 else "")
        try:
            if frames not in whole:
                whole[frames] = setup.run(setup.base[None, :frames])[0]
            got = _stream(setup, steps, chunks, whole[frames][:0])
        except CannotRun as error:
            message = (
                f"in chunks of [{shown}] frames it cannot be compared ({error}); which sizes are "
                f"accepted is set by `chunks` and `first_chunk`"
            )
            refused.append(_finding(message, chunks, "undecided"))
            continue
        words = ("whole", "in chunks")
        compared = Comparison(got, whole[frames], exact=False, words=words)
        if compared.differ:
            message = f"differs from the whole: {compared.describe()}"
            if len(got) != len(whole[frames]):
                message = f"gives {len(got)} outputs, whole {len(whole[frames])}"
            message = f"in chunks of [{shown}] frames it {message}"
            return CheckResult(_CHECKED, (_finding(message, chunks), *refused[:1]))
    return CheckResult(_CHECKED, tuple(refused[:1]))


def _finding(message: str, chunks: list[int], severity: Severity = "broken") -> Finding:
    evidence = {"chunks": chunks}
    return Finding(kind="streaming", message=message, severity=severity, evidence=evidence)


def _stream(setup: Setup, steps: StreamingSteps, chunks: list[int], empty: Array) -> Array:
    """Return the outputs (U, E) of one row that arrives in these chunks."""
    model, adapter = setup.model, setup.model.adapter
    state = None if steps.start is None else adapter.invoke(steps.start)
    state_first = _takes_state_first(steps.step)
    pieces, at = [], 0
    for size in chunks:
        chunk = model.native(setup.base[None, at : at + size])
        at += size
        arguments = (state, chunk) if state_first else (chunk, state)
        result = adapter.invoke(steps.step, *arguments)
        if not isinstance(result, tuple) or len(result) != 2:
            raise CannotRun(
                f"step(chunk, state) returns (frames, state), not {type(result).__name__}",
                parameter="step",
            )
        y, state = result
        pieces.append(model.frames_of(y))
    if steps.finish is not None:
        pieces.append(model.frames_of(adapter.invoke(steps.finish, state)))
    return np.concatenate([piece for piece in pieces if piece.size] or [empty])


def _takes_state_first(step: Any) -> bool:
    """Whether the first parameter is a state by its name."""
    try:
        first = next(iter(inspect.signature(step).parameters), "")
    except (TypeError, ValueError):  # a compiled function
        return False
    return any(word in first for word in ("state", "cache", "hidden"))


def _partitions(frames: int, steps: StreamingSteps, seed: int) -> list[list[int]]:
    """Return ways to cut a sequence: the last chunk may be shorter where any size is accepted."""
    rng = np.random.default_rng(seed)
    sizes = steps.sizes
    rules: list[Iterator[int]]
    if sizes:
        rules = [itertools.repeat(size) for size in sizes[:_MAX_SIZES]]
        rules += [itertools.cycle(sizes), itertools.cycle(reversed(sizes))]
        rules += [iter(lambda: int(rng.choice(sizes)), 0) for _ in range(2)]
    else:
        most = max(2, frames // 3)
        rules = [itertools.repeat(1), itertools.repeat(frames), itertools.repeat(2)]
        rules += [itertools.cycle(range(1, 17))]
        rules += [iter(lambda: int(rng.integers(1, most)), 0) for _ in range(2)]
    first = [] if steps.first_chunk is None else [steps.first_chunk]
    return [cut for rule in rules if (cut := _cut(frames, [*first], rule, sizes))]


def _cut(frames: int, first: list[int], rule: Iterator[int], sizes: Sequence[int]) -> list[int]:
    """Return chunks by a rule, as far as there are frames for one of the sizes.

    >>> _cut(7, [], itertools.repeat(3), ()), _cut(9, [2], itertools.repeat(3), (3,))
    ([3, 3, 1], [2, 3, 3])
    """
    chunks = first
    while (remaining := frames - sum(chunks)) > 0:
        size = next(rule)
        if size > remaining:
            if sizes:
                break
            size = remaining
        chunks.append(size)
    return chunks if sum(chunks) <= frames else []


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
