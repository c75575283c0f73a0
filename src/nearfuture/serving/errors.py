"""The errors of a server: one table of codes, with their HTTP status and websocket close code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse

from nearfuture.error import NearfutureError

# Close codes are those of RFC 6455 and of its registry: 1002 wrong protocol, 1003 wrong data, 1007
# inconsistent data, 1008 against the rules, 1009 too big, 1011 our fault, 1012 restart, 1013 later.
CODES = {
    "invalid": (400, 1002),
    "out_of_range": (400, 1002),
    "unsupported": (400, 1002),
    "conflict": (400, 1002),
    "missing_dependency": (400, 1002),
    "damaged": (400, 1007),
    "bad_audio": (400, 1007),
    "bad_message": (400, 1003),
    "invalid_value": (400, 1002),
    "unsupported_value": (400, 1002),
    "unknown_parameter": (400, 1002),
    "input_audio_buffer_commit_empty": (400, 1002),
    "unauthorized": (401, 1008),
    "forbidden": (403, 1008),
    "not_found": (404, 1002),
    "model_not_found": (404, 1002),
    "method_not_allowed": (405, 1002),
    "idle": (408, 1008),
    "slow_reader": (408, 1008),
    "too_large": (413, 1009),
    "too_long": (413, 1008),
    "internal": (500, 1011),
    "busy": (503, 1013),
    "draining": (503, 1012),
    "no_space": (507, 1013),
}
"""Every code that a client may be sent: its status in HTTP, and its close code on a websocket."""

_HEADERS = {
    401: {"WWW-Authenticate": "Bearer"},
    408: {"Connection": "close"},  # what else is on its way is read no more
    413: {"Connection": "close"},
    503: {"Retry-After": "1"},
}


class RequestError(NearfutureError):
    """The server refuses a request, a message or a connection.

    Args:
        code: one of `CODES`.
        message: what was wrong, the limit, and the way out.
        parameter: the field that is wrong, by its path.

    >>> error = RequestError("busy", "4 streams are open, the most there may be: try again later")
    >>> error.code, error.status, error.close_code
    ('busy', 503, 1013)
    >>> RequestError("invalid", "no file", "file").fields()
    {'message': 'no file', 'type': 'invalid_request_error', 'param': 'file', 'code': 'invalid'}
    """

    def __init__(self, code: str, message: str, parameter: str | None = None) -> None:
        super().__init__(message, parameter=parameter)
        self.code = code
        self.status, self.close_code = CODES[code]

    @classmethod
    def of(cls, error: NearfutureError) -> RequestError:
        """Return any error of the library as one that a client can be sent."""
        if isinstance(error, cls):
            return error
        code = error.code if error.code in CODES else "internal"
        return cls(code, str(error), error.parameter)

    @property
    def recoverable(self) -> bool:
        """Whether a connection can go on after it: a message was wrong, and not its audio."""
        return self.status in (400, 404) and self.close_code != 1007

    def fields(self) -> dict[str, Any]:
        """Return the error with the names of OpenAI's API."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"message": str(self), "type": kind, "param": self.parameter, "code": self.code}

    def response(self, headers: Mapping[str, str] | None = None) -> JSONResponse:
        """Return the HTTP reply, with what a client does next in its headers."""
        return JSONResponse(
            {"error": self.fields()},
            status_code=self.status,
            headers={**_HEADERS.get(self.status, {}), **(headers or {})},
        )
