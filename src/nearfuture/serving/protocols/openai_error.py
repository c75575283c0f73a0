"""Errors in the shape that OpenAI's clients read, in replies and in events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse

from nearfuture.error import NearfutureError
from nearfuture.serving.limits import Refused

_HEADERS = {
    401: {"WWW-Authenticate": "Bearer"},
    408: {"Connection": "close"},  # what else is on its way is read no more
    413: {"Connection": "close"},
    503: {"Retry-After": "1"},
}


class OpenAIError(NearfutureError):
    """What a client asked for and does not get: told with OpenAI's fields.

    Args:
        message: one line; names the value, the limit and the way out.
        param: the field that is wrong.
        code: for programs, e.g. `model_not_found`.
        status: of the HTTP reply.

    >>> OpenAIError("no file", param="file").fields()
    {'message': 'no file', 'type': 'invalid_request_error', 'param': 'file', 'code': None}
    """

    def __init__(
        self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message, parameter=param)
        self.openai_code, self.status = code, status

    @classmethod
    def of(cls, error: NearfutureError) -> OpenAIError:
        """Any of our errors in this shape; what is one already stays as it is."""
        if isinstance(error, cls):
            return error
        if isinstance(error, Refused):
            return cls(str(error), code=error.code, status=error.status)
        return cls(str(error))

    def fields(self) -> dict[str, Any]:
        """What stands under `error`."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {
            "message": str(self),
            "type": kind,
            "param": self.parameter,
            "code": self.openai_code,
        }

    def response(self, headers: Mapping[str, str] | None = None) -> JSONResponse:
        """As an HTTP reply, with what a client does next in its headers."""
        return JSONResponse(
            {"error": self.fields()},
            status_code=self.status,
            headers={**_HEADERS.get(self.status, {}), **(headers or {})},
        )
