"""The server's log: lines for people, or JSON for programs; never audio, and text only if asked."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from typing import Any, Literal

__all__ = ["configure"]

Style = Literal["text", "json"]


def configure(style: Style, *, level: int = logging.INFO) -> Callable[[], None]:
    """Log to stderr what this package and uvicorn have to say.

    Args:
        style: `json` for one object a line, with `time`, `level`, `logger`, `message` and what
            belongs to it; `text` for a line to read.
        level: the least important that is logged.

    Returns:
        What puts both loggers back: a log that outlives its server writes to a stream of the past.
    """
    loggers = [logging.getLogger(name) for name in ("nearfuture", "uvicorn")]
    before = [(one.handlers, one.propagate, one.level) for one in loggers]

    def restore() -> None:
        for logger, (handlers, propagate, least) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(least)

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if style == "json" else _Text())
    for logger in loggers:
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level if logger.name == "nearfuture" else max(level, logging.WARNING))
    return restore


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
        return json.dumps(line, ensure_ascii=False, default=str)


class _Text(logging.Formatter):
    """One line, then a traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f"  {name}={value!r}" for name, value in _fields(record).items())
        line = f"{_when(record)} {record.levelname.lower():7} {record.getMessage()}{fields}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line
