"""Streaming speech recognition with an exact, configurable lookahead.

Names are imported when they are first used, so that running a model never loads torch.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearfuture.budget import ReceptiveField
    from nearfuture.error import NearfutureError
    from nearfuture.layers import Serial, StreamingLayer
    from nearfuture.runtime import load

__version__ = "0.1.0"

# ONNX Runtime from 1.29 reports every process and session to Microsoft, and keeps an identifier
# under the home folder, unless this is set before it is loaded. Set it to 0 to allow that.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__all__ = [
    "NearfutureError",
    "ReceptiveField",
    "Serial",
    "StreamingLayer",
    "__version__",
    "load",
]

_HOMES = {
    "NearfutureError": "nearfuture.error",
    "ReceptiveField": "nearfuture.budget",
    "Serial": "nearfuture.layers",
    "StreamingLayer": "nearfuture.layers",
    "load": "nearfuture.runtime",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
