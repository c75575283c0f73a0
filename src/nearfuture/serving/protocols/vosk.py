"""vosk-server's websocket protocol, for the clients it already has.

The client sends a config if it likes, then audio (int16, little-endian, one channel); each message
of audio is answered with exactly one reply, and so is `{"eof": 1}`, after which the server closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace

from starlette.routing import BaseRoute
from starlette.websockets import WebSocket

from nearfuture.decoding import Word, join_words
from nearfuture.error import NearfutureError
from nearfuture.serving.connection import WebSocketConnection
from nearfuture.serving.errors import RequestError
from nearfuture.serving.json_fields import as_object
from nearfuture.serving.protocols.handler import LiveHandler, SessionAudio
from nearfuture.serving.protocols.vosk_messages import (
    Command,
    Reply,
    VoskConfig,
    parse,
    partial,
    result,
)
from nearfuture.serving.service import KEY_PROTOCOL, Service
from nearfuture.serving.session import Session, Update
from nearfuture.text import join_utterances

DEFAULT_RATE = 8000
"""Of clients that send no config: vosk-server's own default."""

_FINISH_TIMEOUT_S = 30.0
"""How long a reply waits, at most, for the audio just sent to be computed."""


def routes(service: Service) -> list[BaseRoute]:
    """Return the routes of this protocol; its clients want it at the root of a port, too."""
    return [VoskHandler.route(service)]


class VoskHandler(LiveHandler):
    """One client: configured, listening, over; each reply moves it on."""

    path = "/vosk"

    def __init__(
        self, websocket: WebSocket, connection: WebSocketConnection, service: Service
    ) -> None:
        super().__init__(websocket, connection, service)
        self._config = VoskConfig(
            sample_rate=DEFAULT_RATE, words=True, max_alternatives=0, model=service.models[0]
        )
        self._recognizer: _Recognizer | None = None
        self._opened = asyncio.Event()
        self._replying = asyncio.Lock()

    @classmethod
    def subprotocol(cls, offered: list[str]) -> str | None:
        """Accept any that a browser offers beside its key: it wants one, and vosk has none."""
        return next((name for name in offered if not name.startswith(KEY_PROTOCOL)), None)

    async def on_message(self, message: str | bytes) -> None:
        """Answer a message."""
        async with self._replying:
            if not self.over and (reply := await self._reply(message)) is not None:
                await self.connection.send(reply)

    async def send_results(self) -> None:
        """Send the last result unasked when the server ends the stream, for it has to stop."""
        await self._opened.wait()
        assert self._recognizer is not None
        await self._recognizer.wait_for_end()
        async with self._replying:  # a reply that is being made may be this one
            if not self.over:
                self.over = True
                await self.connection.send(self._result(self._recognizer))

    async def send_error(self, error: RequestError) -> str:
        """Return the message of the error: the protocol has none, so the close frame carries it."""
        return str(error)

    def release(self) -> None:
        """Free the place of the stream."""
        super().release()
        if self._recognizer is not None:
            self._recognizer.close()

    async def _reply(self, message: str | bytes) -> Reply | None:
        """Return the reply to a message; None to a config, which has none."""
        if isinstance(message, bytes) and as_object(message) is None:
            recognizer = await self._open()
            await recognizer.accept(message)
            self.over = recognizer.over
            if self.over or recognizer.has_result:
                return self._result(recognizer)
            return partial(recognizer.text)
        control = parse(message)  # some clients send text as binary messages
        if isinstance(control, VoskConfig):
            self._configure(control)
            return None
        self.over = control is Command.EOF
        if self._recognizer is None:
            return self._result(None)
        await self._recognizer.end(for_good=self.over)
        self.over = self._recognizer.over
        return self._result(self._recognizer)

    def _configure(self, config: VoskConfig) -> None:
        named = {name: value for name, value in asdict(config).items() if value is not None}
        after = replace(self._config, **named)
        self.service.dispatcher(after.model)  # or it is refused
        if self._recognizer is not None:
            for name in ("sample_rate", "model"):
                wanted, now = getattr(after, name), getattr(self._config, name)
                if wanted != now:
                    raise RequestError(
                        "conflict",
                        f"{name} {wanted} after audio at {now}: a stream keeps its rate and its "
                        f"model; connect again",
                        name,
                    )
        self._config = after

    async def _open(self) -> _Recognizer:
        if self._recognizer is None:
            model = self._config.model
            self.session = await self.service.session(
                model=model,
                rate=self._config.sample_rate,
                endpoint=self.service.settings.endpoint,
                protocol="vosk",
            )
            manifest = self.service.dispatcher(model).manifest
            quantum_ms = 1000 * manifest.quantum_samples / manifest.rate
            self._recognizer = _Recognizer(self.session, quantum_ms=quantum_ms)
            self._opened.set()
        return self._recognizer

    def _result(self, recognizer: _Recognizer | None) -> Reply:
        text, words = ("", ()) if recognizer is None else recognizer.take_result()
        return result(
            text,
            words,
            listed=bool(self._config.words),
            alternatives=bool(self._config.max_alternatives),
        )


