"""Admission, decided once for every request and every websocket, before anything is routed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from starlette.requests import HTTPConnection
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from nearfuture.serving.errors import RequestError
from nearfuture.serving.limits import ServerLimits
from nearfuture.serving.log import CLIENT
from nearfuture.serving.service import InFlight, Service

_MIN_BYTES_S = 4096  # of a body, on the average, with `idle_s` for a start
_FORM_BYTES = 1 << 16  # what a form may have around a file

_LOG = logging.getLogger("nearfuture.serving")


class Admission:
    """Refuses clients without the key, pages of other origins, and what exceeds the limits.

    A refused client reaches the `open_routes` and nothing else. They are requests of HTTP; the
    application behind this one is not asked, so that no path, no method and no way to write them
    leads from there to a protocol.

    An admitted client gets an answer: also where a handler fails, and where the server stops.

    Args:
        app: for admitted clients.
        service: whose key and limits hold.
        open_routes: for everybody, such as load balancers, which bring no key.
    """

    def __init__(self, app: ASGIApp, service: Service, open_routes: Sequence[Route]) -> None:
        self._app, self._service, self._open = app, service, tuple(open_routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Admit a request or a websocket, or refuse it."""
        if scope["type"] == "lifespan":  # the server's own, without a client
            await self._app(scope, receive, send)
            return
        assert scope["type"] in ("http", "websocket")
        CLIENT.set(_client(scope))
        error = self._rejection(HTTPConnection(scope))
        task = asyncio.current_task()
        assert task is not None
        request = InFlight(task)

        async def observed(message: Message) -> None:
            if not request.started and (status := _status(message)):
                request.started = True
                self._count(scope, status)
            request.closed = request.closed or message["type"] == "websocket.close"
            await send(message)

        try:
            if error is None:
                with self._service.tracked(request):
                    await self._admitted(request, scope, receive, observed)
            else:
                await self._refused(error, scope, receive, observed)
        finally:
            if not request.started:
                self._count(scope, _CLIENT_LEFT)

    def _count(self, scope: Scope, status: int) -> None:
        """Count an answer under its route: a path is whatever a client writes."""
        route = getattr(scope.get("route"), "path", "none")
        self._service.metrics.requests.labels(route, str(status)).inc()

    def _rejection(self, connection: HTTPConnection) -> RequestError | None:
        limits = self._service.limits
        if not self._service.authorized(connection):
            return RequestError("unauthorized", "send the API key as 'Authorization: Bearer KEY'")
        if error := self._service.origins.refusal(connection):
            return error
        count = self._service.connections
        if count >= limits.max_connections:
            return RequestError(
                "busy", f"{count} connections are open, the most there may be: try later"
            )
        length = connection.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > limits.max_file_bytes + _FORM_BYTES:
            return _too_large(limits.max_file_bytes)
        return None

    async def _refused(
        self, error: RequestError, scope: Scope, receive: Receive, send: Send
    ) -> None:
        for route in self._open:
            match, child_scope = route.matches(scope)
            if match is Match.FULL:
                scope.update(child_scope, route=route)
                await route.handle(scope, receive, send)
                return
        await self._deny(error, scope, receive, send)

    async def _admitted(
        self, request: InFlight, scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            bounded = receive
            if scope["type"] == "http":
                bounded = _bounded(receive, self._service.limits)
            await self._app(scope, bounded, send)
            return
        except asyncio.CancelledError:
            if not request.cancelled:
                raise
            request.task.uncancel()
            error = RequestError("draining", "this server is about to stop: try another")
        except Exception:
            _LOG.exception("a request failed")
            error = RequestError("internal", "the server made a mistake: it is in its log")
        if not request.started:
            await self._deny(error, scope, receive, send)
        elif scope["type"] == "websocket" and not request.closed:
            self._service.record_error(error.code)
            await send({"type": "websocket.close", "code": error.close_code, "reason": error.code})

    async def _deny(self, error: RequestError, scope: Scope, receive: Receive, send: Send) -> None:
        self._service.record_error(error.code)
        response = error.response({"Connection": "close"})
        if scope["type"] == "http":
            await response(scope, receive, send)
            return
        websocket = WebSocket(scope, receive, send)
        if "websocket.http.response" in scope.get("extensions", {}):
            await websocket.receive()
            await websocket.send_denial_response(response)
        else:
            await websocket.close(error.close_code)


_CLIENT_LEFT = 499  # the status in nginx' log of a client that left before there was an answer
_MAX_PATH = 100


def _status(message: Message) -> int | None:
    """Return the status of the answer that a message begins, if it begins one."""
    kinds = {"websocket.accept": 101, "websocket.close": 403}  # a close instead of an accept
    return kinds.get(message["type"], message.get("status"))


def _client(scope: Scope) -> dict[str, Any]:
    """Return the fields of a client for the log: address, port of the server, path."""
    host, port = scope.get("client") or ("", 0)
    return {
        "client": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        "port": (scope.get("server") or ("", 0))[1],
        "path": scope["path"][:_MAX_PATH],
    }


def _too_large(max_bytes: int) -> RequestError:
    return RequestError(
        "too_large", f"a request may have {max_bytes} bytes: send less, or stream it"
    )


def _bounded(receive: Receive, limits: ServerLimits) -> Receive:
    """Limit a request's body in size, in pauses and in its average rate."""
    loop = asyncio.get_running_loop()
    total, complete, begun_s = 0, False, loop.time()

    async def bounded() -> Message:
        nonlocal total, complete
        remaining_s = begun_s + limits.idle_s + total / _MIN_BYTES_S - loop.time()
        try:
            async with asyncio.timeout(None if complete else min(limits.idle_s, remaining_s)):
                message = await receive()
        except TimeoutError:
            if remaining_s < limits.idle_s:
                reason = f"the request comes slower than {_MIN_BYTES_S} bytes a second"
            else:
                reason = f"nothing more of the request came for {limits.idle_s:g} s"
            raise RequestError("idle", f"{reason}: send it again") from None
        complete = not message.get("more_body", False)
        total += len(message.get("body", b""))
        if total > limits.max_file_bytes + _FORM_BYTES:
            raise _too_large(limits.max_file_bytes)
        return message

    return bounded
