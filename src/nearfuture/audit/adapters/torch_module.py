"""Torch modules, and functions of torch tensors."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from nearfuture.audit.adapters.base import (
    Adapter,
    Array,
    Precision,
    cannot_run,
    seed_everything,
)
from nearfuture.audit.source import defined_at


class TorchAdapter(Adapter):
    """An adapter for a torch module, or a function of torch tensors.

    Args:
        function: what is called. A module is copied, so that the original stays as it is.
        name: its name in a report.
        dtype: the torch dtype of the input; None: that of the array.
        train: leave a module in train mode; otherwise it is put in eval mode.
        reset: call a new copy of the module each time.
        computes_in: the torch dtype that conversions inside the model lead to; None: any.
    """

    def __init__(
        self,
        function: Any,
        name: str,
        *,
        dtype: Any,
        train: bool = False,
        reset: bool = False,
        computes_in: Any = None,
    ) -> None:
        import torch

        self.name, self.source = name, defined_at(function)
        self.dtype = dtype
        self._original, self._train, self._reset = function, train, reset
        self._computes_in = computes_in
        self._is_module = isinstance(function, torch.nn.Module)
        self.function = self._copy()
        self.time_first = self._is_module and getattr(function, "batch_first", None) is False
        devices = [p.device for m in self.modules().values() for p in m.parameters()]
        self.device = devices[0] if devices else torch.device("cpu")

    def modules(self, function: Any = None) -> dict[str, Any]:
        """Return every module that can be found in a function, by path."""
        return dict(_modules_in(self.function if function is None else function))

    def instance(self) -> Any:
        """Return what the next call runs: the copy, or a new one."""
        return self._copy() if self._reset else self.function

    def call(self, positional: list[Array], named: Mapping[str, Any], *, seed: int | None) -> Any:
        return self.run(self.instance(), positional, named, seed=seed)

    def run(
        self,
        function: Any,
        positional: list[Array],
        named: Mapping[str, Any],
        *,
        seed: int | None,
        mode: AbstractContextManager[Any] | None = None,
    ) -> Any:
        """Call one instance inside a context, such as the mode that traces it."""
        import torch

        seed_everything(seed)
        arguments = [self.tensor(part) for part in positional]
        options = {key: self.tensor(part) for key, part in named.items()}
        try:
            with torch.no_grad(), self._conversions(), mode or nullcontext():
                return function(*arguments, **options)
        except Exception as error:
            raise cannot_run(self.name, positional, error) from error

    def invoke(self, function: Any, *arguments: Any) -> Any:
        import torch

        with torch.no_grad():
            return super().invoke(function, *(self.tensor(part) for part in arguments))

    def tensor(self, value: Any) -> Any:
        """Copy an array to a tensor on the model's device; return anything else unchanged."""
        import torch

        if not isinstance(value, np.ndarray):
            return value
        tensor = torch.tensor(value, device=self.device)
        if self.dtype is None or not tensor.is_floating_point():
            return tensor
        return tensor.to(self.dtype)

    def is_array(self, value: Any) -> bool:
        import torch

        return isinstance(value, torch.Tensor)

    def to_numpy(self, value: Any) -> Array:
        return tensor_to_numpy(value)

    def reset_each_call(self) -> Adapter | None:
        if self.function is self._original:
            return None
        return TorchAdapter(
            self._original, self.name, dtype=self.dtype, train=self._train, reset=True
        )

    def restarted(self) -> TorchAdapter:
        """Return an adapter that has not been called yet, where the model can be copied."""
        return TorchAdapter(self._original, self.name, dtype=self.dtype, train=self._train)

    def in_precision(self, precision: Precision) -> Adapter | None:
        import torch

        dtype = getattr(torch, precision)
        copied = self._copy()
        if self.modules():
            if copied is self._original:  # it cannot be copied, or a function refers to it
                return None
            copied = copied.to(dtype)
        return TorchAdapter(copied, self.name, dtype=dtype, train=self._train, computes_in=dtype)

    def state(self) -> dict[str, Array]:
        if not self._is_module:
            return {}
        return {
            name: self.to_numpy(buffer).copy() for name, buffer in self.function.named_buffers()
        }

    def _conversions(self) -> AbstractContextManager[Any]:
        if self._computes_in is None:
            return nullcontext()
        from nearfuture.audit.adapters.torch_precision import convert_to

        return convert_to(self._computes_in)

    def _copy(self) -> Any:
        if not self._is_module:
            return self._original
        try:
            return copy.deepcopy(self._original).train(self._train)
        except Exception:  # whatever a module's attributes raise: then the original is used
            return self._original.train(self._train)


def tensor_to_numpy(value: Any) -> Array:
    """Convert a tensor; types that numpy lacks become float32."""
    import torch

    value = value.detach().cpu()
    if value.is_floating_point() and value.dtype not in (torch.float32, torch.float64):
        value = value.float()
    return np.asarray(value.numpy())


def _modules_in(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the modules of a module, or those that a function refers to, with their paths."""
    import torch

    if isinstance(function, torch.nn.Module):
        yield from function.named_modules()
        return
    references = {}
    if (owner := getattr(function, "__self__", None)) is not None:
        references[""] = owner
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is not None:
        for name, cell in zip(code.co_freevars, cells or (), strict=True):
            try:
                references[name] = cell.cell_contents
            except ValueError:  # not filled yet
                continue
        variables = getattr(function, "__globals__", {})
        references |= {name: variables[name] for name in code.co_names if name in variables}
    for name, value in references.items():
        if isinstance(value, torch.nn.Module):
            yield from value.named_modules(prefix=name)
