"""OpenAI's Realtime protocol for transcription: everything in JSON, audio in base64."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from nearfuture.client.caption import Caption
from nearfuture.client.protocol import Message, Pcm, Protocol, parsed, reported, text_of

_RATE = 24_000
_TRANSCRIPTION = "conversation.item.input_audio_transcription"
_EMPTY = "input_audio_buffer_commit_empty"


class OpenAIRealtime(Protocol):
    """The client's side of a Realtime session of the type transcription.

    Audio is 24 kHz, whatever the recording. The server is asked not to look for ends of turns, so
    that a recording is one item, committed at its end. Text arrives in deltas, which append: what
    has come is never taken back, so all of it counts as committed; the completed transcript
    replaces it, should it differ. No message says how much audio a text has heard.

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
        self._ready = False
        self._texts: dict[str, str] = {}  # of the items that are not complete
        self._answered = False  # whether the commit is

    @staticmethod
    def address(url: str) -> str:
        """The address, with the intent to transcribe where it has no query of its own."""
        parts = urlsplit(url)
        return url if parts.query else urlunsplit(parts._replace(query="intent=transcription"))

    def opening(self) -> list[Message]:
        """The session that is wanted."""
        heard: dict[str, Any] = {
            "format": {"type": "audio/pcm", "rate": _RATE},
            "transcription": {} if self._model is None else {"model": self._model},
            "turn_detection": None,
        }
        session = {"type": "transcription", "audio": {"input": heard}}
        return [json.dumps({"type": "session.update", "session": session})]

    @property
    def ready(self) -> bool:
        """Whether the session is as wanted."""
        return self._ready

    def audio(self, pcm: Pcm) -> list[Message]:
        """The samples, appended to the input buffer."""
        encoded = base64.b64encode(pcm.astype("<i2").tobytes()).decode()
        return [json.dumps({"type": "input_audio_buffer.append", "audio": encoded})]

    def ending(self) -> list[Message]:
        """The input buffer is one item."""
        self._ending = True
        return [json.dumps({"type": "input_audio_buffer.commit"})]

    @property
    def ended(self) -> bool:
        """Whether the last item is committed and all are complete."""
        return self._ending and self._answered and not self._texts

    def read(self, message: Message) -> Caption | None:
        """A longer text of an item, or its complete one."""
        told = parsed(message, protocol=self.name)
        kind = text_of(told, "type", protocol=self.name)
        if kind == "session.updated":
            self._ready = True
        elif kind == "input_audio_buffer.committed":
            self._texts.setdefault(text_of(told, "item_id", protocol=self.name), "")
            self._answered = self._ending
        elif kind == f"{_TRANSCRIPTION}.delta":
            item = text_of(told, "item_id", protocol=self.name)
            delta = text_of({"delta": "", **told}, "delta", protocol=self.name)
            self._texts[item] = self._texts.get(item, "") + delta
            return Caption(utterance=item, committed=self._texts[item])
        elif kind == f"{_TRANSCRIPTION}.completed":
            item = text_of(told, "item_id", protocol=self.name)
            self._texts.pop(item, None)
            self._answered = self._ending
            text = text_of(told, "transcript", protocol=self.name)
            return Caption(utterance=item, committed=text, final=True)
        elif kind in ("error", f"{_TRANSCRIPTION}.failed"):
            self._fail(told)
        return None

    def _fail(self, told: dict[str, Any]) -> None:
        error = told.get("error")
        if self._ending and isinstance(error, dict) and error.get("code") == _EMPTY:
            self._answered = True
            return
        raise reported(told, foreign="error" not in told)
