"""Our own protocol, `/stream`: audio in binary messages, committed and provisional text back."""

from __future__ import annotations

import json
from typing import Any

from nearfuture.client.caption import Caption
from nearfuture.client.connection import Message
from nearfuture.client.protocols.base import Pcm, StreamProtocol, number_of, reported_error

VERSION = 1


class NearfutureStream(StreamProtocol):
    """The client's side of docs/stream-protocol.md.

    Each update states how much audio its text covers; the server sends one when the text changes
    or a second of audio has passed, and may pass over what it could not send in time.

    Args:
        rate: samples per second of the recording; any.
        budget_ms: the latency to ask for; by default the server's own.
        model: the model to ask for; by default the server's first one.

    >>> stream = NearfutureStream(8000, budget_ms=400)
    >>> stream.opening()
    ['{"type": "hello", "version": 1, "rate": 8000, "encoding": "int16", "budget_ms": 400}']
    >>> caption = stream.read(
    ...     '{"type": "update", "utterance": 0, "committed": "one", "provisional": " t",'
    ...     ' "final": false, "ended": false, "audio_ms": 640}'
    ... )
    >>> caption.text, caption.audio_ms, stream.ended
    ('one t', 640.0, False)
    """

    name = "nearfuture"
    ended = False

    def __init__(
        self, rate: int, *, budget_ms: float | None = None, model: str | None = None
    ) -> None:
        super().__init__(rate)
        self._options = {"budget_ms": budget_ms, "model": model}

    def opening(self) -> list[Message]:
        """Return the hello: what audio will come, and what is asked for."""
        hello = {"type": "hello", "version": VERSION, "rate": self.rate, "encoding": "int16"}
        options = {name: value for name, value in self._options.items() if value is not None}
        return [json.dumps(hello | options)]

    def audio(self, pcm: Pcm) -> list[Message]:
        """Return the samples, in one message."""
        return [pcm.astype("<i2").tobytes()]

    def ending(self) -> list[Message]:
        """Return the end of the audio."""
        return [json.dumps({"type": "finish"})]

    def read(self, message: Message) -> Caption | None:
        """Return the text of an utterance; messages of other types are passed over."""
        fields = self._parse(message)
        kind = self._text(fields, "type")
        if kind == "ready":
            self.ready = True
        elif kind == "error":
            raise reported_error(fields, foreign="error" in fields)
        elif kind == "update":
            return self._caption(fields)
        return None

    def _caption(self, fields: dict[str, Any]) -> Caption:
        self.ended = fields.get("ended") is True
        return Caption(
            utterance=str(fields.get("utterance")),
            committed=self._text(fields, "committed"),
            provisional=self._text(fields, "provisional"),
            final=fields.get("final") is True,
            continues=fields.get("continues") is True,
            audio_ms=number_of(fields, "audio_ms"),
        )
