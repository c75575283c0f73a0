"""OpenAI's Realtime protocol for transcription: everything in JSON, audio in base64."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from nearfuture.client.caption import Caption
from nearfuture.client.connection import Message
from nearfuture.client.protocols.base import Pcm, StreamProtocol, reported_error

_RATE = 24_000
_TRANSCRIPTION = "conversation.item.input_audio_transcription"
_EMPTY = "input_audio_buffer_commit_empty"


class OpenAIRealtime(StreamProtocol):
    """The client's side of a Realtime session of the type transcription.

    Audio is 24 kHz, whatever the recording. The server is asked not to look for ends of turns, so
    that a recording is one item, committed at its end. Text arrives in deltas, which append: what
    has come is never taken back, so all of it counts as committed; the completed transcript
    replaces it, should it differ. No message states how much audio a text covers.

    An error ends the stream, except that a server which has ended turns by itself may find nothing
    left to commit.

    Args:
        rate: samples per second of the recording.
        model: the name of the model to transcribe with, where the server wants one.

    Source: https://developers.openai.com/api/docs/guides/realtime-transcription, and the types of
    the package `openai`.

    >>> OpenAIRealtime(8000).rate, OpenAIRealtime.address("ws://here/v1/realtime")
    (24000, 'ws://here/v1/realtime?intent=transcription')
    """

    name = "openai"

    def __init__(self, rate: int, *, model: str | None = None) -> None:
        super().__init__(_RATE)
        self._model = model
        self._texts: dict[str, str] = {}  # of the items that are not complete
        self._answered = False  # whether the commit is

    @staticmethod
    def address(url: str) -> str:
        """Return the address, with the intent to transcribe where it has no query of its own."""
        parts = urlsplit(url)
        return url if parts.query else urlunsplit(parts._replace(query="intent=transcription"))

    def opening(self) -> list[Message]:
        """Return the settings of the session to request."""
        audio_input: dict[str, Any] = {
            "format": {"type": "audio/pcm", "rate": _RATE},
            "transcription": {} if self._model is None else {"model": self._model},
            "turn_detection": None,
        }
        session = {"type": "transcription", "audio": {"input": audio_input}}
        return [json.dumps({"type": "session.update", "session": session})]

    def audio(self, pcm: Pcm) -> list[Message]:
        """Return the samples, appended to the input buffer."""
        encoded = base64.b64encode(pcm.astype("<i2").tobytes()).decode()
        return [json.dumps({"type": "input_audio_buffer.append", "audio": encoded})]

    def ending(self) -> list[Message]:
        """Return the commit that makes the input buffer one item."""
        self._ending = True
        return [json.dumps({"type": "input_audio_buffer.commit"})]

    @property
    def ended(self) -> bool:
        """Whether the last item is committed and all are complete."""
        return self._ending and self._answered and not self._texts

    def read(self, message: Message) -> Caption | None:
        """Return a longer text of an item, or its complete one."""
        fields = self._parse(message)
        kind = self._text(fields, "type")
        if kind == "session.updated":
            self.ready = True
        elif kind == "input_audio_buffer.committed":
            self._texts.setdefault(self._text(fields, "item_id"), "")
            self._answered = self._ending
        elif kind == f"{_TRANSCRIPTION}.delta":
            item = self._text(fields, "item_id")
            delta = self._text({"delta": "", **fields}, "delta")
            self._texts[item] = self._texts.get(item, "") + delta
            return Caption(utterance=item, committed=self._texts[item])
        elif kind == f"{_TRANSCRIPTION}.completed":
            item = self._text(fields, "item_id")
            self._texts.pop(item, None)
            self._answered = self._ending
            return Caption(utterance=item, committed=self._text(fields, "transcript"), final=True)
        elif kind in ("error", f"{_TRANSCRIPTION}.failed"):
            self._fail(fields)
        return None

    def _fail(self, fields: dict[str, Any]) -> None:
        error = fields.get("error")
        if self._ending and isinstance(error, dict) and error.get("code") == _EMPTY:
            self._answered = True
            return
        raise reported_error(fields, foreign="error" not in fields)
