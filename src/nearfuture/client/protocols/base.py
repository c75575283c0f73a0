"""What every protocol of a recognition server comes down to, without any input or output.

A protocol turns audio into messages and messages into captions; its user owns the connection
and the clock. So it is the same in a terminal, in a measurement and in a test with a virtual clock.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nearfuture.client.caption import Caption
from nearfuture.client.connection import Message, ServerError, one_line, printable

Pcm: TypeAlias = NDArray[np.int16]
"""(n,) samples of one channel."""


class StreamProtocol(ABC):
    """The client's side of one stream: audio to a server, text back; one per connection.

    The order of calls: send `opening()`; read until `ready`; send `audio(…)` any number of times,
    reading at the same time; send `ending()`; read until `ended`. Where the server closes the
    connection instead, `complete_when_closed` is whether that is an end.

    Args:
        rate: samples per second of the recording.

    Attributes:
        name: as on the command line.
        rate: samples per second that `audio` wants.
        ready: whether the server expects audio.
    """

    name: ClassVar[str]

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.ready = False
        self._ending = False

    @staticmethod
    def address(url: str) -> str:
        """Return the address to connect to, for one that the user gave."""
        return url

    @abstractmethod
    def opening(self) -> list[Message]:
        """Return what is sent before the audio."""

    @abstractmethod
    def audio(self, pcm: Pcm) -> list[Message]:
        """Return the messages that carry these samples, at least one."""

    @abstractmethod
    def ending(self) -> list[Message]:
        """Return the messages that end the audio and request the rest of the text."""

    @abstractmethod
    def read(self, message: Message) -> Caption | None:
        """Return the caption that a message of the server brings, if it brings one.

        Raises:
            ServerError: where the server reports an error, or breaks the protocol.
        """

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether all audio has been sent and all text has come."""

    @property
    def complete_when_closed(self) -> bool:
        """Whether the text is complete although the server has closed the connection."""
        return self.ended

    def _parse(self, message: Message) -> dict[str, Any]:
        """Return the JSON object in a message.

        Raises:
            ServerError: where there is none; it shows the beginning of what came instead.
        """
        try:
            fields = json.loads(message)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            begin = repr(message[:40]).removeprefix("b")
            raise ServerError(
                f"the server sent {begin}, which is no {self.name} message: is it a server of "
                f"another protocol? (`protocol`)"
            )
        return fields

    def _text(self, fields: dict[str, Any], name: str) -> str:
        """Return the text that a message has under a name, its control characters as spaces.

        Raises:
            ServerError: where it is missing or no text.
        """
        text = fields.get(name)
        if not isinstance(text, str):
            raise ServerError(
                f"the server sent a {self.name} message whose {name!r} is "
                f"{type(text).__name__ if name in fields else 'missing'}, not text"
            )
        return printable(text)


def number_of(fields: dict[str, Any], name: str) -> float | None:
    """Return the finite number that a message has under a name, if it has one.

    >>> number_of({"ms": 20}, "ms"), number_of({"ms": "20"}, "ms"), number_of({}, "ms")
    (20.0, None, None)
    """
    value = fields.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def reported_error(fields: dict[str, Any], *, foreign: bool = False) -> ServerError:
    r"""Return what a server reports as wrong, in the form of any protocol, as one bounded line.

    Args:
        fields: the message.
        foreign: whether the form is that of another protocol than is spoken.

    >>> str(reported_error({"error": {"message": "no room:\n try later"}}))
    'the server reports: no room: try later'
    >>> str(reported_error({"type": "error", "code": "busy"}, foreign=True))
    'the server reports: busy (of another protocol: choose that `protocol`, or another path)'
    """
    error = fields.get("error")
    if isinstance(error, dict):
        texts = (error.get("message"), error.get("code"), error.get("type"))
    else:
        texts = (error, fields.get("message"), fields.get("code"))
    reason = one_line(next((text for text in texts if text), "an error"))
    hint = " (of another protocol: choose that `protocol`, or another path)" if foreign else ""
    return ServerError(f"the server reports: {reason}{hint}")
