"""The layout of an input whose axes were not named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from nearfuture.audit.adapters import Adapter, TorchAdapter
from nearfuture.error import NearfutureError

SWAPPED = {"NTC": "NCT", "NCT": "NTC"}
"""Layouts that are easily taken for each other."""

_FEATURES_FIRST = {
    "Conv1d": "in_channels",
    "ConvTranspose1d": "in_channels",
    "BatchNorm1d": "num_features",
    "InstanceNorm1d": "num_features",
}
"""Layers of torch that read (N, C, T), and the attribute that holds C."""


def usual_layout(x: NDArray[Any], adapter: Adapter) -> str:
    """Return the layout of an example by its number of axes."""
    if x.ndim == 1:
        return "T"
    if x.ndim == 2:
        return "TC" if adapter.time_first else "NT"
    if x.ndim == 3:
        return "TNC" if adapter.time_first else "NTC"
    raise NearfutureError(
        f"an example of {x.ndim} axes {x.shape} needs `layout`: a letter for every axis, N for "
        f"rows, T for time, e.g. NCFT",
        parameter="layout",
    )


def first_layer_reads_features_first(adapter: Adapter, shape: Sequence[int]) -> bool:
    """Whether the first layer with weights or statistics is one of (N, C, T) that fits an input."""
    if not isinstance(adapter, TorchAdapter):
        return False
    for module in adapter.modules().values():
        attribute = _FEATURES_FIRST.get(type(module).__name__)
        if attribute is not None:
            return bool(getattr(module, attribute) == shape[1])
        if any(True for _ in module.parameters(recurse=False)):
            return False
    return False
