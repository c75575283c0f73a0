"""A configuration from the values of a JSON file, which anybody may have written."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from nearfuture.error import NearfutureError

Part = TypeVar("Part")

_LARGEST = 2**31 - 1


def from_json_values(kind: type[Part], values: Any) -> Part:
    """Return a dataclass from plain values, whose lists are tuples, if their types are those of it.

    Numbers must be finite, and whole ones within 32 bits: no size of a model is larger.

    Raises:
        NearfutureError: for a field that the dataclass does not have or that is missing, and for a
            value of another type than the field's.

    >>> @dataclasses.dataclass
    ... class Size:
    ...     width: int
    >>> from_json_values(Size, {"width": 1.5})
    Traceback (most recent call last):
    nearfuture.error.NearfutureError: `width` of Size must be int, not 1.5
    """
    if not isinstance(values, Mapping):
        raise NearfutureError(f"{kind.__name__} is {values!r:.60}, which is no object of fields")
    hints = get_type_hints(kind)
    known = {each.name: each for each in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(values) - set(known)):
        raise NearfutureError(f"{kind.__name__} has no field {', '.join(map(repr, unknown))}")
    for name, each in known.items():
        optional = each.default, each.default_factory
        if name not in values and optional == (dataclasses.MISSING, dataclasses.MISSING):
            raise NearfutureError(f"{kind.__name__} needs the field {name!r}", parameter=name)
    fields = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    for name, value in fields.items():
        if not _fits(hints[name], value):
            raise NearfutureError(
                f"`{name}` of {kind.__name__} must be {_named(hints[name])}, not {value!r:.60}",
                parameter=name,
            )
    return kind(**fields)


def _named(hint: Any) -> str:
    """A field's type in words."""
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def _fits(hint: Any, value: Any) -> bool:
    """Whether a value is one of what a field's type says, without any conversion."""
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(each, value) for each in get_args(hint))
    if get_origin(hint) is Literal:
        return isinstance(value, str | int) and value in get_args(hint)
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(get_args(hint)[0], each) for each in value)
    if hint is int:
        return type(value) is int and abs(value) <= _LARGEST
    if hint is float:
        return type(value) in (int, float) and abs(value) <= _LARGEST  # and is no NaN
    return isinstance(value, NoneType if hint is None else hint)
