"""Every torch operation of one call, with the submodule and the line of code that called it."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from nearfuture.audit.adapters import TorchAdapter
from nearfuture.audit.attribution.operation import Array, Operation
from nearfuture.audit.source import place

_AUDIT = f"{os.path.dirname(os.path.dirname(__file__))}{os.sep}"

_MAX_VALUES = 1 << 26
"""Larger arrays are not kept: the model would be too large to trace."""


def trace_torch(
    adapter: TorchAdapter, positional: list[Array], named: Mapping[str, Any], *, seed: int | None
) -> list[Operation]:
    """Call the model once and record what went into every operation and what came out."""
    import torch
    from torch.nn.modules import module as hooks
    from torch.overrides import TorchFunctionMode

    function = adapter.instance()
    paths = {id(module): path for path, module in adapter.modules(function).items()}
    stack: list[torch.nn.Module] = []
    operations: list[Operation] = []
    calls: Counter[tuple[str, str]] = Counter()
    recorded: dict[tuple[int, int], Array] = {}
    used: set[int] = set()
    alive: list[torch.Tensor] = []  # an id is not reused while its tensor lives

    def values(parts: Any) -> tuple[Array, ...]:
        arrays = []
        for part in _tensors(parts, torch):
            if part.numel() > _MAX_VALUES or part.layout is not torch.strided:
                continue
            key = (id(part), part._version)
            if key not in recorded:
                alive.append(part)
                recorded[key] = adapter.to_numpy(part).copy()
            arrays.append(recorded[key])
        return tuple(arrays)

    def record(name: str, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> None:
        module = stack[-1] if stack else None
        where = paths.get(id(module), "")
        operations.append(
            Operation(
                where=where,
                what="" if module is None else type(module).__name__,
                name=name,
                source=_source(torch),
                call=calls[where, name],
                inputs=inputs,
                outputs=outputs,
            )
        )
        calls[where, name] += 1

    class Recorder(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            name = getattr(function, "__name__", str(function))
            if name == "__get__":  # a shape, mostly; or another view of a tensor
                result = function(*args, **(kwargs or {}))
                if isinstance(result, torch.Tensor):
                    used.update(map(id, values(args)))
                return result
            inputs = values((args, kwargs or {}))
            used.update(map(id, inputs))
            result = function(*args, **(kwargs or {}))
            if "empty" in name:  # memory that is not written yet
                return result
            writes = bool(args) and _writes(name)
            outputs = values((args[0] if writes else result,))
            if writes:  # other views of the same memory see it
                used.update(map(id, outputs))
            if outputs:
                record(name.strip("_"), inputs, outputs)
            return result

    def leave(*_: Any) -> None:
        stack.pop()

    handles = (
        hooks.register_module_forward_pre_hook(lambda module, _: stack.append(module)),
        hooks.register_module_forward_hook(leave, always_call=True),
    )
    try:
        result = adapter.run(function, positional, named, seed=seed, mode=Recorder())
    finally:
        for handle in handles:
            handle.remove()
    if returned := values(result):
        used.update(map(id, returned))
        operations = [operation.with_outputs_in(used) for operation in operations]
        operations = [operation for operation in operations if operation.outputs]
    return operations


def _tensors(parts: Any, torch: Any) -> list[Any]:
    """Return the tensors in arguments, but no parameters."""
    if isinstance(parts, torch.Tensor):
        return [] if isinstance(parts, torch.nn.Parameter) else [parts]
    if isinstance(parts, Mapping):
        parts = parts.values()
    elif not isinstance(parts, list | tuple):
        return []
    return [tensor for part in parts for tensor in _tensors(part, torch)]


def _writes(name: str) -> bool:
    """Whether an operation writes into its first argument.

    >>> [_writes(name) for name in ("add_", "__setitem__", "__iadd__", "add", "__getitem__")]
    [True, True, True, False, False]
    """
    if name == "__setitem__":
        return True
    if name.startswith("__"):
        return name in {"__iadd__", "__isub__", "__imul__", "__itruediv__", "__idiv__"}
    return name.endswith("_")


def _source(torch: Any) -> str | None:
    """Return file and line of the user's code that called torch; None where the audit did."""
    library = f"{os.path.dirname(torch.__file__)}{os.sep}"
    frame = sys._getframe(3)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_AUDIT):
            return None
        if not file.startswith(library):
            return place(file, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None
