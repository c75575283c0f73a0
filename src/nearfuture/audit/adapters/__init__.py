"""One adapter for each kind of model: a numpy function, torch, an ONNX graph, a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nearfuture.audit.adapters.base import (
    Adapter,
    CannotRun,
    NumpyAdapter,
    Precision,
    is_torch,
    preserved_random_state,
)
from nearfuture.audit.adapters.bundle import BundleAdapter
from nearfuture.audit.adapters.onnx_graph import OnnxAdapter
from nearfuture.audit.adapters.torch_module import TorchAdapter, tensor_to_numpy
from nearfuture.audit.call import CallSpec
from nearfuture.error import NearfutureError

__all__ = [
    "Adapter",
    "BundleAdapter",
    "CannotRun",
    "NumpyAdapter",
    "OnnxAdapter",
    "Precision",
    "TorchAdapter",
    "adapt",
    "is_torch",
    "preserved_random_state",
    "tensor_to_numpy",
]


def adapt(fn: Any, example: Any, spec: CallSpec, budget_ms: float | None = None) -> Adapter:
    """Choose the adapter for a model.

    Args:
        fn: a torch module or function, a numpy function, an ONNX file or session, or a bundle.
        example: an input; a function that gets tensors is a torch function.
        spec: how the model is called.
        budget_ms: chooses the head of a bundle.

    Raises:
        NearfutureError: where the model is none of these, or cannot be opened.
    """
    if isinstance(fn, str | Path):
        if Path(fn).suffix == ".onnx":
            return OnnxAdapter.open(Path(fn))
        return BundleAdapter(fn, spec.output, budget_ms)
    if type(fn).__name__ == "InferenceSession":
        return OnnxAdapter(fn, spec.name or "ONNX session", None)
    if not callable(fn):
        raise NearfutureError(
            f"a model is called, but {type(fn).__name__} is not callable", parameter="fn"
        )
    name = spec.name or getattr(fn, "__qualname__", None) or type(fn).__name__
    if is_torch(fn) or is_torch(example):
        dtype = example.dtype if is_torch(example) else None
        return TorchAdapter(fn, name, dtype=dtype, train=spec.train)
    return NumpyAdapter(fn, name)
