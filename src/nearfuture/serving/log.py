"""The server's log: lines for people, or JSON for programs; never audio, and text only if asked."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Literal

Style = Literal["text", "json"]

CLIENT: ContextVar[dict[str, Any]] = ContextVar("client", default={})  # noqa: B039 - never changed
"""Fields of the client that is served in this context: address, port of the server, path."""

_MAX_KINDS = 256


def configure(style: Style, *, level: int = logging.INFO) -> Callable[[], None]:
    """Log messages of this package, uvicorn and asyncio to stderr.

    Args:
        style: `json` for one object a line, with `time`, `level`, `logger`, `message` and what
            belongs to it; `text` for a line to read.
        level: the least important that is logged.

    Returns:
        A function that restores the loggers: a log that outlives its server writes to a stream of
        the past.
    """
    loggers = [logging.getLogger(name) for name in ("nearfuture", "uvicorn", "asyncio")]
    before = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]

    def restore() -> None:
        for logger, (handlers, propagate, least) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(least)

    handler = _Handler(sys.stderr)
    handler.setFormatter(_Json() if style == "json" else _Text())
    handler.addFilter(OncePerSecond())
    for logger in loggers:
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level if logger.name == "nearfuture" else max(level, logging.WARNING))
    return restore


class OncePerSecond(logging.Filter):
    """Passes each kind of warning once a second, with the number of those suppressed.

    Strangers can cause warnings, and must not fill a disk with them. A kind is a logger, its
    message before anything is put into it, and the `code` of its fields. What is no warning passes,
    unless its fields have a `code`: then it is a refusal.

    Args:
        clock: in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._last: dict[tuple[str, str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        fields = _fields(record)
        code = str(fields.get("code", ""))
        if record.levelno < logging.WARNING and not code:
            return True
        kind, now = (record.name, str(record.msg), code), self._clock()
        last_s, missed = self._last.get(kind, (-1.0, 0))
        if kind in self._last and now - last_s < 1.0:
            self._last[kind] = (last_s, missed + 1)
            return False
        self._last.pop(kind, None)
        while len(self._last) >= _MAX_KINDS:
            del self._last[next(iter(self._last))]
        self._last[kind] = (now, 0)
        if missed:
            record.fields = {**fields, "more": missed}
        return True


def printable(text: str) -> str:
    r"""Escape whatever moves a cursor, hides, or begins a line.

    >>> print(printable("/a\nb \x1b[31m한글 \u202e"))
    /a\x0ab \x1b[31m한글 \u202e
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    number = ord(character)
    if number < 256:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 65536 else f"\\U{number:08x}"


class _Handler(logging.StreamHandler[Any]):
    """A handler that stays silent where nothing can be written: a full disk, a closed pipe."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Drop the record where stderr cannot be written."""
        if not isinstance(sys.exc_info()[1], OSError | ValueError):
            super().handleError(record)


def _when(record: logging.LogRecord) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{whole}.{int(record.msecs):03d}Z"


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = getattr(record, "fields", {})
    return fields if isinstance(fields, dict) else {}


class _Json(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _when(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        text = json.dumps(line, ensure_ascii=False, default=str)
        return text if text.isprintable() else json.dumps(line, default=str)


class _Text(logging.Formatter):
    """One line, then a traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f"  {name}={value!r}" for name, value in _fields(record).items())
        message = printable(record.getMessage())
        line = f"{_when(record)} {record.levelname.lower():7} {message}{fields}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line
