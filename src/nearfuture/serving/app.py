"""The server as an ASGI application: protocols by path, health, metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from nearfuture import __version__
from nearfuture.serving.admission import Admission
from nearfuture.serving.limits import Refused
from nearfuture.serving.openapi import description, page
from nearfuture.serving.protocols import PROTOCOLS, routes
from nearfuture.serving.protocols.openai_error import OpenAIError
from nearfuture.serving.service import Service

_Endpoint = Callable[[Request], Awaitable[Response]]


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
            Route("/openapi.json", _openapi(service)),
            Route("/docs", _docs(service)),
        ]
    else:
        spoken = list(routes(root, service))
        if isinstance(spoken[0], WebSocketRoute):
            spoken.append(WebSocketRoute("/{path:path}", spoken[0].endpoint))
    state = [Route("/health", _health(service)), Route("/ready", _ready(service))]
    app = Starlette(
        routes=[*state, *spoken],
        middleware=[
            *_cors(service.origins.allowed),
            Middleware(Admission, service=service, open_routes=state),
        ],
        exception_handlers={Refused: _refusal(service), HTTPException: _no_such},
    )
    app.router.redirect_slashes = False  # a path is one thing, however it is written
    return app


def _cors(origins: Collection[str]) -> list[Middleware]:
    """What lets a browser read answers in pages of these origins, refusals included.

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


def _refusal(service: Service) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handler(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        service.refused(error.code)
        return OpenAIError.of(error).response()

    return handler


async def _no_such(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        message, code = f"this path takes {allowed}", "method_not_allowed"
    else:
        message, code = "there is nothing at this path: GET / lists what there is", "not_found"
    return OpenAIError(message, code=code, status=error.status_code).response(error.headers)


def _health(service: Service) -> _Endpoint:
    async def health(request: Request) -> Response:
        alive = service.alive
        return JSONResponse({"status": "alive" if alive else "broken"}, 200 if alive else 500)

    return health


def _ready(service: Service) -> _Endpoint:
    async def ready(request: Request) -> Response:
        reason = service.why_not_ready()
        if reason is None:
            uploads = {"running": service.uploads.running, "waiting": service.uploads.waiting}
            return JSONResponse({"status": "ready", "streams": service.streams, "uploads": uploads})
        return OpenAIError.of(reason).response()

    return ready


def _metrics(service: Service) -> _Endpoint:
    async def metrics(request: Request) -> Response:
        return Response(
            service.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    return metrics


def _openapi(service: Service) -> _Endpoint:
    async def openapi(request: Request) -> Response:
        return JSONResponse(description(service))

    return openapi


def _docs(service: Service) -> _Endpoint:
    async def docs(request: Request) -> Response:
        policy = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return HTMLResponse(page(service), headers=policy)

    return docs


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
