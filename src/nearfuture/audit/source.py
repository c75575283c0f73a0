"""The place of code in the form "file:line", as editors, terminals and CI servers read it."""

from __future__ import annotations

import inspect
import os
from functools import lru_cache
from pathlib import Path
from typing import Any


def place(file: str | Path, line: int) -> str:
    """Return a file and a line: below the current folder with its path, else by its name alone.

    >>> place("/elsewhere/net.py", 12), place(Path.cwd() / "a" / "net.py", 3)
    ('net.py:12', 'a/net.py:3')
    """
    try:
        folder = os.getcwd()
    except OSError:  # it has been removed
        folder = ""
    return f"{_shown(str(file), folder)}:{line}"


@lru_cache(maxsize=1024)  # a trace asks once for every operation
def _shown(file: str, folder: str) -> str:
    path = Path(file)
    try:
        below = path.resolve().relative_to(folder)
    except ValueError:  # it lies elsewhere
        return path.name
    return path.name if "site-packages" in below.parts else below.as_posix()


def defined_at(model: Any) -> str | None:
    """Return where a function, or a module's forward, is defined; None where that is not known.

    >>> str(defined_at(defined_at)).split("/")[-1].split(":")[0]
    'source.py'
    >>> defined_at(len) is None
    True
    """
    function = inspect.unwrap(model) if inspect.isroutine(model) else type(model)
    if inspect.isclass(function):
        function = getattr(function, "forward", function.__call__)
    code = getattr(function, "__code__", None)
    if code is None or code.co_filename.startswith("<"):  # compiled, or typed into an interpreter
        return None
    return place(code.co_filename, code.co_firstlineno)
