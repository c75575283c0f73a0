"""The server as an ASGI application: protocols by path, health, metrics."""

from __future__ import annotations

from collections.abc import Collection

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from nearfuture import __version__
from nearfuture.serving.admission import Admission
from nearfuture.serving.errors import RequestError
from nearfuture.serving.openapi import html_page, openapi_document
from nearfuture.serving.protocols import PROTOCOLS, routes
from nearfuture.serving.service import Service


def create_app(service: Service, *, root: str | None = None) -> Starlette:
    """Create the application of one port.

    Args:
        service: shared by all ports.
        root: a protocol that has this port to itself, at whatever path its clients connect to;
            otherwise all protocols, each at its own.
    """
    pages = _Pages(service)
    if root is None:
        served: list[BaseRoute] = [route for name in PROTOCOLS for route in routes(name, service)]
        served += [
            Route("/", pages.index),
            Route("/metrics", pages.metrics),
            Route("/openapi.json", pages.openapi),
            Route("/docs", pages.docs),
        ]
    else:
        served = list(routes(root, service))
        if isinstance(served[0], WebSocketRoute):
            served.append(WebSocketRoute("/{path:path}", served[0].endpoint))
    state = [Route("/health", pages.health), Route("/ready", pages.ready)]
    app = Starlette(
        routes=[*state, *served],
        middleware=[
            *_cors(service.origins.allowed),
            Middleware(Admission, service=service, open_routes=state),
        ],
        exception_handlers={RequestError: pages.refused, HTTPException: _no_route},
    )
    app.router.redirect_slashes = False  # a path is one thing, however it is written
    return app


def _cors(origins: Collection[str]) -> list[Middleware]:
    """Let a browser read answers in pages of these origins, refusals included.

    It stands before admission: a browser asks first whether it may ask, and brings no key to that.
    """
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=("GET", "POST"),
            allow_headers=("*",),
            allow_private_network=True,  # a page of the internet may use a server at home
            expose_headers=("Retry-After",),
        )
    ]


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        refused = RequestError("method_not_allowed", f"this path takes {allowed}")
    else:
        refused = RequestError(
            "not_found", "there is nothing at this path: GET / lists what there is"
        )
    return refused.response(error.headers)


class _Pages:
    """The pages of a server that belong to no protocol."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestError)
        self._service.record_error(error.code)
        return error.response()

    async def health(self, request: Request) -> Response:
        alive = self._service.alive
        return JSONResponse({"status": "alive" if alive else "broken"}, 200 if alive else 500)

    async def ready(self, request: Request) -> Response:
        if error := self._service.unready_reason():
            return error.response()
        uploads = self._service.uploads
        counts = {"running": uploads.running, "waiting": uploads.waiting}
        return JSONResponse(
            {"status": "ready", "streams": self._service.streams, "uploads": counts}
        )

    async def metrics(self, request: Request) -> Response:
        media_type = "text/plain; version=0.0.4; charset=utf-8"
        return Response(self._service.metrics.page(), media_type=media_type)

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(openapi_document(self._service))

    async def docs(self, request: Request) -> Response:
        policy = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return HTMLResponse(html_page(self._service), headers=policy)

    async def index(self, request: Request) -> Response:
        return JSONResponse(
            {
                "server": f"nearfuture/{__version__}",
                "models": {name: self._model(name) for name in self._service.models},
                "protocols": {
                    name: [route.path for route in routes(name, self._service)]  # type: ignore[attr-defined]
                    for name in PROTOCOLS
                },
            }
        )

    def _model(self, name: str) -> dict[str, object]:
        manifest = self._service.dispatcher(name).manifest
        return {
            "name": manifest.name,
            "description": manifest.description,
            "rate": manifest.rate,
            "budgets_ms": sorted(latency.worst_ms for latency in manifest.heads.values()),
        }
