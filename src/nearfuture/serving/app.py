"""The server as an ASGI application: protocols by path, health, metrics, a guard at the door."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from nearfuture import __version__
from nearfuture.serving.limits import Limits, Refused
from nearfuture.serving.protocols import PROTOCOLS, routes
from nearfuture.serving.protocols.openai_error import OpenAIError
from nearfuture.serving.service import Service

__all__ = ["create_app"]

_Endpoint = Callable[[Request], Awaitable[Response]]

_OPEN = {"/health", "/ready"}  # load balancers bring no key


def create_app(service: Service, *, root: str | None = None) -> Starlette:
    """The application of one port.

    Args:
        service: shared by all ports.
        root: a protocol that has this port to itself, at whatever path its clients connect to;
            otherwise all protocols, each at its own.
    """
    if root is None:
        spoken: list[BaseRoute] = [route for name in PROTOCOLS for route in routes(name, service)]
        spoken += [
            Route("/", _about(service)),
            Route("/metrics", _metrics(service)),
        ]
    else:
        spoken = list(routes(root, service))
        if isinstance(spoken[0], WebSocketRoute):
            spoken.append(WebSocketRoute("/{path:path}", spoken[0].endpoint))
    return Starlette(
        routes=[Route("/health", _health(service)), Route("/ready", _ready(service)), *spoken],
        middleware=[Middleware(_Guard, service=service)],
        exception_handlers={Refused: _refusal(service)},
    )


class _Guard:
    """Turns away who has no key, who is one too many, and who brings too much."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"] in _OPEN:
            await self._app(scope, receive, send)
            return
        refused = self._refused(HTTPConnection(scope))
        if refused is not None:
            self._service.refused(refused.code)
            await _denied(refused, scope, receive, send)
            return
        self._service.connections += 1
        try:
            if scope["type"] == "http":
                receive = _bounded(receive, self._service.limits)
            await self._app(scope, receive, send)
        finally:
            self._service.connections -= 1

    def _refused(self, connection: HTTPConnection) -> Refused | None:
        limits = self._service.limits
        if not self._service.authorized(connection):
            return Refused("unauthorized", "send the API key as 'Authorization: Bearer KEY'")
        if (now := self._service.connections) >= limits.most_connections:
            return Refused("busy", f"{now} connections are open, the most there may be: try later")
        length = connection.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > limits.most_file_bytes + _FORM_BYTES:
            return _too_big(limits.most_file_bytes)
        return None


_FORM_BYTES = 1 << 16  # what a form may have around a file


def _too_big(most: int) -> Refused:
    return Refused("too_big", f"a request may have {most} bytes: send less, or stream it")


def _bounded(receive: Receive, limits: Limits) -> Receive:
    """What is received, as long as it is not too much and does not stand still in its middle."""
    total, whole = 0, False

    async def bounded() -> Message:
        nonlocal total, whole
        try:
            async with asyncio.timeout(None if whole else limits.idle_s):
                message = await receive()
        except TimeoutError:
            raise Refused(
                "idle", f"nothing more of the request came for {limits.idle_s:g} s: send it again"
            ) from None
        whole = not message.get("more_body", False)
        total += len(message.get("body", b""))
        if total > limits.most_file_bytes + _FORM_BYTES:
            raise _too_big(limits.most_file_bytes)
        return message

    return bounded


async def _denied(refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
    response = _told(refused)
    if scope["type"] == "http":
        await response(scope, receive, send)
        return
    websocket = WebSocket(scope, receive, send)
    if "websocket.http.response" in scope.get("extensions", {}):
        await websocket.receive()
        await websocket.send_denial_response(response)
    else:
        await websocket.close(refused.close)


def _told(refused: Refused) -> JSONResponse:
    headers = {}
    if refused.status == 503:
        headers["Retry-After"] = "1"
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": OpenAIError.of(refused).fields()}, refused.status, headers)


def _refusal(service: Service) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handler(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        service.refused(error.code)
        return _told(error)

    return handler


def _health(service: Service) -> _Endpoint:
    async def health(request: Request) -> Response:
        alive = service.alive
        return JSONResponse({"status": "alive" if alive else "broken"}, 200 if alive else 500)

    return health


def _ready(service: Service) -> _Endpoint:
    async def ready(request: Request) -> Response:
        reason = service.why_not()
        if reason is None:
            return JSONResponse({"status": "ready", "streams": service.streams})
        return _told(reason)

    return ready


def _metrics(service: Service) -> _Endpoint:
    async def metrics(request: Request) -> Response:
        return Response(
            service.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    return metrics


def _about(service: Service) -> _Endpoint:
    async def about(request: Request) -> Response:
        return JSONResponse(
            {
                "server": f"nearfuture/{__version__}",
                "models": {name: _described(service, name) for name in service.models},
                "protocols": {
                    name: [route.path for route in routes(name, service)]  # type: ignore[attr-defined]
                    for name in PROTOCOLS
                },
            }
        )

    return about


def _described(service: Service, name: str) -> dict[str, object]:
    manifest = service.dispatcher(name).manifest
    return {
        "name": manifest.name,
        "description": manifest.description,
        "rate": manifest.rate,
        "budgets_ms": sorted(latency.worst_ms for latency in manifest.heads.values()),
    }
