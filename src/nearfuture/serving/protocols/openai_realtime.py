"""OpenAI's Realtime protocol for transcription: `/v1/realtime`, JSON events over a websocket."""

from __future__ import annotations

import base64
import binascii
import itertools
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from nearfuture.error import NearfutureError
from nearfuture.serving.connection import Connection, Gone, as_message, first_of
from nearfuture.serving.limits import Refused, shown
from nearfuture.serving.protocols.openai_error import OpenAIError
from nearfuture.serving.protocols.openai_model import chosen
from nearfuture.serving.protocols.openai_option import refuse_options
from nearfuture.serving.protocols.realtime_conversation import ServerEvent
from nearfuture.serving.protocols.realtime_hearing import Hearing
from nearfuture.serving.protocols.realtime_settings import RealtimeSettings
from nearfuture.serving.service import Service

_LONGEST_IDENTIFIER = 512
_READ = {
    "session.update": ("session",),
    "transcription_session.update": ("session",),
    "input_audio_buffer.append": ("audio",),
}


def routes(service: Service) -> list[BaseRoute]:
    """Where this protocol is spoken."""

    async def endpoint(websocket: WebSocket) -> None:
        offered = websocket.scope.get("subprotocols", [])
        subprotocol = "realtime" if "realtime" in offered else None
        try:
            connection = await Connection.accept(websocket, service, subprotocol)
        except Gone:
            return
        await _Client(websocket, connection, service).serve()

    return [WebSocketRoute("/v1/realtime", endpoint)]


class _Client:
    """One client: its events are done one after another, and what is heard is told in between."""

    def __init__(self, websocket: WebSocket, connection: Connection, service: Service) -> None:
        beta = "realtime=v1" in websocket.headers.get("openai-beta", "")
        self._service = service
        self._connection = connection
        self._identifier = f"sess_{secrets.token_hex(8)}"
        self._numbers = itertools.count(1)
        self._settings = RealtimeSettings(model=websocket.query_params.get("model"))
        self._hearing = Hearing(service, self._tell, "beta" if beta else "ga")
        self._does: dict[str, Callable[[Mapping[str, Any]], Awaitable[None]]] = {
            "session.update": self._update,
            "transcription_session.update": self._update,
            "input_audio_buffer.append": self._append,
            "input_audio_buffer.commit": self._commit,
            "input_audio_buffer.clear": self._clear,
        }

    async def serve(self) -> None:
        """Until the client leaves, or cannot be served any longer."""
        try:
            await self._tell([self._described("created")])
            await first_of(self._listen(), self._hearing.follow(), self._connection.lost())
            await self._connection.close()
        except Gone:
            return
        except NearfutureError as error:
            await self._dismiss(error)
        finally:
            await self._hearing.close()

    async def _listen(self) -> None:
        async for message in self._connection.messages():
            await self._do(message)

    async def _do(self, message: str | bytes) -> None:
        """Act on one event; a mistake in it is told, and the session goes on."""
        event_id = None
        try:
            if isinstance(message, bytes):
                raise OpenAIError(
                    "a binary message: this protocol has JSON events; audio goes, as base64, into "
                    "input_audio_buffer.append"
                )
            event = as_message(message)
            event_id = _identifier(event)
            kind = event.get("type")
            does = self._does.get(kind) if isinstance(kind, str) else None
            if does is None:
                raise OpenAIError(
                    f"there is no event {shown(kind, 80)} here: this server transcribes, and "
                    f"knows {', '.join(self._does)}",
                    param="type",
                    code="invalid_value",
                )
            refuse_options(event, read=("type", "event_id", *_READ.get(str(kind), ())), usual={})
            await does(event)
        except OpenAIError as error:
            await self._tell([self._failed(error, event_id)])
        except Refused as error:
            if error.code != "bad_message":
                raise
            await self._tell([self._failed(OpenAIError.of(error), event_id)])

    async def _update(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "transcription_session.update":
            self._hearing.dialect = "beta"
        told = self._settings.updated(event.get("session"), self._hearing.dialect)
        chosen(self._service, told.model)
        if self._hearing.begun and told != self._settings:
            raise OpenAIError(
                "the session has audio already: its model, format and turn detection stay as they "
                "are until input_audio_buffer.clear, or connect again",
                param="session",
            )
        self._settings = told
        await self._tell([self._described("updated")])

    async def _append(self, event: Mapping[str, Any]) -> None:
        audio = event.get("audio")
        if not isinstance(audio, str):
            raise OpenAIError("audio is missing: base64 text is wanted", param="audio")
        try:
            data = base64.b64decode(audio, validate=True)
        except (binascii.Error, ValueError) as error:
            raise OpenAIError(f"audio is not base64: {error}", param="audio") from error
        model = chosen(self._service, self._settings.model)
        await self._hearing.hear(data, model, self._settings)

    async def _commit(self, event: Mapping[str, Any]) -> None:
        await self._hearing.commit()

    async def _clear(self, event: Mapping[str, Any]) -> None:
        await self._hearing.clear()
        await self._tell([{"type": "input_audio_buffer.cleared"}])

    def _described(self, what: str) -> ServerEvent:
        kind = "transcription_session" if self._hearing.dialect == "beta" else "session"
        try:
            model = chosen(self._service, self._settings.model)
        except OpenAIError:  # an update may still name another one
            model = self._service.models[0]
        session = self._settings.described(self._identifier, model, self._hearing.dialect)
        return {"type": f"{kind}.{what}", "session": session}

    def _failed(self, error: OpenAIError, event_id: str | None = None) -> ServerEvent:
        return {"type": "error", "error": {**error.fields(), "event_id": event_id}}

    async def _dismiss(self, error: NearfutureError) -> None:
        if self._service.draining:
            error = Refused("draining", "this server is about to stop: connect to another")
        refused = error if isinstance(error, Refused) else Refused("internal", str(error))
        self._service.refused(refused.code)
        try:
            await self._tell([self._failed(OpenAIError.of(refused))])
        except (Gone, Refused):
            return
        await self._connection.close(refused.close, refused.code)

    async def _tell(self, events: list[ServerEvent]) -> None:
        for event in events:
            numbered = {"type": event["type"], "event_id": f"event_{next(self._numbers)}"}
            await self._connection.send({**numbered, **event})


def _identifier(event: Mapping[str, Any]) -> str | None:
    """The client's own name for its event, if it is one."""
    value = event.get("event_id")
    return value[:_LONGEST_IDENTIFIER] if isinstance(value, str) else None
