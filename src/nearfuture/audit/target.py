"""What can be called: torch modules and functions, numpy functions, ONNX graphs."""

from __future__ import annotations

import copy
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.error import NearfutureError

Array = NDArray[Any]


class CannotRun(NearfutureError):  # noqa: N818 - what it says
    """The model does not take this input: of this length, with so many rows, or at all."""

    code = "unsupported"


class Target(ABC):
    """Something that is called with arrays.

    Attributes:
        name: of it, for people.
        follows_nan: whether NaN that goes in shows everywhere it is used.
        forgets: whether `forget` undoes what calls have left behind.
        time_first: whether it says of itself that its first axis is time.
        declared_ms: the worst-case latency it promises; None where it promises nothing.
        unit: what its input is counted in.
    """

    name: str
    follows_nan = True
    forgets = False
    time_first = False
    declared_ms: float | None = None
    unit = "frame"

    @abstractmethod
    def call(self, positional: list[Array], named: Mapping[str, Any], *, seed: int | None) -> Any:
        """Its answer, as it is.

        Raises:
            CannotRun: with what the model raised.
        """

    def is_array(self, value: Any) -> bool:
        """Whether a part of an answer is an array."""
        return isinstance(value, np.ndarray)

    def to_numpy(self, value: Any) -> Array:
        """An array of an answer."""
        return np.asarray(value)

    def invoke(self, function: Any, *arguments: Any) -> Any:
        """Call another function of the same kind, such as the user's own `step`."""
        try:
            return function(*arguments)
        except Exception as error:
            arrays = [part for part in arguments if hasattr(part, "shape")]
            raise _cannot(getattr(function, "__name__", "step"), arrays, error) from error

    def forget(self) -> None:  # noqa: B027 - most have nothing to forget
        """From now on every call begins as if it were the first, where that is possible."""

    def remember(self) -> None:  # noqa: B027
        """Undo `forget`."""

    def in_double(self) -> Target | None:
        """The same with more digits, to see what is small; None where there is no such thing."""
        return None

    def state(self) -> dict[str, Array]:
        """What calls could leave behind, by name, as far as it can be seen."""
        return {}


class CallableTarget(Target):
    """A function of numpy arrays."""

    def __init__(self, function: Any, name: str) -> None:
        self.function = function
        self.name = name

    def call(self, positional: list[Array], named: Mapping[str, Any], *, seed: int | None) -> Any:
        _seed(seed)
        try:
            return self.function(*(part.copy() for part in positional), **named)
        except Exception as error:
            raise _cannot(self.name, positional, error) from error

    def in_double(self) -> Target:
        return self


class TorchTarget(Target):
    """A torch module, or a function of torch tensors.

    Args:
        function: what is called. A module is copied, so that nothing happens to the original.
        name: of it.
        dtype: the torch dtype of the input; None: that of the array.
        train: leave a module in train mode; otherwise it is put in eval mode.

    Attributes:
        modules: every module that can be found, with its path.
    """

    def __init__(self, function: Any, name: str, *, dtype: Any, train: bool = False) -> None:
        import torch

        self.name = name
        self.dtype = dtype
        self.function = function
        self._original, self._train = function, train
        if isinstance(function, torch.nn.Module):
            self.function = _copy(function).train(train)
            self.forgets = self.function is not function
            self.time_first = getattr(function, "batch_first", None) is False
        self.modules = dict(_modules_in(self.function))
        self._afresh = False
        places = [p.device for m in self.modules.values() for p in m.parameters()]
        self.device = places[0] if places else torch.device("cpu")

    def call(
        self,
        positional: list[Array],
        named: Mapping[str, Any],
        *,
        seed: int | None,
        within: AbstractContextManager[Any] | None = None,
    ) -> Any:
        """As for any target; `within` is entered once the arguments are ready."""
        import torch

        _seed(seed)
        if self._afresh:
            self.function = _copy(self._original).train(self._train)
            self.modules = dict(self.function.named_modules())
        function = self.function
        arguments = [self.tensor(part) for part in positional]
        options = {key: self.tensor(part) for key, part in named.items()}
        try:
            with torch.no_grad(), within or nullcontext():
                return function(*arguments, **options)
        except Exception as error:
            raise _cannot(self.name, positional, error) from error

    def invoke(self, function: Any, *arguments: Any) -> Any:
        import torch

        with torch.no_grad():
            return super().invoke(function, *(self.tensor(part) for part in arguments))

    def tensor(self, value: Any) -> Any:
        """A torch tensor of its own, on the model's device."""
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
        import torch

        value = value.detach().cpu()
        if value.is_floating_point() and value.dtype not in (torch.float32, torch.float64):
            value = value.float()
        array: Array = value.numpy()
        return array

    def forget(self) -> None:
        self._afresh = self.forgets

    def remember(self) -> None:
        self._afresh = False

    def in_double(self) -> Target | None:
        import torch

        if self.dtype == torch.float64:
            return None
        if not self.modules:
            return TorchTarget(self._original, self.name, dtype=torch.float64)
        if not isinstance(self._original, torch.nn.Module):
            return None  # modules that it holds on to are not ours to change
        double = _copy(self._original)
        if double is self._original:
            return None
        return TorchTarget(double.double(), self.name, dtype=torch.float64, train=self._train)

    def state(self) -> dict[str, Array]:
        import torch

        if not isinstance(self.function, torch.nn.Module):
            return {}
        return {
            name: self.to_numpy(buffer).copy() for name, buffer in self.function.named_buffers()
        }


