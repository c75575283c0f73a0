"""Whose web pages may use a server, on every port, path and kind of connection."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from starlette.requests import HTTPConnection
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from nearfuture.error import NearfutureError
from nearfuture.runtime import Dispatcher
from nearfuture.serving.origin import OriginPolicy, as_origin
from nearfuture.serving.protocols import PROTOCOLS
from nearfuture.serving.settings import ServerSettings
from tests.serving.served import Served, running

SOCKETS = ("/stream", "/vosk", "/v1/realtime")
PAGES = ("/", "/metrics", "/v1/models", "/v1/models/digits", "/nothing", "//", "/stream")


@contextmanager
def server(engine: Dispatcher, **settings: object) -> Iterator[Served]:
    with running(engine, settings=ServerSettings(**settings), roots=PROTOCOLS) as served:  # type: ignore[arg-type]
        yield served


@pytest.fixture(scope="module")
def keyless(engine: Dispatcher) -> Iterator[Served]:
    with server(engine) as served:
        yield served


@pytest.fixture(scope="module")
def allowing(engine: Dispatcher) -> Iterator[Served]:
    with server(engine, allow_origin=("https://app.example",)) as served:
        yield served


def ask(port: int, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=named)
        response = connection.getresponse()
        response.read()
        return response
    finally:
        connection.close()


def opened(port: int, path: str, **headers: str) -> int:
    """The status of a handshake."""
    try:
        with connect(
            f"ws://127.0.0.1:{port}{path}",
            origin=headers.pop("origin", None),  # type: ignore[arg-type]
            additional_headers={"Host": host} if (host := headers.get("host")) else None,
            compression=None,
        ):
            return 101
    except InvalidStatus as error:
        return error.response.status_code


def test_pages_of_others_are_refused_everywhere(keyless: Served) -> None:
    for port in keyless.ports:
        for path in (*SOCKETS, *PAGES, "/health", "/ready", "/x"):
            assert opened(port, path, origin="https://evil.example") == 403, (port, path)
        for path in PAGES:
            for method in ("GET", "POST", "OPTIONS", "PUT"):
                response = ask(port, path, method, origin="https://evil.example")
                assert response.status == 403, (port, path, method)
                assert response.getheader("access-control-allow-origin") is None
    upload = ask(
        keyless.port, "/v1/audio/transcriptions", "POST", origin="null", content_type="text/plain"
    )
    assert upload.status == 403


def test_programs_and_the_servers_own_pages_may(keyless: Served) -> None:
    port = keyless.port
    for path in SOCKETS:
        assert opened(port, path) == 101
        assert opened(port, path, origin=f"http://127.0.0.1:{port}") == 101
    assert ask(port, "/v1/models").status == 200
    assert ask(port, "/v1/models", origin=f"http://127.0.0.1:{port}").status == 200
    for name in ("localhost", "app.localhost", "LOCALHOST", "[::1]", "127.0.0.1", "localhost."):
        host = f"{name}:{port}"
        assert ask(port, "/v1/models", host=host, origin=f"http://{host.lower()}").status == 200
    other = ask(port, "/v1/models", origin=f"http://127.0.0.1:{port + 1}")
    assert other.status == 403  # another port is another origin


def test_a_name_that_was_made_to_point_here_is_refused(keyless: Served) -> None:
    host = f"evil.example:{keyless.port}"
    for headers in ({"host": host}, {"host": host, "origin": f"http://{host}"}):
        assert ask(keyless.port, "/metrics", **headers).status == 403
        for root in keyless.ports:
            assert ask(root, "/nothing", **headers).status == 403
    assert ask(keyless.port, "/metrics", host="127.0.0.1.evil.example").status == 403
    assert ask(keyless.port, "/metrics", host="user@127.0.0.1").status == 403
    assert ask(keyless.port, "/health", host=host).status == 200


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_every_way_over_loopback_is_one(address: str) -> None:
    def refusal(host: str, server: str) -> object:
        headers = [(b"host", host.encode())]
        scope = {"type": "http", "scheme": "http", "headers": headers, "server": (server, 8000)}
        return OriginPolicy((), keyed=False).refusal(HTTPConnection({**scope, "path": "/"}))

    assert refusal("evil.example:8000", address) is not None
    assert refusal("localhost:8000", address) is None
    assert refusal("evil.example:8000", "::ffff:192.0.2.1") is None


def test_health_is_for_everybody(keyless: Served) -> None:
    assert ask(keyless.port, "/health", origin="https://evil.example").status == 200


def test_allowed_pages_may_and_a_browser_may_tell_them(allowing: Served) -> None:
    port = allowing.port
    for root, one in zip(PROTOCOLS, allowing.ports[1:], strict=True):
        if root != "openai_rest":
            assert opened(one, "/any", origin="https://app.example") == 101
        assert opened(one, "/any", origin="https://evil.example") == 403
    for path in SOCKETS:
        assert opened(port, path, origin="https://app.example") == 101
        assert opened(port, path, origin="https://evil.example") == 403
    response = ask(port, "/v1/models", origin="https://app.example")
    assert response.status == 200
    assert response.getheader("access-control-allow-origin") == "https://app.example"
    assert "origin" in (response.getheader("vary") or "").lower()
    refused = ask(port, "/v1/models", origin="https://evil.example")
    assert refused.status == 403
    assert refused.getheader("access-control-allow-origin") is None
    assert ask(port, "/v1/models", host="app.example").status == 200  # through a proxy


@pytest.mark.parametrize("key", [None, "secret"])
def test_a_browser_asks_first_and_brings_no_key(engine: Dispatcher, key: str | None) -> None:
    with server(engine, allow_origin=("https://app.example",), api_key=key) as served:
        wanted = {
            "access_control_request_method": "POST",
            "access_control_request_headers": "authorization,content-type",
        }
        path = "/v1/audio/transcriptions"
        answer = ask(served.port, path, "OPTIONS", origin="https://app.example", **wanted)
        assert answer.status == 200
        assert answer.getheader("access-control-allow-origin") == "https://app.example"
        assert "POST" in (answer.getheader("access-control-allow-methods") or "")
        allowed = (answer.getheader("access-control-allow-headers") or "").lower()
        assert "authorization" in allowed
        other = ask(served.port, path, "OPTIONS", origin="https://evil.example", **wanted)
        assert other.status == 400
        assert other.getheader("access-control-allow-origin") is None
        told = ask(served.port, "/v1/models", origin="https://app.example")
        assert told.status == (200 if key is None else 401)
        assert told.getheader("access-control-allow-origin") == "https://app.example"


def test_with_a_key_pages_may_come_from_anywhere_and_read_nothing_without_cors(
    engine: Dispatcher,
) -> None:
    with server(engine, api_key="secret") as served:
        assert opened(served.port, "/stream", origin="https://any.example") == 401
        with connect(
            f"ws://127.0.0.1:{served.port}/stream",
            origin="https://any.example",  # type: ignore[arg-type]
            subprotocols=["openai-insecure-api-key.secret"],  # type: ignore[list-item]
        ):
            pass
        told = ask(
            served.port,
            "/v1/models",
            host="proxy.example",
            origin="https://any.example",
            authorization="Bearer secret",
        )
        assert told.status == 200
        assert told.getheader("access-control-allow-origin") is None


def test_all_pages_may_be_allowed(engine: Dispatcher) -> None:
    with server(engine, allow_origin=("*",)) as served:
        assert opened(served.port, "/stream", origin="null") == 101
        response = ask(served.port, "/v1/models", origin="https://any.example", host="any.example")
        assert response.status == 200
        assert response.getheader("access-control-allow-origin") == "*"


@pytest.mark.parametrize(
    "text",
    ["app.example", "https://app.example/page", "ftp://a", "https://", "", "https://a:b",
     "https://u@a", "https://*.a.example", "javascript://a"],
)  # fmt: skip
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(NearfutureError, match="no origin"):
        as_origin(text)
