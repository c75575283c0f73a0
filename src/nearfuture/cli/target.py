"""Load the model that a name on the command line stands for: Python code, a graph, or a bundle."""

import functools
import importlib
import importlib.util
import inspect
import os
import random
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from nearfuture.cli.extra import HOW_TO_TRAIN
from nearfuture.error import NearfutureError


@dataclass(frozen=True)
class Target:
    """A model that the command line names.

    Attributes:
        name: The name on the command line.
        model: What is called; for a graph or a bundle, its path or name.
        kind: What it is.
    """

    name: str
    model: Any
    kind: Literal["module", "function", "graph", "bundle"]


def resolve(name: str) -> Target:
    """Load the model that a name on the command line stands for.

    Args:
        name: `pkg.module:name` or `file.py:name` (a torch module is taken as it is; a class, or a
            function that needs no argument, is called to get one; any other function is a model
            itself), a `.onnx` file, or a bundle's folder, zip file or name.

    Raises:
        NearfutureError: where there is no such model, or where the user's code raises.
    """
    from nearfuture.runtime import bundled

    if name.endswith(".onnx"):
        return Target(name, name, "graph")
    if name in bundled() or Path(name).is_dir() or name.endswith(".zip"):
        return Target(name, name, "bundle")
    if ":" not in name:
        raise NearfutureError(
            f"{name!r} is no .onnx file and no bundle ({', '.join(bundled())}, a folder, a zip "
            f"file); Python code is named with a colon: package.module:name or file.py:name",
            code="not_found",
            parameter="target",
        )
    model = _built(named(name), name)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return Target(name, model, "module")
    if not callable(model) and type(model).__name__ != "InferenceSession":
        described = "None" if model is None else f"of type {type(model).__name__}"
        raise NearfutureError(
            f"{name} is {described}, which cannot be called: name a torch module, a "
            f"function, or one without parameters that returns either",
            code="unsupported",
            parameter="target",
        )
    return Target(name, model, "function")


def seeded(seed: int) -> None:
    """Seed everything that the user's code draws, weights above all.

    Nothing is restored afterwards. Torch draws other numbers in every process; it is
    seeded when the user's code imports it, and never imported for that.

    Args:
        seed: From 0 and below 2**32.
    """
    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)
    else:
        sys.meta_path.insert(0, _SeedsTorch(seed))


class _SeedsTorch(MetaPathFinder):
    """Seed torch when it is imported, before any other code can use it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_seed(module: ModuleType) -> None:
                load(module)
                module.manual_seed(self.seed)

            spec.loader.exec_module = load_and_seed  # type: ignore[method-assign]
        return spec


def named(name: str) -> Any:
    """Import the object that `pkg.module:name` or `file.py:name` names.

    Raises:
        NearfutureError: where there is no such object, or where the user's code raises.
    """
    module, _, path = name.rpartition(":")
    if not module or not path:
        raise NearfutureError(
            f"Python code is named as package.module:name or file.py:name, not {name!r}"
        )
    value: Any = _import_file(Path(module)) if module.endswith(".py") else _import_module(module)
    for attribute in path.split("."):
        with _user_code(f"reading {name}"):
            exists = hasattr(value, attribute)
        if not exists:
            public = [known for known in dir(value) if known[0] != "_"]
            near = get_close_matches(attribute, public)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise NearfutureError(f"{module} has no {path!r}{hint}", code="not_found")
        value = getattr(value, attribute)
    return value


def _import_module(name: str) -> ModuleType:
    _make_importable(Path.cwd())
    with _user_code(f"importing {name}"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
    raise NearfutureError(
        f"there is no module {name!r}, neither in the current folder nor among the installed ones",
        code="not_found",
    )


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NearfutureError(f"there is no file {path}", code="not_found")
    _make_importable(path.resolve().parent)
    # Under a name of its own, so that it never takes the place of an installed module.
    spec = importlib.util.spec_from_file_location(f"_audited_{path.stem}", path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    with _user_code(f"importing {path}"):
        spec.loader.exec_module(module)
    return module


def _make_importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _built(value: Any, name: str) -> Any:
    """Call a class, or a function that needs no argument; return anything else as it is."""
    if inspect.isclass(value):
        if required := _required(value):
            raise NearfutureError(
                f"{name} needs {', '.join(required)} to be built: name a function without "
                f"parameters that builds it"
            )
    elif not (inspect.isroutine(value) or isinstance(value, functools.partial)) or _required(value):
        return value
    with _user_code(f"calling {name}()"):
        return value()


def _required(function: Any) -> list[str]:
    """List the parameters that a call must give; a function's *args count as such."""
    is_class = inspect.isclass(function)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # compiled, so nobody knows: it is no factory
        return [] if is_class else ["?"]
    required = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            required += [] if is_class else [f"*{parameter.name}"]
        elif parameter.kind is not parameter.VAR_KEYWORD and parameter.default is parameter.empty:
            required.append(parameter.name)
    return required


@contextmanager
def _user_code(action: str) -> Iterator[None]:
    """Report what the user's code raises in one line, with its place."""
    try:
        yield
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())
        message = f"{action} failed: {type(error).__name__}: {reason}{_place(error)}"
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            message += f"; install it with: {HOW_TO_TRAIN}"
        raise NearfutureError(message) from error


def _place(error: BaseException) -> str:
    """Tell which line of the user's code ran last."""
    if isinstance(error, SyntaxError) and error.filename:
        return "" if f"line {error.lineno}" in str(error) else f" ({error.filename}:{error.lineno})"
    here = os.path.dirname(__file__)
    foreign = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), here, "<frozen")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(foreign)]
    return f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
