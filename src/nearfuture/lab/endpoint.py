"""Endpoints: plain functions whose signature says what a request may ask for.

A parameter is an `int` or `float` with `Between(lowest, highest)`, a `bool`, or a `Literal` of
texts, and has a default; `body: bytes` is the body of a request. The page's controls take their
limits from the same signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from nearfuture.lab.refusal import Refusal

BODY = "body"


@dataclass(frozen=True)
class Between:
    """The limits of a number, and the step of its slider."""

    lowest: float
    highest: float
    step: float = 1


@dataclass(frozen=True)
class Text:
    """The longest that a text may be, in characters."""

    longest: int


def parameters(function: Callable[..., object]) -> dict[str, dict[str, Any]]:
    """Return what a function takes, for the controls of a page.

    >>> def matrix(tau: Annotated[int, Between(0, 6)] = 2, cell: Literal["gru", "rnn"] = "gru"): ...
    >>> parameters(matrix)["tau"]
    {'default': 2, 'min': 0, 'max': 6, 'step': 1}
    >>> parameters(matrix)["cell"]
    {'default': 'gru', 'choices': ['gru', 'rnn']}
    """
    hints = get_type_hints(function, include_extras=True)
    described: dict[str, dict[str, Any]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name == BODY:
            continue
        each: dict[str, Any] = {"default": parameter.default}
        kind, limits = _kind(hints[name])
        if get_origin(kind) is Literal:
            each["choices"] = list(get_args(kind))
        elif isinstance(limits, Between):
            each |= {"min": limits.lowest, "max": limits.highest, "step": limits.step}
        described[name] = each
    return described


def call(function: Callable[..., object], query: Mapping[str, str], body: bytes = b"") -> object:
    """Call a function with what a request asks for.

    Args:
        function: an endpoint.
        query: the values of a request, as texts.
        body: its body, for a function that takes one.

    Raises:
        Refusal: for a parameter that the function has not, and a value out of its limits.

    >>> def double(n: Annotated[int, Between(0, 9)] = 1) -> int:
    ...     return 2 * n
    >>> call(double, {"n": "4"}), call(double, {})
    (8, 2)
    """
    hints = get_type_hints(function, include_extras=True)
    known = inspect.signature(function).parameters
    values: dict[str, object] = {BODY: body} if BODY in known else {}
    for name, text in query.items():
        if name not in known or name == BODY:
            raise Refusal(
                "unknown-parameter",
                f"there is no `{name[:40]}`; there is {', '.join(known) or 'nothing to choose'}",
                code="not_found",
                parameter=name[:40],
                name=name[:40],
            )
        values[name] = _value(name, text, *_kind(hints[name]))
    return function(**values)


def _kind(hint: Any) -> tuple[Any, Between | Text | None]:
    """The type of a parameter, and its limits."""
    if get_origin(hint) is Annotated:
        kind, limits, *_ = get_args(hint)
        return kind, limits
    return hint, None


def _value(name: str, text: str, kind: Any, limits: Between | Text | None) -> object:
    shown = text[:40]
    if get_origin(kind) is Literal or kind is bool:
        choices = ("true", "false") if kind is bool else get_args(kind)
        if text in choices:
            return text == "true" if kind is bool else text
        listed = ", ".join(choices)
        raise Refusal(
            "no-choice",
            f"`{name}` is one of {listed}, not {shown!r}",
            parameter=name,
            name=name,
            choices=listed,
            value=shown,
        )
    if kind is str:
        assert isinstance(limits, Text), f"{name} has no longest text"
        if len(text) > limits.longest:
            raise Refusal(
                "text-too-long",
                f"`{name}` has {len(text)} characters; {limits.longest} are the most",
                code="too_large",
                parameter=name,
                name=name,
                length=len(text),
                most=limits.longest,
            )
        return text
    assert isinstance(limits, Between), f"{name} has no limits"
    try:
        number = kind(text)
    except ValueError:
        raise Refusal(
            "no-number",
            f"`{name}` is a number, not {shown!r}",
            parameter=name,
            name=name,
            value=shown,
        ) from None
    if not limits.lowest <= number <= limits.highest:  # nor is NaN
        raise Refusal(
            "out-of-range",
            f"`{name}` is from {limits.lowest:g} to {limits.highest:g}, not {shown}",
            code="out_of_range",
            parameter=name,
            name=name,
            lowest=limits.lowest,
            highest=limits.highest,
            value=shown,
        )
    return number
