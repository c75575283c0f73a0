"""Errors of the lab as a page says them: a key of its language's texts, and the values to fill in.

A page writes the text `error-KEY`. Errors of the library that are none of the lab's have the key
`code-CODE`, so that there is a sentence for each of them in every language.
"""

from __future__ import annotations

from typing import Any

from nearfuture.error import Code, NearfutureError
from nearfuture.serving.errors import RequestError


class Refusal(NearfutureError):  # noqa: N818 - what it says, not that it failed
    """An error that every language of the lab has a text for.

    Args:
        key: of the text, without its `error-`.
        message: the same in English, for programs.
        code: as of any error.
        parameter: as of any error.
        values: what the text fills in.

    >>> error = Refusal("too-long", "31 s, not 30", code="too_large", most=30, seconds=31)
    >>> error.code, fields(error)["key"], fields(error)["values"]
    ('too_large', 'too-long', {'most': 30, 'seconds': 31})
    """

    def __init__(
        self,
        key: str,
        message: str,
        *,
        code: Code | None = None,
        parameter: str | None = None,
        **values: float | str,
    ) -> None:
        super().__init__(message, code=code, parameter=parameter)
        self.key, self.values = key, values


def fields(error: NearfutureError) -> dict[str, Any]:
    """Return an error as JSON: as the server does, with the key and the values of its text.

    >>> fields(NearfutureError("no", code="busy"))["key"]
    'code-busy'
    """
    sent = RequestError.of(error).fields()
    if isinstance(error, Refusal):
        return {**sent, "key": error.key, "values": error.values}
    return {**sent, "key": f"code-{error.code}", "values": {}}
