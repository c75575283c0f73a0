"""What a name on the command line stands for: Python code of the user's, a graph, or a bundle."""

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
    """Something to audit.

    Attributes:
        name: as it was given.
        model: what is called; for a graph or a bundle, where it is.
        kind: which of them.
    """

    name: str
    model: Any
    kind: Literal["module", "function", "graph", "bundle"]


def resolve(name: str) -> Target:
    """What is to be audited.

    Args:
        name: `pkg.module:name` or `file.py:name` (a torch module is taken as it is; a class, or a
            function that needs no argument, is called to get one; any other function is itself what
            is audited), a `.onnx` file, or a bundle's folder, zip file or name.

    Raises:
        NearfutureError: where there is no such thing, or where the user's code raises.
    """
    from nearfuture.runtime import bundled

    if name.endswith(".onnx"):
        return Target(name, name, "graph")
    if name in bundled() or Path(name).is_dir() or name.endswith(".zip"):
        return Target(name, name, "bundle")
    if ":" not in name:
        raise NearfutureError(
            f"{name!r} is no .onnx file and no bundle ({', '.join(bundled())}, a folder, a zip "
            f"file); Python code is named with a colon: package.module:name or file.py:name"
        )
    model = _built(named(name), name)
    if _is_torch_module(model):
        return Target(name, model, "module")
    if not callable(model) and type(model).__name__ != "InferenceSession":
        raise NearfutureError(
            f"{name} is {_described(model)}, which cannot be called: name a torch module, a "
            f"function, or one without parameters that returns either"
        )
    return Target(name, model, "function")


def seeded(seed: int) -> None:
    """Let everything that the user's code draws follow from a seed, weights above all.

    What this process drew before is of no interest to it, so nothing is restored. Torch draws anew
    in every process; it is seeded where the user's code loads it, and never loaded for that.

    Args:
        seed: from 0 and below 2**32.
    """
    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)
    else:
        sys.meta_path.insert(0, _SeedsTorch(seed))


class _SeedsTorch(MetaPathFinder):
    """Waits until torch is loaded, and seeds it before anybody else can use it."""

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
    """The object that `pkg.module:name` or `file.py:name` stands for.

    Raises:
        NearfutureError: where there is no such thing, or where the user's code raises.
    """
    place, _, path = name.rpartition(":")
    if not place or not path:
        raise NearfutureError(
            f"Python code is named as package.module:name or file.py:name, not {name!r}"
        )
    value: Any = _file(Path(place)) if place.endswith(".py") else _module(place)
    for part in path.split("."):
        with _code_of_the_user(f"reading {name}"):
            found = hasattr(value, part)
        if not found:
            near = get_close_matches(part, [one for one in dir(value) if one[0] != "_"])
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise NearfutureError(f"{place} has no {path!r}{hint}")
        value = getattr(value, part)
    return value


def _module(name: str) -> ModuleType:
    _importable(Path.cwd())
    with _code_of_the_user(f"importing {name}"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
    raise NearfutureError(
        f"there is no module {name!r}, neither in the current folder nor among the installed ones"
    )


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NearfutureError(f"there is no file {path}")
    _importable(path.resolve().parent)
    # Under a name of its own, so that it never takes the place of an installed module.
    spec = importlib.util.spec_from_file_location(f"_audited_{path.stem}", path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    with _code_of_the_user(f"importing {path}"):
        spec.loader.exec_module(module)
    return module


def _importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _built(value: Any, name: str) -> Any:
    """A class, or a function that needs no argument, is called; anything else is what it is."""
    if inspect.isclass(value):
        if needed := _needed(value):
            raise NearfutureError(
                f"{name} needs {', '.join(needed)} to be built: name a function without "
                f"parameters that builds it"
            )
    elif not (inspect.isroutine(value) or isinstance(value, functools.partial)) or _needed(value):
        return value
    with _code_of_the_user(f"calling {name}()"):
        return value()


def _needed(function: Any) -> list[str]:
    """The parameters that a call must give; those that take any number of arguments count."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # compiled, so nobody knows: it is no factory
        return [] if inspect.isclass(function) else ["?"]
    return [
        f"*{one.name}" if one.kind is one.VAR_POSITIONAL else one.name
        for one in parameters
        if (one.kind is one.VAR_POSITIONAL and not inspect.isclass(function))
        or (one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD))
    ]


def _is_torch_module(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _described(value: Any) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


@contextmanager
def _code_of_the_user(doing: str) -> Iterator[None]:
    """Tell what the user's code raises in one line, and where."""
    try:
        yield
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())
        message = f"{doing} failed: {type(error).__name__}: {reason}{_place(error)}"
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            message += f"; install it with: {HOW_TO_TRAIN}"
        raise NearfutureError(message) from error


def _place(error: BaseException) -> str:
    """The last line of the user's own that ran."""
    if isinstance(error, SyntaxError) and error.filename:
        return "" if f"line {error.lineno}" in str(error) else f" ({error.filename}:{error.lineno})"
    here = os.path.dirname(__file__)
    foreign = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), here, "<frozen")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(foreign)]
    return f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
