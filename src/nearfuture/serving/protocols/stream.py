"""nearfuture's own protocol, `/stream`: JSON for control, binary messages for audio.

One websocket is one stream. The client sends a hello, gets the promise, sends audio and gets
updates; see docs/stream-protocol.md.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.routing import BaseRoute
from starlette.websockets import WebSocket

from nearfuture import __version__
from nearfuture.decoding import Endpoint
from nearfuture.serving.connection import WebSocketConnection
from nearfuture.serving.errors import RequestError
from nearfuture.serving.json_fields import (
    as_number,
    as_object,
    as_rate,
    as_text,
    brief,
    parse_message,
)
from nearfuture.serving.pcm import PcmReader
from nearfuture.serving.protocols.handler import LiveHandler
from nearfuture.serving.service import Service
from nearfuture.serving.session import Session, Update

VERSION = 1
SUBPROTOCOL = f"nearfuture.stream.v{VERSION}"

_SILENT_MS = 1000.0  # an update a second of audio, even without text
_OWED_S = 1.0
_WORDS_MS = 10_000.0  # of an utterance that goes on
_HELLO = {"type", "version", "model", "rate", "encoding", "budget_ms", "endpoint"}


def routes(service: Service) -> list[BaseRoute]:
    """Return the routes of this protocol."""
    return [StreamHandler.route(service)]


class StreamHandler(LiveHandler):
    """One stream: hello, then audio and updates, then the end."""

    path = "/stream"

    def __init__(
        self, websocket: WebSocket, connection: WebSocketConnection, service: Service
    ) -> None:
        super().__init__(websocket, connection, service)
        self._hello: dict[str, Any] = {}
        self._reader: PcmReader | None = None
        self._opened = asyncio.Event()
        self._finished = False
        self._reopening = asyncio.Lock()  # held while one session takes the place of another

    @classmethod
    def subprotocol(cls, offered: list[str]) -> str | None:
        """Accept the one of this version."""
        return SUBPROTOCOL if SUBPROTOCOL in offered else None

    async def on_message(self, message: str | bytes) -> None:
        """Act on audio, or on a control message."""
        if isinstance(message, bytes):
            await self._accept_audio(message)
            return
        fields = parse_message(message)
        kind = fields.get("type")
        if kind == "ping":
            _refuse_fields(fields, {"type"}, "bad_message")
            received_s = 0.0 if self.session is None else self.session.received_s
            pong = {"type": "pong", "received_ms": round(1000 * received_s, 1)}
            await self.connection.send(pong)
        elif self.session is None:
            await self._accept_hello(fields)
        elif kind in ("flush", "finish"):
            _refuse_fields(fields, {"type"}, "bad_message")
            await self._end(self.session, for_good=kind == "finish")
        else:
            raise RequestError(
                "bad_message",
                f"a message has the type {brief(kind)}: flush, finish or ping is expected",
            )

    async def send_results(self) -> None:
        """Send updates until the last one; a WAV header may put another session in the place."""
        await self._opened.wait()
        session = None
        while self.session is not session:
            session = self.session
            assert session is not None
            sent, sent_ms = ("", ""), 0.0
            async for update in session.updates():
                text = (update.committed, update.provisional)
                if update.final or text != sent or update.audio_ms - sent_ms >= _SILENT_MS:
                    await self.connection.send(_update_message(update, session))
                    sent, sent_ms = ("", "") if update.final else text, update.audio_ms
            async with self._reopening:
                continue
        if session is not None and not session.ended and not self.connection.closed:
            raise RequestError("draining", "this server is about to stop: try another")

    async def send_error(self, error: RequestError) -> str:
        """Send an error message; the socket closes with its code."""
        await self.connection.send({"type": "error", "code": error.code, "message": str(error)})
        return error.code

    async def _accept_hello(self, hello: dict[str, Any]) -> None:
        _check_hello(hello)
        self._hello = {name: value for name, value in hello.items() if value is not None}
        if "endpoint" in hello:  # null has a meaning
            self._hello["endpoint"] = hello["endpoint"]
        rate = self._hello.get("rate")
        if rate is None:
            rate = self.service.dispatcher(self._model()).manifest.rate
        encoding = as_text(self._hello.get("encoding", "int16"), "encoding")
        self._reader = PcmReader(encoding, rate=as_rate(rate))
        await self._open_session(self._reader)
        self._opened.set()

    async def _accept_audio(self, data: bytes) -> None:
        if self._finished:
            return
        if self.session is None or self._reader is None:
            raise RequestError(
                "bad_message", 'audio came before {"type": "hello"}: say hello first'
            )
        if as_object(data) is not None:
            raise RequestError(
                "bad_message", f"JSON came as binary, {brief(data, 20)}: send it as text"
            )
        rate, encoding = self._reader.rate, self._reader.encoding
        samples = await self._reader.read_in_turns(data)
        if (rate, encoding) != (self._reader.rate, self._reader.encoding):
            async with self._reopening:
                await self._open_session(self._reader)
        await self.session.accept(samples)

    async def _end(self, session: Session, *, for_good: bool) -> None:
        if self._finished or self._reader is None:
            return
        self._finished = for_good
        await session.accept(self._reader.finish())
        await (session.finish() if for_good else session.flush())

    def _model(self) -> str:
        return as_text(self._hello.get("model", self.service.models[0]), "model")

    async def _open_session(self, reader: PcmReader) -> None:
        """Open a stream for audio at the rate of the reader, and send what is promised."""
        model = self._model()
        budget_ms = self._hello.get("budget_ms")
        endpoint = _endpoint(self._hello, self.service.settings.endpoint)
        self.release()
        self.session = session = await self.service.session(
            model=model,
            rate=reader.rate,
            budget_ms=None if budget_ms is None else as_number(budget_ms, "budget_ms"),
            endpoint=endpoint,
            protocol="stream",
        )
        # The client waits for text: of audio not computed yet, or for the last.
        self.connection.owes_reply = lambda: self._finished or session.waiting_s >= _OWED_S
        latency, limits = session.latency, self.service.limits
        await self.connection.send(
            {
                "type": "ready",
                "version": VERSION,
                "server": f"nearfuture/{__version__}",
                "model": model,
                "rate": reader.rate,
                "encoding": reader.encoding,
                "budget": {
                    "frames": session.budget.frames,
                    "worst_ms": latency.worst_ms,
                    "mean_ms": latency.mean_ms,
                    "items": [{"name": item.name, "ms": item.ms} for item in latency.items],
                },
                "endpoint": None
                if endpoint is None
                else {"silence_ms": endpoint.silence_ms, "longest_ms": endpoint.longest_ms},
                "limits": {
                    "message_bytes": limits.max_message_bytes,
                    "seconds": limits.max_stream_s,
                    "idle_seconds": limits.idle_s,
                },
            }
        )


def _update_message(update: Update, session: Session) -> dict[str, Any]:
    # All words every time would be traffic that grows with the square of an utterance.
    since_ms = 0.0 if update.final else update.audio_ms - _WORDS_MS
    return {
        "type": "update",
        "utterance": update.utterance,
        "committed": update.committed,
        "provisional": update.provisional,
        "final": update.final,
        "ended": update.ended,
        "continues": update.continues,
        "words": [
            {
                "text": word.text,
                "start_ms": round(word.start_ms, 1),
                "end_ms": round(word.end_ms, 1),
                "confidence": round(word.confidence, 4),
            }
            for word in update.words
            if word.end_ms >= since_ms
        ],
        "audio_ms": round(update.audio_ms, 1),
        "latency_ms": session.latency.worst_ms,
        "compute_ms": round(update.compute_ms, 2),
    }


def _check_hello(hello: dict[str, Any]) -> None:
    if hello.get("type") != "hello":
        raise RequestError(
            "bad_message", f"the first message is a hello, not {brief(hello.get('type'))}"
        )
    if hello.get("version") not in (None, VERSION):
        raise RequestError(
            "unsupported",
            f"version {brief(hello['version'])} is asked for, but this server speaks {VERSION}",
            "version",
        )
    _refuse_fields(hello, _HELLO, "invalid")


def _refuse_fields(message: dict[str, Any], known: set[str], code: str) -> None:
    if unknown := sorted(set(message) - known):
        raise RequestError(
            code,
            f"{message['type']} has {brief(unknown[0])}, which means nothing: "
            f"{', '.join(sorted(known))} do",
        )


def _endpoint(hello: dict[str, Any], default: Endpoint) -> Endpoint | None:
    """Return the rule a client asks for: none for null, the default where it states none."""
    if "endpoint" not in hello:
        return default
    fields = hello["endpoint"]
    if fields is None:
        return None
    if not isinstance(fields, dict) or not set(fields) <= {"silence_ms", "longest_ms"}:
        raise RequestError(
            "invalid", "endpoint is null, or has silence_ms and longest_ms", "endpoint"
        )
    return Endpoint(
        as_number(fields.get("silence_ms", default.silence_ms), "endpoint.silence_ms"),
        as_number(fields.get("longest_ms", default.longest_ms), "endpoint.longest_ms"),
    )
