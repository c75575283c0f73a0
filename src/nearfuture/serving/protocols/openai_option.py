"""Options of OpenAI's that this server does not have: only the value that asks for nothing passes.

A client that asks for a prompt to be regarded, for noise to be reduced or for probabilities must
hear that it does not get them. Clients that send the option with its usual value, as many do, ask
for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from nearfuture.serving.limits import shown
from nearfuture.serving.protocols.openai_error import OpenAIError

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*")


def refuse_options(
    fields: Mapping[str, Any],
    *,
    read: Collection[str],
    usual: Mapping[str, tuple[object, ...]],
    where: str = "",
) -> None:
    """Refuse what a client asks for and does not get.

    Args:
        fields: as the client sent them.
        read: the names of those that somebody reads.
        usual: those that nobody reads, with the values that ask for nothing; null always does.
        where: the path to them, for the message.

    Raises:
        OpenAIError: for another value, and for a field that means nothing, by its path.

    >>> refuse_options({"threshold": 0.5}, read=(), usual={"threshold": (0.5,)})
    >>> refuse_options({"threshold": 0.9}, read=(), usual={"threshold": (0.5,)}, where="turns")
    Traceback (most recent call last):
    nearfuture.serving.protocols.openai_error.OpenAIError: turns.threshold 0.9 is not offered: leave
    it out, or send 0.5
    """
    for name, value in fields.items():
        path = f"{where}.{name}" if where else name
        if name in read:
            continue
        if name not in usual:
            raise OpenAIError(
                f"{shown(path, 80)} means nothing here: there are "
                f"{', '.join(sorted({*read, *usual}))}",
                param=path[:80],
                code="unknown_parameter",
            )
        nothing = usual[name]
        if value is None or any(_same(value, one) for one in nothing):
            continue
        instead = f", or send {shown(nothing[0])}" if nothing else ""
        raise OpenAIError(
            f"{path} {shown(value)} is not offered: leave it out{instead}",
            param=path,
            code="unsupported_value",
        )


def _same(value: object, other: object) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def as_language(value: object, where: str) -> str | None:
    """A language as its tag, such as `en` or `zh-TW`; None for none.

    A model knows the languages that it was trained on, whatever a client names: it is told back.

    Raises:
        OpenAIError: for what is no tag of a language.

    >>> as_language("en", "language"), as_language("", "language")
    ('en', None)
    """
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not _LANGUAGE.fullmatch(value):
        raise OpenAIError(
            f"{where} {shown(value)} is no language: a tag such as 'en' is wanted",
            param=where,
            code="invalid_value",
        )
    return value
