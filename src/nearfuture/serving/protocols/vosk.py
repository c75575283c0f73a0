"""vosk-server's websocket protocol, for the clients it already has.

The client sends a config if it likes, then audio (int16, little-endian, one channel); each message
of audio is answered with exactly one reply, and so is `{"eof": 1}`, after which the server closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace

from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from nearfuture.decoding import Word, join_words
from nearfuture.error import NearfutureError
from nearfuture.serving.connection import Connection, Gone, first_of
from nearfuture.serving.limits import Refused
from nearfuture.serving.pcm import PcmReader, json_text
from nearfuture.serving.protocols.vosk_message import Command, Config, parse, partial, result
from nearfuture.serving.service import KEY_PROTOCOL, Service
from nearfuture.serving.session import Session, Update
from nearfuture.text import join_utterances

DEFAULT_RATE = 8000
"""Of clients that send no config: vosk-server's own default."""

_PATIENCE_S = 30.0
"""How long a reply waits, at most, for the audio just sent to be computed."""


def routes(service: Service) -> list[BaseRoute]:
    """Where this protocol is spoken; its clients want it at the root of a port of its own, too."""

    async def endpoint(websocket: WebSocket) -> None:
        try:
            connection = await Connection.accept(websocket, service, _subprotocol(websocket))
        except Gone:
            return
        dialogue = _Dialogue(service)
        try:
            await first_of(dialogue.hold(connection), dialogue.part(connection), connection.lost())
            await connection.close()
        except Gone:
            return
        except NearfutureError as error:
            refusal = error if isinstance(error, Refused) else Refused("internal", str(error))
            service.refused(refusal.code)
            await connection.close(refusal.close, str(refusal))
        finally:
            await dialogue.close()

    return [WebSocketRoute("/vosk", endpoint)]


def _subprotocol(websocket: WebSocket) -> str | None:
    """Any that a browser offers beside its key, which wants to hear of one; there is none here."""
    offered = websocket.scope.get("subprotocols", [])
    return next((name for name in offered if not name.startswith(KEY_PROTOCOL)), None)


class _Dialogue:
    """The state of one client: configured, listening, over; `answer` moves it on."""

    def __init__(self, service: Service) -> None:
        self.over = False
        self._service = service
        self._config = Config(
            sample_rate=DEFAULT_RATE, words=True, max_alternatives=0, model=service.models[0]
        )
        self._hearing: _Hearing | None = None
        self._begun = asyncio.Event()  # there is audio
        self._answering = asyncio.Lock()

    async def hold(self, connection: Connection) -> None:
        """Answer one message after another, to the last."""
        async for message in connection.messages():
            async with self._answering:
                if self.over:
                    return
                reply = await self.answer(message)
                if reply is not None:
                    await connection.send(reply)
            if self.over:
                return

    async def part(self, connection: Connection) -> None:
        """Send the last result unasked when the server ends the stream, for it has to stop."""
        await self._begun.wait()
        assert self._hearing is not None
        await self._hearing.ended()
        async with self._answering:  # a reply that is being made may be this one
            if not self.over:
                self.over = True
                await connection.send(self._result(*self._hearing.taken()))

    async def answer(self, message: str | bytes) -> str | None:
        """The reply to a message; None to a config, which has none.

        Raises:
            Refused: for what is no message of the protocol, and where there is no room.
            NearfutureError: if the engine failed.
        """
        if isinstance(message, bytes) and (text := json_text(message)) is not None:
            message = text  # some clients know one kind of message only
        if isinstance(message, bytes):
            hearing = await self._listening()
            await hearing.hear(message)
            self.over = hearing.over
            if self.over or hearing.has_ended:
                return self._result(*hearing.taken())
            return partial(hearing.shown)
        control = parse(message)
        if isinstance(control, Config):
            self._configure(control)
            return None
        self.over = control is Command.EOF
        if self._hearing is None:
            return self._result("", ())
        await self._hearing.end(for_good=self.over)
        self.over = self._hearing.over
        return self._result(*self._hearing.taken())

    async def close(self) -> None:
        """Forget the stream."""
        if self._hearing is not None:
            await self._hearing.close()

    def _configure(self, config: Config) -> None:
        named = {name: value for name, value in asdict(config).items() if value is not None}
        after = replace(self._config, **named)
        self._service.dispatcher(after.model)  # or it is refused
        if self._hearing is not None:
            for name in ("sample_rate", "model"):
                asked, now = getattr(after, name), getattr(self._config, name)
                if asked != now:
                    raise Refused(
                        "bad_request",
                        f"{name} {asked} after audio at {now}: a stream keeps its rate and its "
                        f"model; connect again",
                    )
        self._config = after

    async def _listening(self) -> _Hearing:
        if self._hearing is None:
            rate, model = self._config.sample_rate, self._config.model
            session = await self._service.session(model=model, rate=rate, protocol="vosk")
            manifest = self._service.dispatcher(model).manifest
            quantum_ms = 1000 * manifest.quantum_samples / manifest.rate
            self._hearing = _Hearing(session, quantum_ms=quantum_ms)
            self._begun.set()
        return self._hearing

    def _result(self, text: str, words: tuple[Word, ...]) -> str:
        return result(
            text,
            words,
            listed=bool(self._config.words),
            alternatives=bool(self._config.max_alternatives),
        )


