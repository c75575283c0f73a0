"""Run a torch model in one precision, whatever conversions it contains."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

_METHODS = {"float", "double", "half", "bfloat16"}


def convert_to(dtype: Any) -> AbstractContextManager[Any]:
    """Return a mode in which `x.float()`, `x.to(torch.float32)` and the like lead to one dtype.

    Args:
        dtype: torch.float32 or torch.float64.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    floats = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    types: dict[Any, Any] = dict.fromkeys(floats, dtype)
    types |= {torch.complex64: dtype.to_complex(), torch.complex128: dtype.to_complex()}
    types |= {torch.HalfTensor: dtype, torch.FloatTensor: dtype, torch.DoubleTensor: dtype}

    def converted(value: Any) -> Any:
        return types.get(value, value) if isinstance(value, torch.dtype | type) else value

    class Conversions(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, _types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if getattr(function, "__name__", "") in _METHODS:
                return args[0].to(dtype)
            options = {name: converted(value) for name, value in (kwargs or {}).items()}
            return function(*map(converted, args), **options)

    return Conversions()
