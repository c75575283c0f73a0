"""What a page of the lab is: a name, endpoints, and the code behind its figure."""

from __future__ import annotations

import doctest
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
ASSETS = PACKAGE / "assets" / "lab"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of the lab.

    Its texts are under its name in `assets/lab/texts/`, its figure is the module of its name in
    `assets/lab/pages/`.

    Args:
        name: its path, and the name of its texts and its module.
        endpoints: the functions that compute its figure, by name, see `endpoint.call`.
        module: the module whose docstring has the code that reproduces the figure's number.
        behind: the files behind the figure, below the package, such as "layers/lookahead.py".
        unrecorded: endpoints that a copy of the lab does not answer, such as a training.
        in_browser: endpoints that a copy of the lab computes in the browser, by the module
            `assets/lab/js/in-browser/<name>.js`.
    """

    name: str
    endpoints: Mapping[str, Callable[..., object]]
    module: str
    behind: tuple[str, ...] = ()
    unrecorded: tuple[str, ...] = ()
    in_browser: tuple[str, ...] = ()

    def code(self) -> str:
        """The example in the docstring of the page's module, as lines to copy.

        >>> Page(name="page", endpoints={}, module=__name__).code()
        ''
        """
        return as_code(sys.modules[self.module].__doc__ or "")


@dataclass(frozen=True)
class Media:
    """What an endpoint answers that is no JSON, such as a sound."""

    content: bytes
    media_type: str


def as_code(docstring: str) -> str:
    r"""Return the doctests of a docstring as a program, their results as comments.

    >>> print(as_code("Text. \n\n>>> x = 1\n>>> print(x)\n1\n"), end="")
    x = 1
    print(x)  # 1
    """
    lines: list[str] = []
    for example in doctest.DocTestParser().get_examples(docstring):
        source, want = example.source.rstrip(), example.want.rstrip()
        results = want.splitlines()
        if len(results) == 1 and len(source.splitlines()[-1]) + len(want) < 84:
            lines.append(f"{source}  # {want}")
        else:
            lines += [source, *(f"# {result}" for result in results)]
    return "".join(f"{line}\n" for line in lines)


def as_json(value: Any) -> Any:
    """Return numpy arrays and numbers that JSON does not have as what it has; inf is null.

    >>> import numpy as np
    >>> as_json({"m": np.array([[True]]), "ms": float("inf"), "pair": (1, np.float32(0.5))})
    {'m': [[True]], 'ms': None, 'pair': [1, 0.5]}
    """
    if isinstance(value, Mapping):
        return {key: as_json(each) for key, each in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    if isinstance(value, float) and not -1e308 < value < 1e308:
        return None
    return value
