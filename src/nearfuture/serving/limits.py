"""What one server allows, and how it says no."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass, field, fields
from typing import Any

from nearfuture.decoding import Endpoint
from nearfuture.error import NearfutureError

# Code of a refusal → status of HTTP, close code of a websocket. 1002 to 1013 are those of RFC 6455
# and of its registry: wrong protocol, wrong data, against the rules, too big, our fault, restart,
# try again later.
REFUSALS = {
    "unauthorized": (401, 1008),
    "forbidden": (403, 1008),
    "bad_request": (400, 1002),
    "bad_audio": (400, 1007),
    "bad_message": (400, 1003),
    "too_big": (413, 1009),
    "too_long": (413, 1008),
    "idle": (408, 1008),
    "slow_reader": (408, 1008),
    "internal": (500, 1011),
    "no_space": (507, 1013),
    "draining": (503, 1012),
    "busy": (503, 1013),
}
"""Every way to refuse: its status in HTTP, and its close code on a websocket."""


_LEAST_WAITING_S = 1.0  # what is heard at once, and what a resampler holds back, must fit


class Refused(NearfutureError):  # noqa: N818 - what it says, not that it failed
    """The server will not do this: `code` for programs, the message for people.

    Args:
        code: one of `REFUSALS`.
        message: what was wrong, the limit, and the way out.

    >>> no = Refused("busy", "4 streams are open, the most there may be: try again later")
    >>> no.code, no.status, no.close
    ('busy', 503, 1013)
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status, self.close = REFUSALS[code]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one server allows; every one of them bounds memory or time.

    Attributes:
        most_streams: open at once, over all models and protocols.
        most_connections: requests and websockets at once, over all ports.
        most_idle: sockets without a request, likewise; one more takes the place of the oldest.
        most_seconds: of audio in one stream, and of one connection.
        most_message_bytes: of one message on a websocket, and of one JSON body.
        most_file_bytes: of one uploaded recording.
        most_upload_s: of audio in one uploaded recording, however few bytes it has.
        most_waiting_s: audio of one stream that was received and not yet computed; beyond it the
            server stops reading from that client until there is room; 1 s at least.
        most_unread: finished utterances that a client has not read; likewise.
        headers_s: until a new socket, or one that is kept, has sent the headers of a request.
        idle_s: without a message from a client, or without a client taking one.
        drain_s: from the server being told to stop to its end, at most.
        last_words_s: of that, for the last results of streams that are cut off; all of it where
            `drain_s` is less.

    Raises:
        NearfutureError: for one that is not a positive number, and for less that may wait.
    """

    most_streams: int = 100
    most_connections: int = 1000
    most_idle: int = 256
    most_seconds: float = 14_400.0
    most_message_bytes: int = 1 << 20
    most_file_bytes: int = 25 << 20
    most_upload_s: float = 7200.0
    most_waiting_s: float = 60.0
    most_unread: int = 64
    headers_s: float = 15.0
    idle_s: float = 60.0
    drain_s: float = 30.0
    last_words_s: float = 4.0

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            enough = value >= 0 if limit.name == "drain_s" else value > 0
            if not (enough and math.isfinite(value)):
                raise NearfutureError(f"{limit.name} is {value}: a limit is a positive number")
        if self.most_waiting_s < _LEAST_WAITING_S:
            raise NearfutureError(
                f"{self.most_waiting_s:g} s of audio may wait: at least {_LEAST_WAITING_S:g} s "
                f"must, for less is not enough to begin with"
            )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How one server runs.

    Attributes:
        limits: what it allows.
        budget_ms: of streams that ask for none; the largest lookahead unless given.
        endpoint: of streams that ask for none.
        api_key: what clients must send as `Authorization: Bearer …`; anyone may come unless given.
        allow_origins: of web pages that may use the server, see `Origins`.
        log_text: whether what was said may be written into the log.
    """

    limits: Limits = field(default_factory=Limits)
    budget_ms: float | None = None
    endpoint: Endpoint = field(default_factory=Endpoint)
    api_key: str | None = field(default=None, repr=False)
    allow_origins: tuple[str, ...] = ()
    log_text: bool = False

    def __post_init__(self) -> None:
        key = self.api_key
        if key is not None and not (
            key and key.isascii() and key.isprintable() and key == key.strip()
        ):
            raise NearfutureError(
                "the API key is empty, or has more than printable ASCII, or a space at an end: no "
                "header can carry it"
            )


_BRIEF = reprlib.Repr()
_BRIEF.maxlevel = 3  # what is nested deeper than the interpreter's stack has no `repr`
_BRIEF.maxstring = _BRIEF.maxother = 100


def shown(value: object, most: int = 40) -> str:
    """What a client sent, for a message: one short line, whatever it was.

    >>> shown(400.5), shown("opus"), shown([[[[["deep"]]]]]), len(shown("long" * 99))
    ('400.5', "'opus'", '[[[[...]]]]', 43)
    """
    if isinstance(value, str):
        return repr(value[:most]) + ("…" if len(value) > most else "")
    text = _BRIEF.repr(value)
    return f"{text[:most]}…" if len(text) > most else text


def as_number(value: Any, name: str) -> float:
    """A number out of a client's JSON.

    Raises:
        Refused: for anything else, booleans and NaN included.

    >>> as_number(400, "budget_ms")
    400.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        raise Refused("bad_request", f"{name} is {shown(value)}: a number is wanted")
    return float(value)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer of hundreds of digits
        return False
