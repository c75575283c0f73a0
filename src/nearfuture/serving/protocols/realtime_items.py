"""The items of a Realtime conversation: a session's text as OpenAI's server events."""

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
    Only settled text is sent, since a delta cannot be taken back.

    >>> conversation = Conversation()
    >>> def deltas(text, final):
    ...     update = Update(utterance=0, committed=text, provisional="", final=final, ended=False,
    ...                     words=(), audio_ms=1000.0, compute_ms=1.0)
    ...     return [(event["type"].rpartition(".")[2], event.get("delta"))
    ...             for event in conversation.events(
    ...                 update, committed=final, detects_turns=False, dialect="beta")]
    >>> deltas("two", False)
    [('delta', 'two')]
    >>> deltas("two one", True)
    [('delta', ' one'), ('committed', None), ('created', None), ('completed', None)]
    """

    def __init__(self) -> None:
        self._prefix = f"item_{secrets.token_hex(6)}"
        self._count = 0
        self._item: str | None = None  # of the current utterance
        self._previous: str | None = None  # the last one that was committed
        self._sent = ""  # of the current utterance
        self._began_ms = 0.0  # where it began, in the audio of this session
        self._cleared_ms = 0.0  # audio of sessions before this one

    def events(
        self, update: Update, *, committed: bool, detects_turns: bool, dialect: Dialect
    ) -> list[ServerEvent]:
        """Return the events that send an update to the client.

        Args:
            update: the next of the session.
            committed: whether it ends an utterance that the client committed.
            detects_turns: whether the server ends utterances at pauses, and says so.
            dialect: of the client.
        """
        events: list[ServerEvent] = []
        if self._item is None and update.committed:
            self._item = self._new()
            if detects_turns:
                start_ms = update.words[0].start_ms if update.words else update.audio_ms
                events.append(self._moment("started", "audio_start_ms", start_ms, self._item))
        delta = update.committed[len(self._sent) :]
        if self._item is not None and delta:
            events.append(_transcription("delta", self._item, delta=delta))
            self._sent = update.committed
        if update.final:
            if committed and self._item is None:
                self._item = self._new()
            elif detects_turns and self._item is not None and not committed:
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
            self._item, self._sent, self._began_ms = None, "", update.audio_ms
        return events

    def clear(self, audio_ms: float) -> None:
        """Forget the current utterance, and the session with `audio_ms` of audio so far."""
        self._item, self._sent, self._began_ms = None, "", 0.0
        self._cleared_ms += audio_ms

    def _moment(self, what: str, field: str, ms: float, item: str) -> ServerEvent:
        kind = f"input_audio_buffer.speech_{what}"
        return {"type": kind, "item_id": item, field: round(self._cleared_ms + ms)}

    def _committed(self, item: str, dialect: Dialect) -> list[ServerEvent]:
        previous, self._previous = self._previous, item
        content = [{"type": "input_audio", "transcript": None}]
        fields = {
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
            *({"type": f"conversation.item.{kind}", **fields} for kind in kinds),
        ]

    def _new(self) -> str:
        self._count += 1
        return f"{self._prefix}_{self._count}"


def _transcription(what: str, item: str, **fields: Any) -> ServerEvent:
    kind = f"conversation.item.input_audio_transcription.{what}"
    return {"type": kind, "item_id": item, "content_index": 0, **fields}
