"""OpenAI's Realtime protocol for transcription: `/v1/realtime`, JSON events over a websocket."""

from __future__ import annotations

import base64
import binascii
import itertools
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.routing import BaseRoute
from starlette.websockets import WebSocket

from nearfuture.serving.connection import WebSocketConnection
from nearfuture.serving.errors import RequestError
from nearfuture.serving.json_fields import brief, parse_message
from nearfuture.serving.protocols.handler import LiveHandler
from nearfuture.serving.protocols.openai_fields import refuse_options, resolve_model
from nearfuture.serving.protocols.realtime_audio import InputAudioBuffer
from nearfuture.serving.protocols.realtime_items import ServerEvent
from nearfuture.serving.protocols.realtime_settings import RealtimeSettings
from nearfuture.serving.service import Service

_MAX_IDENTIFIER = 512
_READ = {
    "session.update": ("session",),
    "transcription_session.update": ("session",),
    "input_audio_buffer.append": ("audio",),
}


def routes(service: Service) -> list[BaseRoute]:
    """Return the routes of this protocol."""
    return [RealtimeHandler.route(service)]


class RealtimeHandler(LiveHandler):
    """One client: its events are acted on one after another, results are sent in between."""

    path = "/v1/realtime"

    def __init__(
        self, websocket: WebSocket, connection: WebSocketConnection, service: Service
    ) -> None:
        super().__init__(websocket, connection, service)
        beta = "realtime=v1" in websocket.headers.get("openai-beta", "")
        self._identifier = f"sess_{secrets.token_hex(8)}"
        self._numbers = itertools.count(1)
        self._settings = RealtimeSettings(model=websocket.query_params.get("model"))
        self._buffer = InputAudioBuffer(service, self._send, "beta" if beta else "ga")
        self._actions: dict[str, Callable[[Mapping[str, Any]], Awaitable[None]]] = {
            "session.update": self._update,
            "transcription_session.update": self._update,
            "input_audio_buffer.append": self._append,
            "input_audio_buffer.commit": self._commit,
            "input_audio_buffer.clear": self._clear,
        }

    @classmethod
    def subprotocol(cls, offered: list[str]) -> str | None:
        """Accept OpenAI's own."""
        return "realtime" if "realtime" in offered else None

    async def open(self) -> None:
        """Describe the session."""
        await self._send([self._session_event("created")])

    async def on_message(self, message: str | bytes) -> None:
        """Act on one event; a mistake in it is reported, and the session goes on."""
        event_id = None
        try:
            if isinstance(message, bytes):
                raise RequestError(
                    "bad_message",
                    "a binary message: this protocol has JSON events; audio goes, as base64, into "
                    "input_audio_buffer.append",
                )
            event = parse_message(message)
            event_id = _event_id(event)
            kind = event.get("type")
            action = self._actions.get(kind) if isinstance(kind, str) else None
            if action is None:
                raise RequestError(
                    "invalid_value",
                    f"there is no event {brief(kind, 80)} here: this server transcribes, and "
                    f"knows {', '.join(self._actions)}",
                    "type",
                )
            refuse_options(event, read=("type", "event_id", *_READ.get(str(kind), ())), defaults={})
            await action(event)
        except RequestError as error:
            if not error.recoverable:
                raise
            await self._send([_error_event(error, event_id)])

    async def send_results(self) -> None:
        """Send transcripts for as long as the session goes on."""
        await self._buffer.send_transcripts()

    async def send_error(self, error: RequestError) -> str:
        """Send an error event; the socket closes with its code."""
        await self._send([_error_event(error)])
        return error.code

    def release(self) -> None:
        """Free the place of the stream."""
        self._buffer.close()

    async def _update(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "transcription_session.update":
            self._buffer.dialect = "beta"
        settings = self._settings.updated(event.get("session"), self._buffer.dialect)
        resolve_model(self.service, settings.model)
        if self._buffer.has_audio and settings != self._settings:
            raise RequestError(
                "conflict",
                "the session has audio already: its model, format and turn detection stay as they "
                "are until input_audio_buffer.clear, or connect again",
                "session",
            )
        self._settings = settings
        await self._send([self._session_event("updated")])

    async def _append(self, event: Mapping[str, Any]) -> None:
        audio = event.get("audio")
        if not isinstance(audio, str):
            raise RequestError("invalid", "audio is missing: base64 text is expected", "audio")
        try:
            data = base64.b64decode(audio, validate=True)
        except (binascii.Error, ValueError) as error:
            raise RequestError("invalid", f"audio is not base64: {error}", "audio") from error
        model = resolve_model(self.service, self._settings.model)
        await self._buffer.append(data, model, self._settings)

    async def _commit(self, event: Mapping[str, Any]) -> None:
        await self._buffer.commit()

    async def _clear(self, event: Mapping[str, Any]) -> None:
        self._buffer.clear()
        await self._send([{"type": "input_audio_buffer.cleared"}])

    def _session_event(self, what: str) -> ServerEvent:
        kind = "transcription_session" if self._buffer.dialect == "beta" else "session"
        try:
            model = resolve_model(self.service, self._settings.model)
        except RequestError:  # an update may still name another one
            model = self.service.models[0]
        session = self._settings.described(self._identifier, model, self._buffer.dialect)
        return {"type": f"{kind}.{what}", "session": session}

    async def _send(self, events: list[ServerEvent]) -> None:
        for event in events:
            numbered = {"type": event["type"], "event_id": f"event_{next(self._numbers)}"}
            await self.connection.send({**numbered, **event})


def _error_event(error: RequestError, event_id: str | None = None) -> ServerEvent:
    return {"type": "error", "error": {**error.fields(), "event_id": event_id}}


def _event_id(event: Mapping[str, Any]) -> str | None:
    """Return the client's own name for its event, if it is one."""
    value = event.get("event_id")
    return value[:_MAX_IDENTIFIER] if isinstance(value, str) else None
