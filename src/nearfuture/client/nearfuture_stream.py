"""Our own protocol, `/stream`: audio in binary messages, committed and provisional text back."""

from __future__ import annotations

import json
from typing import Any

from nearfuture.client.caption import Caption
from nearfuture.client.protocol import Message, Pcm, Protocol, number_of, parsed, reported, text_of

VERSION = 1


class NearfutureStream(Protocol):
    """The client's side of docs/stream-protocol.md.

    Each update says how much audio its text has heard; the server sends one when the text changes
    or a second of audio has passed, and may pass over what it could not send in time.

    Args:
        rate: samples per second of the recording; any.
        budget_ms: the latency to ask for; the server's own unless given.
        model: the model to ask for; the server's first one unless given.

    >>> stream = NearfutureStream(8000, budget_ms=400)
    >>> stream.opening()
    ['{"type": "hello", "version": 1, "rate": 8000, "encoding": "int16", "budget_ms": 400}']
    >>> caption = stream.read(
    ...     '{"type": "update", "utterance": 0, "committed": "one", "provisional": " t",'
    ...     ' "final": false, "ended": false, "audio_ms": 640}'
    ... )
    >>> caption.shown, caption.heard_ms, stream.ended
    ('one t', 640.0, False)
    """

    name = "nearfuture"

    def __init__(
        self, rate: int, *, budget_ms: float | None = None, model: str | None = None
    ) -> None:
        super().__init__(rate)
        self._budget_ms, self._model = budget_ms, model
        self._ready = self._ended = False

    def opening(self) -> list[Message]:
        """The hello: what audio will come, and what is asked for."""
        told: dict[str, Any] = {
            "type": "hello",
            "version": VERSION,
            "rate": self.rate,
            "encoding": "int16",
        }
        if self._budget_ms is not None:
            told["budget_ms"] = self._budget_ms
        if self._model is not None:
            told["model"] = self._model
        return [json.dumps(told)]

    @property
    def ready(self) -> bool:
        """Whether the server has promised a latency."""
        return self._ready

    def audio(self, pcm: Pcm) -> list[Message]:
        """The samples, in one message."""
        return [pcm.astype("<i2").tobytes()]

    def ending(self) -> list[Message]:
        """There is no more audio."""
        self._ending = True
        return [json.dumps({"type": "finish"})]

    @property
    def ended(self) -> bool:
        """Whether the server has sent the update that is the last one."""
        return self._ended

    def read(self, message: Message) -> Caption | None:
        """The text of an utterance; messages of other types are passed over."""
        told = parsed(message, protocol=self.name)
        kind = text_of(told, "type", protocol=self.name)
        if kind == "ready":
            self._ready = True
        elif kind == "error":
            raise reported(told, foreign="error" in told)
        elif kind == "update":
            return self._caption(told)
        return None

    def _caption(self, told: dict[str, Any]) -> Caption:
        self._ended = told.get("ended") is True
        return Caption(
            utterance=str(told.get("utterance")),
            committed=text_of(told, "committed", protocol=self.name),
            provisional=text_of(told, "provisional", protocol=self.name),
            final=told.get("final") is True,
            continues=told.get("continues") is True,
            heard_ms=number_of(told, "audio_ms"),
        )
