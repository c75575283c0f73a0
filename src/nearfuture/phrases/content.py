"""The files that phrases are typed in: read, parsed, and bounded before anything is built of them.

A few hundred bytes can stand for more than any memory: aliases of aliases, brackets
within brackets. What counts is what is left when all of them are put in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nearfuture.error import NearfutureError

_MOST_BYTES = 16 << 20
_MOST_VALUES = 1_000_000
_DEEPEST = 50
_LONGEST = 10_000
"""Characters of a template; they are parsed in a time that grows with their square."""


def read_text(path: str | Path) -> str:
    """Read a text in UTF-8.

    Raises:
        NearfutureError: for a file that cannot be read, is no such text, or is too large.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise NearfutureError(f"{path} has more than {_MOST_BYTES} bytes", code="too_large")
        return content.decode()
    except OSError as error:
        raise NearfutureError(
            f"{path} cannot be read: {(error.strerror or str(error)).lower()}", code="not_found"
        ) from error
    except UnicodeDecodeError as error:
        raise NearfutureError(f"{path} is no text in UTF-8", code="damaged") from error


def parse_yaml(text: str, name: str) -> dict[str, Any]:
    """Parse a file of template sentences, in YAML or JSON, and check its size.

    Raises:
        NearfutureError: naming the file, for what is no YAML, no mapping, or too large.
    """
    import yaml

    try:
        content = yaml.safe_load(text)
    except RecursionError as error:
        raise _too_deep() from error
    except (yaml.YAMLError, ValueError) as error:  # numbers and dates that are none
        raise NearfutureError(f"{name} is no YAML: {error}", code="damaged") from error
    if not isinstance(content, dict):
        raise NearfutureError(
            f"{name} has no `intents` or `lists`: it is no file of template sentences",
            code="damaged",
        )
    check_content(content)
    return content


def check_content(content: Any) -> None:
    """Check how much there is when every alias is put in, how deep, and how long each text is.

    Raises:
        NearfutureError: for too much, also for what contains itself.
    """
    _size(content, 0, {})


def _size(value: Any, depth: int, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return how many values there are, and how many stand in each other."""
    if depth > _DEEPEST:
        raise _too_deep()
    if isinstance(value, str):
        _check_text(value)
    if not isinstance(value, Mapping | list | tuple | set):
        return 1, 0
    if id(value) in known:
        return known[id(value)]
    parts = [*value, *value.values()] if isinstance(value, Mapping) else value
    size, height = 1, 0
    for part in parts:
        more, below = _size(part, depth + 1, known)
        size, height = size + more, max(height, 1 + below)
        if size > _MOST_VALUES:
            raise NearfutureError(
                f"the phrases have more than {_MOST_VALUES:,} values when aliases are put in",
                code="too_large",
            )
        if depth + height > _DEEPEST:
            raise _too_deep()
    known[id(value)] = size, height
    return size, height


def _check_text(text: str) -> None:
    depth = 0
    for character in text:
        depth += (character in "([{<") - (character in ")]}>")
        if depth > _DEEPEST:
            raise _too_deep()
    if len(text) > _LONGEST:
        raise NearfutureError(
            f"the template {text[:40]!r}… has {len(text):,} characters; {_LONGEST:,} are the most",
            code="too_large",
        )


def _too_deep() -> NearfutureError:
    return NearfutureError(
        f"the phrases have more than {_DEEPEST} brackets or values within each other, or contain "
        f"themselves",
        code="too_large",
    )
