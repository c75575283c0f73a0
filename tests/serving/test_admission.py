"""Who is let in: the whole product of ports, paths, scopes and keys, and the counting of all."""

import asyncio
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from nearfuture.error import NearfutureError
from nearfuture.runtime import Dispatcher
from nearfuture.serving.app import create_app
from nearfuture.serving.limits import ServerLimits
from nearfuture.serving.protocols import PROTOCOLS
from nearfuture.serving.service import InFlight, Service
from nearfuture.serving.settings import ServerSettings

KEY = "se+cret key"  # a header can carry a space, a subprotocol cannot

PORTS = (None, *PROTOCOLS)
PATHS = (
    *("/", "/health", "/ready", "/metrics", "/stream", "/vosk", "/v1/realtime", "/v1/models"),
    *("/v1/models/digits", "/v1/audio/transcriptions", "", "/nowhere"),
    *("/health/", "//health", "/health/stream", "/HEALTH", "/health?x", "/health\n", "health"),
    *("/stream/../health", "/./health", "/health;a=b", "/health\x00", "http://x/health", "*"),
)
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "FOO")
SCOPES = (*(("http", method) for method in METHODS), ("websocket", ""))
NO_KEY: tuple[list[tuple[bytes, bytes]], ...] = (
    [],
    [(b"authorization", b"")],
    [(b"authorization", b"Bearer")],
    [(b"authorization", b"Bearer ")],
    [(b"authorization", b"Bearer wrong")],
    [(b"authorization", b"Bearer se+cret")],
    [(b"authorization", b"Bearer se+cret key2")],
    [(b"authorization", b"Basic se+cret key")],
    [(b"authorization", b"se+cret key")],
    [(b"authorization", "Bearer schlüssel".encode())],
    [(b"authorization", b"Bearer wrong"), (b"authorization", b"Bearer se+cret key")],
    [(b"sec-websocket-protocol", b"openai-insecure-api-key.")],
    [(b"sec-websocket-protocol", b"openai-insecure-api-key.wrong, stream")],
    [(b"cookie", b"key=se+cret key")],
    [(b"x-api-key", b"se+cret key")],
)
A_KEY = [(b"authorization", b"Bearer se+cret key")]


OPEN = ("/health", "/ready", "/health\n")
"""What the routes of the state match; a regular expression takes a line's end for the end."""


async def ask(
    app: Any, kind: str, method: str, path: str, headers: list[tuple[bytes, bytes]]
) -> list[dict[str, Any]]:
    """What an application says to one scope whose client leaves at once."""
    scope: dict[str, Any] = {
        "type": kind,
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"key=se+cret%20key&api_key=se+cret%20key",
        "headers": headers,
        "client": ("192.0.2.1", 4711),
        "server": ("127.0.0.1", 80),
    }
    if kind == "http":
        scope["method"] = method
        coming = [{"type": "http.request", "body": b"", "more_body": False}]
    else:
        scope |= {"subprotocols": [], "extensions": {"websocket.http.response": {}}}
        coming = [{"type": "websocket.connect"}]
    said: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return coming.pop(0) if coming else {"type": f"{kind}.disconnect", "code": 1001}

    async def send(message: Any) -> None:
        said.append(message)

    await app(scope, receive, send)
    return said


@pytest.fixture(scope="module")
def locked(engine: Dispatcher) -> Service:
    return Service({"digits": engine}, ServerSettings(api_key=KEY))


def everything() -> Iterator[tuple[str, tuple[str, str]]]:
    return itertools.product(PATHS, SCOPES)


def is_open(path: str, kind: str, method: str) -> bool:
    return kind == "http" and method in ("GET", "HEAD") and path in OPEN


@pytest.mark.parametrize("root", PORTS)
def test_without_the_key_no_port_no_path_and_no_scope_leads_to_anything(
    locked: Service, root: str | None
) -> None:
    async def main() -> int:
        app, asked = create_app(locked, root=root), 0
        for path, (kind, method) in everything():
            for headers in NO_KEY if path in ("/health", "/stream", "/") else NO_KEY[:3]:
                said = await ask(app, kind, method, path, headers)
                where = (kind, method, path, headers)
                if is_open(path, kind, method):
                    assert said[0]["status"] == 200, where
                    continue
                asked += 1
                prefix = "http" if kind == "http" else "websocket.http"
                assert said[0]["type"] == f"{prefix}.response.start", where
                assert said[0]["status"] == 401, where
                assert json.loads(said[1]["body"])["error"]["code"] == "unauthorized"
        return asked

    before = refusals(locked)
    assert asyncio.run(main()) == refusals(locked) - before > 500
    assert locked.connections == 0


def refusals(service: Service) -> float:
    sample = service.metrics._registry.get_sample_value
    return sample("nearfuture_errors_total", {"code": "unauthorized"}) or 0.0


@pytest.mark.parametrize("root", PORTS)
def test_the_key_leads_to_the_routes_of_the_port_alone(locked: Service, root: str | None) -> None:
    async def main() -> None:
        app = create_app(locked, root=root)
        for path, (kind, method) in everything():
            said = await ask(app, kind, method, path, A_KEY)
            if kind == "http":
                assert said[0]["status"] in (200, 400, 404, 405), (method, path, said)
                if said[0]["status"] >= 400:
                    assert json.loads(said[1]["body"])["error"]["message"]
            elif root in ("stream", "vosk", "openai_realtime"):
                assert (said[0]["type"] == "websocket.accept") == path.startswith("/"), path
            else:
                here = ("/stream", "/vosk", "/v1/realtime") if root is None else ()
                assert (said[0]["type"] == "websocket.accept") == (path in here), path

    asyncio.run(main())
    assert locked.connections == 0


@pytest.mark.parametrize("root", PORTS)
def test_a_full_server_has_no_place_at_any_port_path_or_scope(
    engine: Dispatcher, root: str | None
) -> None:
    async def main() -> None:
        service = Service(
            {"digits": engine}, ServerSettings(limits=ServerLimits(max_connections=1))
        )
        app = create_app(service, root=root)
        task = asyncio.current_task()
        assert task is not None
        with service.tracked(InFlight(task)):
            await everywhere(service, app)
            assert service.connections == 1

    async def everywhere(service: Service, app: Any) -> None:
        for path, (kind, method) in everything():
            said = await ask(app, kind, method, path, [])
            where = (kind, method, path)
            assert said[0]["status"] == (200 if is_open(path, kind, method) else 503), where
            if said[0]["status"] == 503:
                assert json.loads(said[1]["body"])["error"]["code"] == "busy"

    asyncio.run(main())


@pytest.mark.parametrize("key", ["", " ", "schlüssel", "a\nb", "key ", " key", "k\x7f"])
def test_a_key_that_no_header_can_carry(key: str) -> None:
    with pytest.raises(NearfutureError, match="API key"):
        ServerSettings(api_key=key)


def test_the_lifespan_alone_needs_no_key_and_another_scope_goes_nowhere(locked: Service) -> None:
    app = create_app(locked)
    coming = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    said: list[str] = []

    async def receive() -> dict[str, str]:
        return coming.pop(0)

    async def send(message: Any) -> None:
        said.append(message["type"])

    asyncio.run(app({"type": "lifespan", "asgi": {}}, receive, send))
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    with pytest.raises(AssertionError):
        asyncio.run(app({"type": "webtransport", "path": "/stream", "headers": []}, receive, send))