class OnnxTarget(Target):
    """An ONNX graph, run by ONNX Runtime on the CPU.

    Some of its kernels swallow NaN (a recurrent node with ReLU, and others depending on version and
    processor), so NaN shows nothing there.

    Args:
        session: an `onnxruntime.InferenceSession`.
        name: of it.
        path: the file it was read from, to name nodes.
    """

    follows_nan = False

    def __init__(self, session: Any, name: str, path: Path | None) -> None:
        self.session = session
        self.name = name
        self.path = path
        self.inputs = {value.name: _NUMPY[value.type] for value in session.get_inputs()}
        self.outputs = [value.name for value in session.get_outputs()]
        self.watched: Any = None

    @classmethod
    def open(cls, path: Path) -> OnnxTarget:
        """Read a file.

        Raises:
            NearfutureError: where ONNX Runtime cannot.
        """
        import onnxruntime as ort

        if not path.is_file():
            raise NearfutureError(f"there is no file {path}")
        options = ort.SessionOptions()
        options.log_severity_level = 4
        try:
            session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's errors have no base class of their own
            raise NearfutureError(
                f"{path} cannot be run: {' '.join(str(error).split())}"
            ) from error
        return cls(session, path.name, path)

    def feed(self, positional: list[Array], named: Mapping[str, Any]) -> dict[str, Array]:
        """Arrays by the name of the graph's inputs, in the types it wants."""
        free = [name for name in self.inputs if name not in named]
        feed = dict(zip(free, positional, strict=False)) | dict(named)
        if missing := [name for name in self.inputs if name not in feed]:
            raise NearfutureError(
                f"{self.name} also takes {', '.join(missing)}: give them with extra={{name: array}}"
            )
        if unknown := [name for name in feed if name not in self.inputs]:
            raise NearfutureError(
                f"{self.name} has no input {', '.join(unknown)}; it has {', '.join(self.inputs)}"
            )
        return {name: np.asarray(value, self.inputs[name]) for name, value in feed.items()}

    def call(self, positional: list[Array], named: Mapping[str, Any], *, seed: int | None) -> Any:
        feed = self.feed(positional, named)
        try:
            values = self.session.run(None, feed)
        except Exception as error:  # as above
            raise _cannot(self.name, positional, error) from error
        return dict(zip(self.outputs, values, strict=True)) if len(values) > 1 else values[0]


_NUMPY = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}


def is_torch(value: Any) -> bool:
    """Whether something comes from torch, without importing it.

    >>> is_torch(3)
    False
    """
    return any(base.__module__.split(".")[0] == "torch" for base in type(value).__mro__)


def integers_of(dtype: np.dtype[Any]) -> bool:
    """Whether values are whole numbers that stand for something, such as tokens.

    >>> integers_of(np.dtype(np.int64)), integers_of(np.dtype(bool))
    (True, False)
    """
    return np.issubdtype(dtype, np.integer)


@contextmanager
def untouched_randomness() -> Iterator[None]:
    """Leave the random generators of Python, numpy and torch as they were found."""
    import sys

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


def _seed(seed: int | None) -> None:
    import sys

    if seed is None:
        return
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)


def _cannot(name: str, positional: Sequence[Array], error: Exception) -> CannotRun:
    shapes = ", ".join(f"{part.dtype} {tuple(part.shape)}" for part in positional)
    reason = " ".join(str(error).split())
    if len(reason) > 300:
        reason = f"{reason[:300]} …"
    on = f" on {shapes}" if shapes else ""
    return CannotRun(f"{name} cannot be run{on}: {type(error).__name__}: {reason}")


def _copy(module: Any) -> Any:
    try:
        return copy.deepcopy(module)
    except Exception:  # whatever a module's own attributes raise: then it is used as it is
        return module


def _modules_in(function: Any) -> Iterator[tuple[str, Any]]:
    """Modules of a module, or those that a function holds on to, by path."""
    import torch

    if isinstance(function, torch.nn.Module):
        yield from function.named_modules()
        return
    held = {}
    if (owner := getattr(function, "__self__", None)) is not None:
        held[""] = owner
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is not None:
        for name, cell in zip(code.co_freevars, cells or (), strict=True):
            try:
                held[name] = cell.cell_contents
            except ValueError:  # not filled yet
                continue
        known = getattr(function, "__globals__", {})
        held |= {name: known[name] for name in code.co_names if name in known}
    for name, value in held.items():
        if isinstance(value, torch.nn.Module):
            yield from value.named_modules(prefix=name)
