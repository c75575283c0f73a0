"""Every torch operation of one call, with the submodule and the line of code it belongs to."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from nearfuture.audit.blame import Event
from nearfuture.audit.target import TorchTarget

Array = NDArray[Any]

_MOST_VALUES = 1 << 26
"""An array beyond is not kept: it would be a model too large to look into."""


def trace(
    target: TorchTarget, positional: list[Array], named: Mapping[str, Any], *, seed: int
) -> list[Event]:
    """Run it once and write down what went into every operation and what came out."""
    import torch
    from torch.nn.modules import module as hooks
    from torch.overrides import TorchFunctionMode

    paths = {id(module): path for path, module in target.modules.items()}
    inside: list[torch.nn.Module] = []
    events: list[Event] = []
    kept: dict[tuple[int, int], Array] = {}
    alive: list[torch.Tensor] = []  # an id is not given away while its tensor lives

    def values(parts: Any) -> tuple[Array, ...]:
        arrays = []
        for part in _tensors(parts, torch):
            if part.numel() > _MOST_VALUES or part.layout is not torch.strided:
                continue
            key = (id(part), part._version)
            if key not in kept:
                alive.append(part)
                plain = part.detach().cpu()
                kept[key] = target.to_numpy(plain).copy()
            arrays.append(kept[key])
        return tuple(arrays)

    class Watch(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            name = getattr(function, "__name__", str(function))
            given = values((args, kwargs or {})) if name != "__get__" else ()
            result = function(*args, **(kwargs or {}))
            if name == "__get__" or "empty" in name:  # memory that nobody has written yet
                return result
            written = args[0] if args and _writes(name) else result
            got = values((written,))
            if got:
                module = inside[-1] if inside else None
                path = paths.get(id(module), "") if module is not None else ""
                events.append(
                    Event(
                        where=path,
                        what="" if module is None else type(module).__name__,
                        operation=name.strip("_"),
                        source=_source(torch),
                        inputs=given,
                        outputs=got,
                    )
                )
            return result

    def leave(*_: Any) -> None:
        inside.pop()

    handles = (
        hooks.register_module_forward_pre_hook(lambda module, _: inside.append(module)),
        hooks.register_module_forward_hook(leave, always_call=True),
    )
    try:
        target.call(positional, named, seed=seed, within=Watch())
    finally:
        for handle in handles:
            handle.remove()
    return events


def _tensors(parts: Any, torch: Any) -> list[Any]:
    """The tensors in arguments, but no parameters."""
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
    """File and line of the user's code that called torch; None where the audit itself did."""
    theirs = Path(torch.__file__).parent.as_posix()
    frame = sys._getframe(2)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.parent == Path(__file__).parent:
            return None
        if not path.as_posix().startswith(theirs):
            return f"{path.name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return None