class _Recognizer:
    """A session that can be asked for its text so far, as vosk's own recogniser can."""

    def __init__(self, session: Session, *, quantum_ms: float) -> None:
        self.over = False  # the last text of the stream is known
        self._session = session
        self._audio = SessionAudio(session)
        self._finals: list[Update] = []  # utterances that have ended and are in no result yet
        self._current: Update | None = None
        self._error: Exception | None = None
        self._changed = asyncio.Event()
        # Less than this is never computed before more audio comes.
        resampler_ms = sum(item.ms for item in session.latency.items if item.name == "resampler")
        self._pending_ms = quantum_ms + resampler_ms + 0.5
        self._following = asyncio.create_task(self._follow())

    @property
    def text(self) -> str:
        """The text of the current utterance, settled and provisional."""
        return "" if self._current is None else self._current.committed + self._current.provisional

    @property
    def has_result(self) -> bool:
        """Whether an utterance has ended that is in no result yet."""
        return bool(self._finals)

    def take_result(self) -> tuple[str, tuple[Word, ...]]:
        """Return the text and the words of what has ended, as one utterance; only once."""
        finals, self._finals = self._finals, []
        text = join_utterances((update.committed, update.continues) for update in finals)
        return text, tuple(join_words((update.words, update.continues) for update in finals))

    async def accept(self, data: bytes) -> None:
        """Accept audio, and wait until its text is known, or the stream has ended."""
        await self._audio.accept(data)
        if self._session.interrupted:
            await self._until(lambda: self.over)  # the server stops: the last result is coming
        with suppress(TimeoutError):
            async with asyncio.timeout(_FINISH_TIMEOUT_S):
                await self._until(lambda: self.over or self._behind_ms() < self._pending_ms)

    async def end(self, *, for_good: bool) -> None:
        """End the current utterance, or the stream."""
        await self._audio.finish()
        self._session.final_ms = None
        await (self._session.finish() if for_good else self._session.flush())
        await self._until(lambda: self.over or self._session.final_ms is not None)

    async def wait_for_end(self) -> None:
        """Wait until the last text of the stream is known."""
        await self._until(lambda: self.over)

    def close(self) -> None:
        """Stop following the session."""
        self._following.cancel()

    def _behind_ms(self) -> float:
        computed_ms = 0.0 if self._current is None else self._current.audio_ms
        return 1000 * self._session.received_s - computed_ms

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            if self._error is not None:
                raise self._error
            self._changed.clear()
            await self._changed.wait()

    async def _follow(self) -> None:
        try:
            async for update in self._session.updates():
                self._current = update
                if update.final and update.committed:
                    self._finals.append(update)
                if update.final:
                    self._current = replace(update, committed="", provisional="")
                self.over = update.ended
                self._changed.set()
            if not self.over:
                raise RequestError("draining", "this server is about to stop: try another")
        except NearfutureError as error:
            self._error = error
            self._changed.set()
