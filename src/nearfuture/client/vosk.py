"""vosk-server's websocket protocol: audio in binary messages, one reply of JSON to each."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from nearfuture.client.caption import Caption
from nearfuture.client.failure import ServerError
from nearfuture.client.protocol import Message, Pcm, Protocol, parsed, reported, text_of


class Vosk(Protocol):
    """The client's side of vosk-server.

    The rate goes first (`config`), then int16 samples of any rate. Each binary message is answered
    by exactly one reply: a `partial`, all of which may change, or a result (`text`) that ends an
    utterance. The n-th reply has therefore heard the first n messages. `eof` is answered by the
    result of what is left; a server that closes after a result is taken to have meant that one.

    Source: https://github.com/alphacep/vosk-server, `websocket/asr_server.py` and `test.py`.

    >>> import numpy as np
    >>> vosk = Vosk(8000)
    >>> vosk.opening()
    ['{"config": {"sample_rate": 8000}}']
    >>> [len(message) for message in vosk.audio(np.zeros(160, np.int16))], vosk.ending()
    ([320], ['{"eof": 1}'])
    >>> caption = vosk.read('{"partial": "one"}')
    >>> caption.provisional, caption.heard_ms, vosk.ended
    ('one', 20.0, False)
    >>> caption = vosk.read('{"result": [], "text": "one"}')
    >>> caption.committed, caption.final, vosk.ended
    ('one', True, True)
    """

    name = "vosk"

    def __init__(self, rate: int) -> None:
        super().__init__(rate)
        self._sent_samples = 0
        self._unanswered: deque[float] = deque()  # audio up to the end of each message, ms
        self._utterance = 0
        self._result_after_end = False

    def opening(self) -> list[Message]:
        """The rate of the samples."""
        return [json.dumps({"config": {"sample_rate": self.rate}})]

    def audio(self, pcm: Pcm) -> list[Message]:
        """The samples, in one message."""
        self._sent_samples += len(pcm)
        self._unanswered.append(1000 * self._sent_samples / self.rate)
        return [pcm.astype("<i2").tobytes()]

    def ending(self) -> list[Message]:
        """End of file, which is answered as audio is."""
        self._ending = True
        self._unanswered.append(1000 * self._sent_samples / self.rate)
        return [json.dumps({"eof": 1})]

    @property
    def ended(self) -> bool:
        """Whether everything is answered, the end with a result."""
        return self._ending and self._result_after_end and not self._unanswered

    def closed(self) -> bool:
        """Whether a result has come since the end of the audio."""
        return self._result_after_end

    def read(self, message: Message) -> Caption | None:
        """A partial of the utterance at hand, or its result."""
        told = parsed(message, protocol=self.name)
        if "error" in told or told.get("type") == "error":
            raise reported(told, foreign="type" in told)
        alternatives = told.get("alternatives")
        if isinstance(alternatives, list) and alternatives and isinstance(alternatives[0], dict):
            told = alternatives[0]
        if "partial" in told:
            return self._caption(text_of(told, "partial", protocol=self.name), final=False)
        if "text" in told:
            caption = self._caption(text_of(told, "text", protocol=self.name), final=True)
            self._utterance += 1
            self._result_after_end = self._ending
            return caption
        self._refuse_nothing(told)
        return None

    def _caption(self, text: str, *, final: bool) -> Caption:
        # A server that answers more often than it is asked has at least heard no more than all.
        heard = (
            self._unanswered.popleft()
            if self._unanswered
            else 1000 * self._sent_samples / self.rate
        )
        return Caption(
            utterance=str(self._utterance),
            committed=text if final else "",
            provisional="" if final else text,
            final=final,
            heard_ms=heard,
        )

    def _refuse_nothing(self, told: dict[str, Any]) -> None:
        """Other objects answer nothing, such as the speaker vector that some servers add."""
        if not told:
            raise ServerError("the server sent {}, which is neither a partial nor a result")
