"""vosk-server's websocket protocol: audio in binary messages, one reply of JSON to each."""

from __future__ import annotations

import json
from collections import deque

from nearfuture.client.caption import Caption
from nearfuture.client.connection import Message, ServerError
from nearfuture.client.protocols.base import Pcm, StreamProtocol, reported_error


class Vosk(StreamProtocol):
    """The client's side of vosk-server.

    The rate goes first (`config`), then int16 samples of any rate. Each binary message is answered
    by exactly one reply: a `partial`, all of which may change, or a result (`text`) that ends an
    utterance. The n-th reply therefore covers the first n messages. `eof` is answered by the
    result of what remains; a server that closes after a result is taken to have meant that one.

    Source: https://github.com/alphacep/vosk-server, `websocket/asr_server.py` and `test.py`.

    >>> import numpy as np
    >>> vosk = Vosk(8000)
    >>> vosk.opening()
    ['{"config": {"sample_rate": 8000}}']
    >>> [len(message) for message in vosk.audio(np.zeros(160, np.int16))], vosk.ending()
    ([320], ['{"eof": 1}'])
    >>> caption = vosk.read('{"partial": "one"}')
    >>> caption.provisional, caption.audio_ms, vosk.ended
    ('one', 20.0, False)
    >>> caption = vosk.read('{"result": [], "text": "one"}')
    >>> caption.committed, caption.final, vosk.ended
    ('one', True, True)
    """

    name = "vosk"

    def __init__(self, rate: int) -> None:
        super().__init__(rate)
        self.ready = True
        self._sent_samples = 0
        self._unanswered: deque[float] = deque()  # audio up to the end of each message, ms
        self._utterance = 0
        self._result_after_end = False

    def opening(self) -> list[Message]:
        """Return the rate of the samples."""
        return [json.dumps({"config": {"sample_rate": self.rate}})]

    def audio(self, pcm: Pcm) -> list[Message]:
        """Return the samples, in one message."""
        self._sent_samples += len(pcm)
        self._unanswered.append(self._sent_ms)
        return [pcm.astype("<i2").tobytes()]

    def ending(self) -> list[Message]:
        """Return the end-of-file message, which the server answers like audio."""
        self._ending = True
        self._unanswered.append(self._sent_ms)
        return [json.dumps({"eof": 1})]

    @property
    def ended(self) -> bool:
        """Whether everything is answered, the end with a result."""
        return self._result_after_end and not self._unanswered

    @property
    def complete_when_closed(self) -> bool:
        """Whether a result has come since the end of the audio."""
        return self._result_after_end

    def read(self, message: Message) -> Caption | None:
        """Return a partial of the current utterance, or its result.

        Other objects answer nothing, such as the speaker vector that some servers add.
        """
        fields = self._parse(message)
        if "error" in fields or fields.get("type") == "error":
            raise reported_error(fields, foreign="type" in fields)
        alternatives = fields.get("alternatives")
        if isinstance(alternatives, list) and alternatives and isinstance(alternatives[0], dict):
            fields = alternatives[0]
        if "partial" in fields:
            return self._caption(self._text(fields, "partial"), final=False)
        if "text" in fields:
            caption = self._caption(self._text(fields, "text"), final=True)
            self._utterance += 1
            self._result_after_end = self._ending
            return caption
        if not fields:
            raise ServerError("the server sent {}, which is neither a partial nor a result")
        return None

    @property
    def _sent_ms(self) -> float:
        return 1000 * self._sent_samples / self.rate

    def _caption(self, text: str, *, final: bool) -> Caption:
        # A server that answers more often than it is asked covers at most all that was sent.
        return Caption(
            utterance=str(self._utterance),
            committed=text if final else "",
            provisional="" if final else text,
            final=final,
            audio_ms=self._unanswered.popleft() if self._unanswered else self._sent_ms,
        )
