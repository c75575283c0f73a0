"""What every kind of model offers to the audit: a call, its state, and a copy in float64."""

from __future__ import annotations

import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.source import defined_at
from nearfuture.error import NearfutureError

Array = NDArray[Any]
Precision = Literal["float32", "float64"]


class CannotRun(NearfutureError):  # noqa: N818 - what it says
    """An error for an input, a length or a number of rows that the model does not accept."""

    code = "unsupported"


class Adapter(ABC):
    """An adapter by which a model is called with numpy arrays.

    Attributes:
        name: the model's name in a report.
        propagates_nan: a NaN in the input reaches every output that uses it.
        time_first: the model itself declares that its first axis is time.
        declared_ms: the worst-case latency that the model declares; None if it declares none.
        frame_ms: duration of one input frame, where the model states it.
        unit: what one step of the input's time axis is called.
        source: file and line where the model is defined, if known.
    """

    name: str
    propagates_nan = True
    time_first = False
    declared_ms: float | None = None
    frame_ms: float | None = None
    unit = "frame"
    source: str | None = None

    @abstractmethod
    def call(self, positional: list[Array], named: Mapping[str, Any], *, seed: int | None) -> Any:
        """Call the model and return its result unchanged.

        Raises:
            CannotRun: with what the model raised.
        """

    def is_array(self, value: Any) -> bool:
        """Whether a part of a result is an array."""
        return isinstance(value, np.ndarray)

    def to_numpy(self, value: Any) -> Array:
        """Convert an array of a result."""
        return np.asarray(value)

    def invoke(self, function: Any, *arguments: Any) -> Any:
        """Call another function of the same kind, such as the user's `step`."""
        try:
            return function(*arguments)
        except Exception as error:
            arrays = [part for part in arguments if hasattr(part, "shape")]
            raise cannot_run(getattr(function, "__name__", "step"), arrays, error) from error

    def reset_each_call(self) -> Adapter | None:
        """Return an adapter whose every call is a first call; None where that is impossible."""
        return None

    def in_precision(self, precision: Precision) -> Adapter | None:
        """Return the same model in another precision; None where that is impossible."""
        return None

    def state(self) -> dict[str, Array]:
        """Return what calls may leave behind, by name, as far as it is visible."""
        return {}


class NumpyAdapter(Adapter):
    """An adapter for a function of numpy arrays."""

    def __init__(self, function: Any, name: str) -> None:
        self.function = function
        self.name = name
        self.source = defined_at(function)

    def call(self, positional: list[Array], named: Mapping[str, Any], *, seed: int | None) -> Any:
        seed_everything(seed)
        try:
            return self.function(*(part.copy() for part in positional), **named)
        except Exception as error:
            raise cannot_run(self.name, positional, error) from error

    def in_precision(self, precision: Precision) -> Adapter:
        return self


def is_torch(value: Any) -> bool:
    """Whether a value's class comes from torch, without importing torch.

    >>> is_torch(3)
    False
    """
    return any(base.__module__.split(".")[0] == "torch" for base in type(value).__mro__)


@contextmanager
def preserved_random_state() -> Iterator[None]:
    """Restore the random generators of Python, numpy and torch on exit."""
    torch = sys.modules.get("torch")
    python, numpy = random.getstate(), np.random.get_state()
    state = torch.get_rng_state() if torch else None
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        if torch:
            torch.set_rng_state(state)


def seed_everything(seed: int | None) -> None:
    """Seed the generators of Python, numpy and, where it is loaded, torch."""
    if seed is None:
        return
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if torch := sys.modules.get("torch"):
        # `manual_seed` takes a trace of the whole stack for each kind of device that is missing,
        # which would be a good part of every call of a small model.
        accelerator = getattr(torch, "accelerator", None)
        missing = accelerator is not None and not accelerator.is_available()
        (torch.default_generator.manual_seed if missing else torch.manual_seed)(seed)


def cannot_run(name: str, positional: Sequence[Array], error: Exception) -> CannotRun:
    """Describe what a model raised, and the shapes of its arguments, in one line."""
    shapes = ", ".join(f"{part.dtype} {tuple(part.shape)}" for part in positional)
    reason = " ".join(str(error).split())
    if len(reason) > 300:
        reason = f"{reason[:300]} …"
    on = f" on {shapes}" if shapes else ""
    return CannotRun(f"{name} cannot be run{on}: {type(error).__name__}: {reason}")