class _Hearing:
    """A session that can be asked what it has understood so far."""

    def __init__(self, session: Session, *, quantum_ms: float) -> None:
        self.over = False  # the last text of the stream is known
        self._session = session
        self._reader = PcmReader("int16", rate=session.rate)
        self._ended: list[Update] = []  # utterances that have ended and were not told yet
        self._now: Update | None = None
        self._error: Exception | None = None
        self._changed = asyncio.Event()
        # Less than this is never computed before more audio comes.
        resampler_ms = sum(x.ms for x in session.latency.items if x.name == "resampler")
        self._held_back_ms = quantum_ms + resampler_ms + 0.5
        self._following = asyncio.create_task(self._follow())

    @property
    def shown(self) -> str:
        """The text of the utterance at hand, settled and provisional."""
        return "" if self._now is None else self._now.committed + self._now.provisional

    @property
    def has_ended(self) -> bool:
        """Whether an utterance has ended that was not told yet."""
        return bool(self._ended)

    def taken(self) -> tuple[str, tuple[Word, ...]]:
        """The text and the words of what has ended, as one utterance; from now on it is told."""
        ended, self._ended = self._ended, []
        text = join_utterances((update.committed, update.continues) for update in ended)
        return text, tuple(join_words((update.words, update.continues) for update in ended))

    async def hear(self, data: bytes) -> None:
        """Hear a message, and wait until what it says is known, or the stream has ended."""
        samples = self._reader.read(data)
        if self._reader.rate != self._session.rate:
            raise Refused(
                "bad_audio",
                f"the WAV has {self._reader.rate} samples per second, but the stream "
                f"{self._session.rate}: name its rate in the config",
            )
        await self._session.hear(samples)
        if self._session.cut_off:
            await self._until(lambda: self.over)  # the server stops: these are its last words
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                await self._until(lambda: self.over or self._behind_ms() < self._held_back_ms)

    async def end(self, *, for_good: bool) -> None:
        """End the utterance at hand, or the stream."""
        await self._session.hear(self._reader.finish())
        self._session.final_ms = None
        await (self._session.finish() if for_good else self._session.flush())
        await self._until(lambda: self.over or self._session.final_ms is not None)

    async def ended(self) -> None:
        """Until the last text of the stream is known."""
        await self._until(lambda: self.over)

    async def close(self) -> None:
        """Forget the stream."""
        self._following.cancel()
        self._session.close()

    def _behind_ms(self) -> float:
        computed_ms = 0.0 if self._now is None else self._now.audio_ms
        return 1000 * self._session.heard_s - computed_ms

    async def _until(self, known: Callable[[], bool]) -> None:
        while not known():
            if self._error is not None:
                raise self._error
            self._changed.clear()
            await self._changed.wait()

    async def _follow(self) -> None:
        try:
            async for update in self._session.updates():
                self._now = update
                if update.final and update.committed:
                    self._ended.append(update)
                if update.final:
                    self._now = replace(update, committed="", provisional="")
                self.over = update.ended
                self._changed.set()
            if not self.over:
                raise Refused("draining", "this server is about to stop: ask another")
        except NearfutureError as error:
            self._error = error
            self._changed.set()
