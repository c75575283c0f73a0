"""The items of a Realtime conversation: what a session hears, told as OpenAI's server events."""

from __future__ import annotations

import secrets
from typing import Any, TypeAlias

from nearfuture.serving.protocols.realtime_settings import Dialect
from nearfuture.serving.session import Update

ServerEvent: TypeAlias = dict[str, Any]
"""One message to the client, without its `event_id`."""


class Conversation:
    """Turns updates into events; the deltas of an item, joined, are its transcript.

    An item is one utterance. It begins with its first settled text; when it ends, it is committed
    and completed, once. An utterance without a word leaves no trace unless the client committed it.
    Only settled text is told, since a delta cannot be taken back.

    >>> talk = Conversation()
    >>> def hear(text, final):
    ...     update = Update(utterance=0, committed=text, provisional="", final=final, ended=False,
    ...                     words=(), audio_ms=1000.0, compute_ms=1.0)
    ...     return [(event["type"].rpartition(".")[2], event.get("delta"))
    ...             for event in talk.heard(update, asked=final, detects=False, dialect="beta")]
    >>> hear("two", False)
    [('delta', 'two')]
    >>> hear("two one", True)
    [('delta', ' one'), ('committed', None), ('created', None), ('completed', None)]
    """

    def __init__(self) -> None:
        self._prefix = f"item_{secrets.token_hex(6)}"
        self._made = 0
        self._item: str | None = None  # of the utterance at hand
        self._previous: str | None = None  # the last one that was committed
        self._told = ""  # of the utterance at hand
        self._began_ms = 0.0  # where it began, in the audio of this session
        self._passed_ms = 0.0  # audio of sessions before this one

    def heard(
        self, update: Update, *, asked: bool, detects: bool, dialect: Dialect
    ) -> list[ServerEvent]:
        """What an update tells the client.

        Args:
            update: the next of the session.
            asked: whether it ends an utterance that the client committed.
            detects: whether the server ends utterances at pauses, and says so.
            dialect: of the client.
        """
        events: list[ServerEvent] = []
        if self._item is None and update.committed:
            self._item = self._new()
            if detects:
                start_ms = update.words[0].start_ms if update.words else update.audio_ms
                events.append(self._moment("started", "audio_start_ms", start_ms, self._item))
        delta = update.committed[len(self._told) :]
        if self._item is not None and delta:
            events.append(_transcription("delta", self._item, delta=delta))
            self._told = update.committed
        if update.final:
            if asked and self._item is None:
                self._item = self._new()
            elif detects and self._item is not None and not asked:
                events.append(self._moment("stopped", "audio_end_ms", update.audio_ms, self._item))
            if self._item is not None:
                events += self._committed(self._item, dialect)
                seconds = round(max(0.0, update.audio_ms - self._began_ms) / 1000, 3)
                events.append(
                    _transcription(
                        "completed",
                        self._item,
                        transcript=update.committed,
                        usage={"type": "duration", "seconds": seconds},
                    )
                )
            self._item, self._told, self._began_ms = None, "", update.audio_ms
        return events

    def cleared(self, audio_ms: float) -> None:
        """Forget the utterance at hand, and the session that heard `audio_ms` so far."""
        self._item, self._told, self._began_ms = None, "", 0.0
        self._passed_ms += audio_ms

    def _moment(self, what: str, field: str, ms: float, item: str) -> ServerEvent:
        kind = f"input_audio_buffer.speech_{what}"
        return {"type": kind, "item_id": item, field: round(self._passed_ms + ms)}

    def _committed(self, item: str, dialect: Dialect) -> list[ServerEvent]:
        previous, self._previous = self._previous, item
        content = [{"type": "input_audio", "transcript": None}]
        told = {
            "previous_item_id": previous,
            "item": {
                "id": item,
                "object": "realtime.item",
                "type": "message",
                "status": "completed",
                "role": "user",
                "content": content,
            },
        }
        kinds = ["created"] if dialect == "beta" else ["added", "done"]
        return [
            {
                "type": "input_audio_buffer.committed",
                "item_id": item,
                "previous_item_id": previous,
            },
            *({"type": f"conversation.item.{kind}", **told} for kind in kinds),
        ]

    def _new(self) -> str:
        self._made += 1
        return f"{self._prefix}_{self._made}"


def _transcription(what: str, item: str, **told: Any) -> ServerEvent:
    kind = f"conversation.item.input_audio_transcription.{what}"
    return {"type": kind, "item_id": item, "content_index": 0, **told}
