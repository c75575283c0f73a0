"""nearfuture's own protocol, `/stream`: JSON for control, binary messages for audio.

One websocket is one stream. The client says hello, is told what it was promised, sends audio and is
sent updates; see docs/stream-protocol.md.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from nearfuture import __version__
from nearfuture.decoding import Endpoint
from nearfuture.error import NearfutureError
from nearfuture.serving.connection import Connection, Gone, as_message, first_of
from nearfuture.serving.limits import Refused, as_number, shown
from nearfuture.serving.pcm import PcmReader, as_rate, json_text
from nearfuture.serving.service import Service
from nearfuture.serving.session import Session, Update

VERSION = 1
SUBPROTOCOL = f"nearfuture.stream.v{VERSION}"

_SILENT_MS = 1000.0  # an update a second of audio, even if nothing is said
_OWED_S = 1.0
_WORDS_MS = 10_000.0  # of an utterance that goes on
_HELLO = {"type", "version", "model", "rate", "encoding", "budget_ms", "endpoint"}

_LOG = logging.getLogger("nearfuture.serving")


def routes(service: Service) -> list[BaseRoute]:
    """Where this protocol is spoken."""

    async def stream(websocket: WebSocket) -> None:
        await _Stream(websocket, service).run()

    return [WebSocketRoute("/stream", stream)]


class _Stream:
    """One connection: hello, then audio and updates, then the end."""

    def __init__(self, websocket: WebSocket, service: Service) -> None:
        self._websocket, self._service = websocket, service
        self._session: Session | None = None
        self._reader: PcmReader | None = None
        self._hello: dict[str, Any] = {}
        self._finished = False
        self._changing = asyncio.Lock()  # held while one session takes the place of another

    async def run(self) -> None:
        offered = self._websocket.scope.get("subprotocols", [])
        try:
            self._connection = await Connection.accept(
                self._websocket, self._service, SUBPROTOCOL if SUBPROTOCOL in offered else None
            )
            self._messages = self._connection.messages()
            if await self._greet():
                await self._talk()
            await self._leave()
            await self._connection.close()
        except Gone:
            pass
        except Refused as refused:
            await self._refuse(refused)
        except NearfutureError as error:
            await self._refuse(Refused("internal", str(error)))
        except Exception:
            _LOG.exception("a stream failed")
            await self._refuse(Refused("internal", "the server made a mistake: it is in its log"))
        finally:
            await self._leave()

    async def _leave(self) -> None:
        """Free the place: before the goodbye, so that a client that comes back finds it free."""
        if self._session is not None:
            self._session.close()

    async def _greet(self) -> bool:
        """Take the hello; False if the client leaves before it."""
        async for message in self._messages:
            if isinstance(message, bytes):
                raise Refused("bad_message", 'audio came before {"type": "hello"}: say hello first')
            self._hello = as_message(message)
            if self._hello.get("type") == "ping":
                await self._pong()
                continue
            _refuse_odd(self._hello)
            rate = self._hello.get("rate")
            if rate is None:
                rate = self._service.dispatcher(self._model()).manifest.rate
            self._reader = PcmReader(_text(self._hello, "encoding", "int16"), rate=as_rate(rate))
            await self._open()
            return True
        return False

    def _model(self) -> str:
        return _text(self._hello, "model", self._service.models[0])

    async def _open(self) -> None:
        """Open a stream for audio at the rate of the reader, and say what is promised."""
        assert self._reader is not None
        model = self._model()
        budget_ms = self._hello.get("budget_ms")
        endpoint = _endpoint(self._hello, self._service.settings.endpoint)
        if self._session is not None:
            self._session.close()
        self._session = await self._service.session(
            model=model,
            rate=self._reader.rate,
            budget_ms=None if budget_ms is None else as_number(budget_ms, "budget_ms"),
            endpoint=endpoint,
            whole=endpoint is None,
            protocol="stream",
        )
        self._connection.owing = self._owes
        latency, limits = self._session.latency, self._service.limits
        await self._connection.send(
            {
                "type": "ready",
                "version": VERSION,
                "server": f"nearfuture/{__version__}",
                "model": model,
                "rate": self._reader.rate,
                "encoding": self._reader.encoding,
                "budget": {
                    "frames": self._session.budget.frames,
                    "worst_ms": latency.worst_ms,
                    "mean_ms": latency.mean_ms,
                    "items": [{"name": item.name, "ms": item.ms} for item in latency.items],
                },
                "endpoint": None
                if endpoint is None
                else {"silence_ms": endpoint.silence_ms, "longest_ms": endpoint.longest_ms},
                "limits": {
                    "message_bytes": limits.most_message_bytes,
                    "seconds": limits.most_seconds,
                    "idle_seconds": limits.idle_s,
                },
            }
        )

    def _owes(self) -> bool:
        """Whether the client waits for text: of audio not computed yet, or for the last."""
        assert self._session is not None
        return self._finished or self._session.waiting_s >= _OWED_S

    async def _talk(self) -> None:
        """Until the stream has ended or the client has left."""
        await first_of(self._listen(), self._tell(), self._connection.lost())
        session = self._session
        if session is not None and not session.ended and not self._connection.closed:
            raise Refused("draining", "this server is about to stop: ask another")

    async def _listen(self) -> None:
        async for message in self._messages:
            await self._take(message)

    async def _take(self, message: str | bytes) -> None:
        """Act on a message."""
        assert self._session is not None
        assert self._reader is not None
        if isinstance(message, bytes):
            if self._finished:
                return
            if json_text(message) is not None:
                raise Refused(
                    "bad_message", f"JSON came as binary, {shown(message, 20)}: send it as text"
                )
            rate, encoding = self._reader.rate, self._reader.encoding
            samples = self._reader.read(message)
            if (rate, encoding) != (self._reader.rate, self._reader.encoding):
                async with self._changing:
                    await self._open()
            await self._session.hear(samples)
            return
        fields = as_message(message)
        kind = fields.get("type")
        if kind in ("flush", "finish", "ping") and (odd := sorted(set(fields) - {"type"})):
            raise Refused("bad_message", f"{kind} has {shown(odd[0])}, which means nothing")
        if kind == "ping":
            await self._pong()
        elif kind == "flush" and not self._finished:
            await self._session.hear(self._reader.finish())
            await self._session.flush()
        elif kind == "finish" and not self._finished:
            self._finished = True
            await self._session.hear(self._reader.finish())
            await self._session.finish()
        elif kind not in ("flush", "finish"):
            raise Refused(
                "bad_message",
                f"a message has the type {shown(kind)}: flush, finish or ping is wanted",
            )

    async def _tell(self) -> None:
        """Send updates until the last one; a WAV header may put another session in the place."""
        told = None
        while self._session is not told:
            told = self._session
            assert told is not None
            shown, shown_ms = ("", ""), 0.0
            async for update in told.updates():
                text = (update.committed, update.provisional)
                if update.final or text != shown or update.audio_ms - shown_ms >= _SILENT_MS:
                    await self._connection.send(self._described(update))
                    shown, shown_ms = ("", "") if update.final else text, update.audio_ms
            async with self._changing:
                continue

    async def _pong(self) -> None:
        heard_s = 0.0 if self._session is None else self._session.heard_s
        await self._connection.send({"type": "pong", "heard_ms": round(1000 * heard_s, 1)})

    async def _refuse(self, refused: Refused) -> None:
        self._service.refused(refused.code)
        await self._leave()
        try:
            await self._connection.send(
                {"type": "error", "code": refused.code, "message": str(refused)}
            )
        except (Gone, Refused):
            return
        await self._connection.close(refused.close, refused.code)

    def _described(self, update: Update) -> dict[str, Any]:
        assert self._session is not None
        # All of them every time would be traffic that grows with the square of an utterance.
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
            "latency_ms": self._session.latency.worst_ms,
            "compute_ms": round(update.compute_ms, 2),
        }


def _refuse_odd(hello: dict[str, Any]) -> None:
    if hello.get("type") != "hello":
        raise Refused(
            "bad_message", f"the first message is a hello, not {shown(hello.get('type'))}"
        )
    if hello.get("version") not in (None, VERSION):
        raise Refused(
            "bad_request",
            f"version {shown(hello['version'])} is asked for, but this server speaks {VERSION}",
        )
    if odd := sorted(set(hello) - _HELLO):
        raise Refused(
            "bad_request",
            f"hello has {shown(odd[0])}, which means nothing: {', '.join(sorted(_HELLO))} do",
        )


def _text(hello: dict[str, Any], name: str, usual: str) -> str:
    value = hello.get(name)
    if not isinstance(value, str | None):
        raise Refused("bad_request", f"{name} is {shown(value)}: text is wanted")
    return usual if value is None else value


def _endpoint(hello: dict[str, Any], usual: Endpoint) -> Endpoint | None:
    """The rule a client asks for: none for null, that of the server where it says nothing."""
    if "endpoint" not in hello:
        return usual
    asked = hello["endpoint"]
    if asked is None:
        return None
    if not isinstance(asked, dict) or not set(asked) <= {"silence_ms", "longest_ms"}:
        raise Refused("bad_request", "endpoint is null, or has silence_ms and longest_ms")
    try:
        return Endpoint(
            as_number(asked.get("silence_ms", usual.silence_ms), "endpoint.silence_ms"),
            as_number(asked.get("longest_ms", usual.longest_ms), "endpoint.longest_ms"),
        )
    except NearfutureError as error:
        raise Refused("bad_request", str(error)) from error
