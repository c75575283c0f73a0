"""Who is let in: decided once for every request and every websocket, before anything is routed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from starlette.requests import HTTPConnection
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from nearfuture.serving.limits import Limits, Refused
from nearfuture.serving.log import CLIENT
from nearfuture.serving.protocols.openai_error import OpenAIError
from nearfuture.serving.service import InFlight, Service

_LEAST_BYTES_S = 4096  # of a body, on the average, with `idle_s` for a start
_FORM_BYTES = 1 << 16  # what a form may have around a file

_LOG = logging.getLogger("nearfuture.serving")


class Admission:
    """Turns away who has no key, pages of others, who is one too many, and who brings too much.

    Whoever is refused meets the `open_routes` and nothing else. They are requests of HTTP; the
    application behind this one is not asked, so that no path, no method and no way to write them
    leads from there to a protocol.

    Whoever is let in gets an answer: also where a handler fails, and where the server stops.

    Args:
        app: for those who are let in.
        service: whose key and whose limits hold.
        open_routes: for everybody, e.g. for load balancers, which bring no key.
    """

    def __init__(self, app: ASGIApp, service: Service, open_routes: Sequence[Route]) -> None:
        self._app, self._service, self._open = app, service, tuple(open_routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one in, or not."""
        if scope["type"] == "lifespan":  # the server's own, without a client
            await self._app(scope, receive, send)
            return
        assert scope["type"] in ("http", "websocket")
        CLIENT.set(_client(scope))
        refused = self._refusal(HTTPConnection(scope))
        task = asyncio.current_task()
        assert task is not None
        here = InFlight(task)

        async def observed(message: Message) -> None:
            if not here.begun and (status := _status(message)):
                here.begun = True
                self._count(scope, status)
            here.closed = here.closed or message["type"] == "websocket.close"
            await send(message)

        try:
            if refused is None:
                with self._service.entered(here):
                    await self._inside(here, scope, receive, observed)
            else:
                await self._outside(refused, scope, receive, observed)
        finally:
            if not here.begun:
                self._count(scope, _LEFT)

    def _count(self, scope: Scope, status: int) -> None:
        """Count an answer under its route: a path is whatever a client writes."""
        route = getattr(scope.get("route"), "path", "none")
        self._service.metrics.requests.labels(route, str(status)).inc()

    def _refusal(self, connection: HTTPConnection) -> Refused | None:
        limits = self._service.limits
        if not self._service.authorized(connection):
            return Refused("unauthorized", "send the API key as 'Authorization: Bearer KEY'")
        if refused := self._service.origins.refusal(connection):
            return refused
        if (now := self._service.connections) >= limits.most_connections:
            return Refused("busy", f"{now} connections are open, the most there may be: try later")
        length = connection.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > limits.most_file_bytes + _FORM_BYTES:
            return _too_big(limits.most_file_bytes)
        return None

    async def _outside(self, refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        for route in self._open:
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope.update(found, route=route)
                await route.handle(scope, receive, send)
                return
        await self._deny(refused, scope, receive, send)

    async def _inside(self, here: InFlight, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            bounded = receive
            if scope["type"] == "http":
                bounded = _bounded(receive, self._service.limits)
            await self._app(scope, bounded, send)
            return
        except asyncio.CancelledError:
            if not here.dismissed:
                raise
            here.task.uncancel()
            refused = Refused("draining", "this server is about to stop: ask another")
        except Exception:
            _LOG.exception("a request failed")
            refused = Refused("internal", "the server made a mistake: it is in its log")
        if not here.begun:
            await self._deny(refused, scope, receive, send)
        elif scope["type"] == "websocket" and not here.closed:
            self._service.refused(refused.code)
            await send({"type": "websocket.close", "code": refused.close, "reason": refused.code})

    async def _deny(self, refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        self._service.refused(refused.code)
        response = OpenAIError.of(refused).response({"Connection": "close"})
        if scope["type"] == "http":
            await response(scope, receive, send)
            return
        websocket = WebSocket(scope, receive, send)
        if "websocket.http.response" in scope.get("extensions", {}):
            await websocket.receive()
            await websocket.send_denial_response(response)
        else:
            await websocket.close(refused.close)


_LEFT = 499  # what nginx counts a client as that left before there was an answer
_LONGEST_PATH = 100


def _status(message: Message) -> int | None:
    """The status that a message begins an answer with, if it begins one."""
    kinds = {"websocket.accept": 101, "websocket.close": 403}  # a close instead of an accept
    return kinds.get(message["type"], message.get("status"))


def _client(scope: Scope) -> dict[str, Any]:
    """For the log: who asks, at which port, for what."""
    host, port = scope.get("client") or ("", 0)
    return {
        "client": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        "port": (scope.get("server") or ("", 0))[1],
        "path": scope["path"][:_LONGEST_PATH],
    }


def _too_big(most: int) -> Refused:
    return Refused("too_big", f"a request may have {most} bytes: send less, or stream it")


def _bounded(receive: Receive, limits: Limits) -> Receive:
    """What is received, if it is not too much, does not stand still and is not all too slow."""
    loop = asyncio.get_running_loop()
    total, whole, begun_s = 0, False, loop.time()

    async def bounded() -> Message:
        nonlocal total, whole
        slow_s = begun_s + limits.idle_s + total / _LEAST_BYTES_S - loop.time()
        try:
            async with asyncio.timeout(None if whole else min(limits.idle_s, slow_s)):
                message = await receive()
        except TimeoutError:
            if slow_s < limits.idle_s:
                reason = f"the request comes slower than {_LEAST_BYTES_S} bytes a second"
            else:
                reason = f"nothing more of the request came for {limits.idle_s:g} s"
            raise Refused("idle", f"{reason}: send it again") from None
        whole = not message.get("more_body", False)
        total += len(message.get("body", b""))
        if total > limits.most_file_bytes + _FORM_BYTES:
            raise _too_big(limits.most_file_bytes)
        return message

    return bounded
