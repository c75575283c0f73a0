"""What every protocol of a recognition server comes down to, without any input or output.

A protocol turns audio into messages and messages into captions; whoever uses it owns the connection
and the clock. So it is the same in a terminal, in a measurement and in a test with a virtual clock.
"""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nearfuture.client.caption import Caption
from nearfuture.client.failure import ServerError

Message: TypeAlias = str | bytes
"""One message of a websocket: text or binary."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # lone surrogates cannot be printed

Pcm: TypeAlias = NDArray[np.int16]
"""(n,) samples of one channel."""


class Protocol(ABC):
    """One stream of audio to a server and its text back; made anew for every connection.

    The order of calls: send `opening()`; read until `ready`; send `audio(…)` any number of times,
    reading at the same time; send `ending()`; read until `ended`. Where the server closes the
    connection instead, `closed()` says whether that is an end.

    Args:
        rate: samples per second of the recording.

    Attributes:
        name: as on the command line.
        rate: samples per second that `audio` wants.
    """

    name: ClassVar[str]

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self._ending = False

    @staticmethod
    def address(url: str) -> str:
        """The address to connect to, for one that the user gave."""
        return url

    def opening(self) -> list[Message]:
        """What is said before the audio."""
        return []

    @property
    def ready(self) -> bool:
        """Whether the server expects audio."""
        return True

    @abstractmethod
    def audio(self, pcm: Pcm) -> list[Message]:
        """The messages that carry these samples, at least one."""

    @abstractmethod
    def ending(self) -> list[Message]:
        """What says that there is no more audio, and that the rest of the text is wanted."""

    @abstractmethod
    def read(self, message: Message) -> Caption | None:
        """The caption that a message of the server brings, if it brings one.

        Raises:
            ServerError: where the server reports an error, or says what the protocol lacks.
        """

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether all audio has been sent and all text has come."""

    def closed(self) -> bool:
        """Whether the text is complete although the server has closed the connection."""
        return self.ended


def parsed(message: Message, *, protocol: str) -> dict[str, Any]:
    """The JSON object in a message.

    Raises:
        ServerError: where there is none; it shows the beginning of what came instead.

    >>> parsed('{"partial": "one"}', protocol="vosk")
    {'partial': 'one'}
    """
    try:
        found = json.loads(message)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        begin = repr(message[:40]).removeprefix("b")
        raise ServerError(
            f"the server sent {begin}, which is no {protocol} message: is it a server of "
            f"another protocol? (--protocol)"
        )
    return found


def text_of(told: dict[str, Any], name: str, *, protocol: str) -> str:
    r"""The text that a message has under a name, its control characters as spaces.

    What is shown in a terminal must not command it.

    Raises:
        ServerError: where it is missing or no text.

    >>> text_of({"text": "one\x1b[2Jtwo"}, "text", protocol="vosk")
    'one [2Jtwo'
    """
    text = told.get(name)
    if not isinstance(text, str):
        raise ServerError(
            f"the server sent a {protocol} message whose {name!r} is "
            f"{type(text).__name__ if name in told else 'missing'}, not text"
        )
    return _CONTROL.sub(" ", text)


def number_of(told: dict[str, Any], name: str) -> float | None:
    """The finite number that a message has under a name, if it has one.

    >>> number_of({"ms": 20}, "ms"), number_of({"ms": "20"}, "ms"), number_of({}, "ms")
    (20.0, None, None)
    """
    value = told.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def reported(told: dict[str, Any], *, foreign: bool = False) -> ServerError:
    r"""What a server says is wrong, in the form of any of the protocols, as one bounded line.

    Args:
        told: the message.
        foreign: whether the form is that of another protocol than is spoken.

    >>> str(reported({"error": {"message": "no room:\n try later"}}))
    'the server reports: no room: try later'
    >>> str(reported({"type": "error", "code": "busy"}, foreign=True))
    'the server reports: busy (does it speak another protocol there? choose --protocol or a path)'
    """
    error = told.get("error")
    if isinstance(error, dict):
        said = (error.get("message"), error.get("code"), error.get("type"))
    else:
        said = (error, told.get("message"), told.get("code"))
    what = one_line(next((one for one in said if one), "an error"))
    hint = " (does it speak another protocol there? choose --protocol or a path)" if foreign else ""
    return ServerError(f"the server reports: {what}{hint}")


def one_line(said: object) -> str:
    r"""Text of a server for an error: one line of at most 200 characters, none that controls.

    >>> one_line("a\x1b[2J\n b")
    'a [2J b'
    """
    return " ".join(_CONTROL.sub(" ", str(said)).split())[:200]
