"""What clients write in JSON, checked: a value of the wrong kind is refused by its name."""

from __future__ import annotations

import json
import math
import reprlib
from typing import Any

from nearfuture.serving.errors import RequestError

_BRIEF = reprlib.Repr()
_BRIEF.maxlevel = 3  # what is nested deeper than the interpreter's stack has no `repr`
_BRIEF.maxstring = _BRIEF.maxother = 100


def brief(value: object, length: int = 40) -> str:
    """Return what a client sent for a message: one short line, whatever it was.

    >>> brief(400.5), brief("opus"), brief([[[[["deep"]]]]]), len(brief("long" * 99))
    ('400.5', "'opus'", '[[[[...]]]]', 43)
    """
    if isinstance(value, str):
        return repr(value[:length]) + ("…" if len(value) > length else "")
    text = _BRIEF.repr(value)
    return f"{text[:length]}…" if len(text) > length else text


def as_object(text: str | bytes) -> dict[str, Any] | None:
    """Return the JSON object in a message; None if there is none.

    >>> as_object('{"type": "ping"}'), as_object("[" * 100_000), as_object(bytes(320))
    ({'type': 'ping'}, None, None)
    """
    if isinstance(text, bytes) and not text.startswith(b"{"):
        return None  # audio, as a rule
    try:
        value = json.loads(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def parse_message(text: str) -> dict[str, Any]:
    """Return the JSON object in a text message.

    Raises:
        RequestError: for anything else.

    >>> parse_message("[" * 100_000)
    Traceback (most recent call last):
    nearfuture.serving.errors.RequestError: a text message is a JSON object, not '[...
    """
    fields = as_object(text)
    if fields is None:
        raise RequestError("bad_message", f"a text message is a JSON object, not {brief(text, 20)}")
    return fields


def as_number(value: object, name: str) -> float:
    """Return a finite number.

    Raises:
        RequestError: for anything else, booleans and NaN included.

    >>> as_number(400, "budget_ms")
    400.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        raise RequestError("invalid", f"{name} is {brief(value)}: a number is expected", name)
    return float(value)


def as_text(value: object, name: str) -> str:
    """Return a text.

    Raises:
        RequestError: for anything else.

    >>> as_text("digits", "model")
    'digits'
    """
    if not isinstance(value, str):
        raise RequestError("invalid", f"{name} is {brief(value)}: text is expected", name)
    return value


def as_rate(value: object, *, code: str = "invalid") -> int:
    """Return a sample rate.

    Raises:
        RequestError: unless it is a whole number from 4000 to 192000; with another `code` where it
            is no client's own choice.

    >>> as_rate(8000), as_rate(44100.0)
    (8000, 44100)
    """
    # The lab asks for an origin alone, before it reads any sound.
    from nearfuture.audio.limits import HIGHEST_RATE, LOWEST_RATE

    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole or not LOWEST_RATE <= value <= HIGHEST_RATE:  # type: ignore[operator]
        raise RequestError(
            code,
            f"rate is {brief(value)}: a whole number of samples per second from {LOWEST_RATE} to "
            f"{HIGHEST_RATE} is expected",
            "rate",
        )
    return int(value)  # type: ignore[call-overload, no-any-return]


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer of hundreds of digits
        return False
