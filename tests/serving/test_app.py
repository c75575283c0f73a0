"""The doors of the server: keys, sizes, health, metrics, and ports of their own."""

import asyncio
import json
import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import Route
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import nearfuture
from nearfuture.error import NearfutureError
from nearfuture.runtime import Dispatcher, Model
from nearfuture.serving import server
from nearfuture.serving.app import create_app
from nearfuture.serving.errors import RequestError
from nearfuture.serving.limits import ServerLimits
from nearfuture.serving.listener import Address, bind
from nearfuture.serving.service import Service
from nearfuture.serving.settings import ServerSettings
from tests.errors import refuses
from tests.serving.served import (
    SAMPLES,
    Served,
    hello,
    no_complaints,
    running,
    said,
    send,
    soon,
    stream,
    transcript,
)
from tests.serving.served import until_the_end as rest

SPEECH = said("flite-slt-720")
UPLOAD = (
    b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
    b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
)
"""The begin of one."""
KEY = ServerSettings(api_key="se+cret", limits=ServerLimits(drain_s=0.1))


def test_it_says_what_it_serves(served: Served) -> None:
    status, page = served.get("/")
    about = json.loads(page)
    assert status == 200
    assert about["models"]["digits"]["budgets_ms"] == [55.0, 215.0, 375.0, 815.0]
    assert about["protocols"]["stream"] == ["/stream"]
    assert json.loads(served.get("/health")[1]) == {"status": "alive"}
    ready = {"status": "ready", "streams": 0, "uploads": {"running": 0, "waiting": 0}}
    assert json.loads(served.get("/ready")[1]) == ready
    assert served.get("/nowhere")[0] == 404


def test_a_full_server_is_not_ready(engine: Dispatcher) -> None:
    with running(engine, max_streams=1) as served:
        with served.connect() as client:
            hello(client)
            status, page = served.get("/ready")
            assert (status, json.loads(page)["error"]["code"]) == (503, "busy")
            assert served.get("/health")[0] == 200
            assert "nearfuture_ready 0.0" in served.get("/metrics")[1].decode()
            send(client, "finish")
            rest(client)
        assert served.get("/ready")[0] == 200


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Bearer ", "Basic se+cret", "se+cret"])
def test_without_the_key_nothing_but_health(engine: Dispatcher, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    with running(engine, settings=KEY) as served:
        for path in ("/", "/metrics", "/v1/audio/transcriptions", "/nowhere"):
            assert served.get(path, **headers)[0] == 401
        assert served.get("/health", **headers)[0] == 200
        assert served.get("/ready", **headers)[0] == 200
        with pytest.raises(InvalidStatus) as refused, served.connect(additional_headers=headers):
            pass
        assert refused.value.response.status_code == 401
        assert json.loads(refused.value.response.body)["error"]["code"] == "unauthorized"
        assert (
            'code="unauthorized"} 5.0'
            in served.get("/metrics", Authorization="Bearer se+cret")[1].decode()
        )


def test_with_the_key_all_is_well(engine: Dispatcher) -> None:
    with running(engine, settings=KEY) as served:
        bearer = {"Authorization": "bearer se+cret"}
        assert served.get("/", **bearer)[0] == 200
        with served.connect(additional_headers=bearer) as client:
            assert hello(client)["type"] == "ready"
        offered = ["nearfuture.stream.v1", "openai-insecure-api-key.se+cret"]
        with served.connect(subprotocols=offered) as client:
            assert hello(client)["type"] == "ready"


@pytest.mark.parametrize(
    ("path", "offered", "chosen"),
    [
        ("/stream", ["nearfuture.stream.v1"], "nearfuture.stream.v1"),
        ("/stream", ["nearfuture.stream.v9"], None),
        ("/v1/realtime", ["openai-beta.realtime-v1", "realtime"], "realtime"),
        ("/vosk", ["any"], "any"),
        ("/vosk", [], None),
    ],
)
def test_a_browser_gets_a_subprotocol_other_than_its_key(
    engine: Dispatcher, path: str, offered: list[str], chosen: str | None
) -> None:
    key = "openai-insecure-api-key.se+cret"
    with running(engine, settings=KEY) as served:
        for names in ([key, *offered], [*offered, key]):
            with served.connect(path, subprotocols=names) as client:
                assert client.subprotocol == chosen


@pytest.mark.parametrize("path", ["/stream", "/vosk", "/nowhere"])
def test_a_wrong_key_is_no_error_of_the_server(engine: Dispatcher, path: str) -> None:
    with running(engine, settings=KEY) as served, no_complaints():
        for _ in range(3):
            with pytest.raises(InvalidStatus, match="401"), served.connect(path):
                pass


def test_connections_are_counted_over_all_ports(engine: Dispatcher) -> None:
    with running(engine, roots=["stream", "vosk"], max_connections=2) as served:
        urls = [f"ws://127.0.0.1:{port}" for port in served.ports]
        with connect(urls[1]), connect(urls[2]):
            for url in (f"{urls[0]}/stream", *urls[1:]):
                with pytest.raises(InvalidStatus, match="503"), connect(url):
                    pass
        assert soon(lambda: served.service.connections == 0)
        with connect(urls[1]):
            pass


def test_a_body_that_stands_still_is_given_up(engine: Dispatcher) -> None:
    with running(engine, idle_s=0.3) as served:
        with socket.create_connection(("127.0.0.1", served.port)) as raw:
            raw.sendall(UPLOAD)
            raw.settimeout(30)
            answer = b""
            while data := raw.recv(10_000):
                answer += data
        assert b" 408 " in answer[:20]
        assert b'"idle"' in answer
        assert soon(lambda: served.service.connections == 0)


def test_a_whole_body_may_be_processed_for_longer_than_a_client_may_be_silent(
    engine: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = Service.session

    async def slowly(self: Service, **options: Any) -> Any:
        await asyncio.sleep(1.0)
        return await begun(self, **options)

    monkeypatch.setattr(Service, "session", slowly)
    file = SAMPLES / "flite-slt-720.flac"
    with running(engine, idle_s=0.3) as served, file.open("rb") as upload:
        answer = httpx.post(
            f"http://127.0.0.1:{served.port}/v1/audio/transcriptions",
            data={"model": "digits"},
            files={"file": upload},
            timeout=60,
        )
    assert answer.status_code == 200


def test_a_second_signal_waits_for_nobody(
    engine: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither for streams nor for an upload that is on its way."""
    told: list[Callable[[], None]] = []

    @contextmanager
    def signals(_: object, tell: Callable[[], None]) -> Iterator[None]:
        told.append(tell)
        yield

    monkeypatch.setattr(server, "_signals", signals)
    with socket.socket() as raw, running(engine, drain_s=600.0) as served:
        raw.connect(("127.0.0.1", served.port))
        raw.sendall(UPLOAD)
        with served.connect() as client:
            hello(client)
            assert soon(lambda: served.service.connections == 2)
            for _ in range(2):
                served.loop.call_soon_threadsafe(told[0])
            assert soon(lambda: not served.loop.is_running(), 30)


def test_the_key_is_not_shown() -> None:
    assert "se+cret" not in repr(KEY)


def test_a_body_that_is_too_large_is_refused(engine: Dispatcher) -> None:
    with running(engine, max_file_bytes=1000) as served:
        url = f"http://127.0.0.1:{served.port}/v1/audio/transcriptions"
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url, data=bytes(100_000), timeout=30)
        with refused.value as answer:
            assert answer.code == 413


def test_metrics_count_what_happened(engine: Dispatcher) -> None:
    with running(engine) as served:
        stream(served, SPEECH)
        with served.connect() as client:
            hello(client)
            page = served.get("/metrics")[1].decode()
            assert 'nearfuture_streams{model="digits",protocol="stream"} 1.0' in page
        page = served.get("/metrics")[1].decode()
    assert 'nearfuture_streams_opened_total{model="digits",protocol="stream"} 2.0' in page
    assert 'nearfuture_streams_ended_total{complete="true",model="digits"} 1.0' in page
    assert f'nearfuture_audio_seconds_total{{model="digits"}} {len(SPEECH) / 8000:.3f}'[:-1] in page
    assert 'nearfuture_finalisation_seconds_count{model="digits"} 1.0' in page
    assert 'nearfuture_compute_seconds{model="digits",quantile="0.98"}' in page
    assert 'nearfuture_batch_size_bucket{le="+Inf",model="digits"}' in page
    assert "nearfuture_ready 1.0" in page


def test_requests_are_counted_by_route_and_status(engine: Dispatcher) -> None:
    """Whatever paths, methods and statuses clients send, there are few of them."""
    with running(engine, settings=KEY, roots=["stream"]) as served:
        bearer = {"Authorization": "Bearer se+cret"}
        for path in ("/", "/health", "/v1/models/digits", "/v1/models/x", "/nowhere", "/%0a%1b"):
            served.get(path, **bearer)
        for number in range(30):
            served.get(f"/{number}")
        with served.connect(additional_headers=bearer) as client:
            hello(client)
        with connect(f"ws://127.0.0.1:{served.ports[1]}/7", additional_headers=bearer):
            pass
        with pytest.raises(InvalidStatus), served.connect("/8", additional_headers=bearer):
            pass
        page = served.get("/metrics", **bearer)[1].decode()
    counted = {
        (found[1], found[2]): float(found[3])
        for found in re.finditer(r'requests_total{route="(.*)",status="(\d+)"} (\S+)', page)
    }
    assert counted == {
        ("/", "200"): 1,
        ("/health", "200"): 1,
        ("/v1/models/{name:path}", "200"): 1,
        ("/v1/models/{name:path}", "404"): 1,
        ("none", "404"): 2,
        ("none", "401"): 30,
        ("/stream", "101"): 1,
        ("/{path:path}", "101"): 1,
        ("none", "403"): 1,
    }


def test_metrics_tell_what_runs_and_what_is_allowed(engine: Dispatcher) -> None:
    with (
        running(engine, max_connections=7, idle_s=5.5) as served,
        served.connect(),
        served.connect(),
    ):
        page = served.get("/metrics")[1].decode()
    assert "nearfuture_connections 3.0" in page  # this request is one
    assert "nearfuture_idle_sockets 0.0" in page
    assert 'nearfuture_limit{name="max_connections"} 7.0' in page
    assert 'nearfuture_limit{name="idle_seconds"} 5.5' in page
    assert f'version="{nearfuture.__version__}"' in page
    for name in ("nearfuture_build_info", "process_open_fds", "process_resident_memory_bytes"):
        assert f"\n{name}" in page


def test_the_description_is_of_the_routes_there_are(served: Served) -> None:
    told = json.loads(served.get("/openapi.json")[1])
    there = {
        (re.sub(r":\w+}", "}", route.path), method.lower())
        for route in create_app(served.service).routes
        if isinstance(route, Route)
        for method in route.methods or ()
        if method != "HEAD"
    }
    assert there == {
        (path, method)
        for path, item in told["paths"].items()
        for method in item
        if method in ("get", "post")
    }
    assert told["paths"]["/health"]["get"]["security"] == []
    form = told["paths"]["/v1/audio/transcriptions"]["post"]["requestBody"]["content"]
    assert form["multipart/form-data"]["schema"]["properties"]["response_format"]["enum"]


def test_the_page_needs_no_other_host_and_no_script(served: Served) -> None:
    url = f"http://127.0.0.1:{served.port}/docs"
    answer = httpx.get(url, timeout=30)
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert "transcriptions" in answer.text
    assert not re.search(r"https?://|<script|<link|<img|src=", answer.text)


def test_a_protocol_may_have_a_port_of_its_own(engine: Dispatcher, offline: Model) -> None:
    with running(engine, roots=["stream"]) as served:
        for path in ("", "/", "/stream", "/any/path"):
            with connect(f"ws://127.0.0.1:{served.ports[1]}{path}", compression=None) as client:
                hello(client, budget_ms=400)
                client.send(SPEECH.tobytes())
                send(client, "finish")
                assert transcript(rest(client)) == offline.transcribe(SPEECH).text
        other = Served(served.service, served.ports[1:], served.loop, served.stop)
        assert other.get("/health")[0] == 200


def test_a_port_in_use_is_named() -> None:
    taken = bind([Address("127.0.0.1", 0)])
    port = taken[0].socket.getsockname()[1]
    with pytest.raises(NearfutureError, match=rf"127\.0\.0\.1:{port}: address already in use"):
        bind([Address("127.0.0.1", 0), Address("127.0.0.1", port)])
    taken[0].socket.close()


def test_tls(engine: Dispatcher, offline: Model) -> None:
    folder = Path(__file__).parent / "tls"
    tls = (folder / "certificate.pem", folder / "key.pem")
    trust = ssl.create_default_context(cafile=str(tls[0]))
    with (
        running(engine, tls=tls) as served,
        connect(f"wss://localhost:{served.port}/stream", ssl=trust) as client,
    ):
        hello(client, budget_ms=400)
        client.send(SPEECH.tobytes())
        send(client, "finish")
        assert transcript(rest(client)) == offline.transcribe(SPEECH).text


@pytest.mark.parametrize("tls", [("no", "no"), (__file__, __file__)])
def test_certificates_that_cannot_be_used(engine: Dispatcher, tls: tuple[str, str]) -> None:
    files = (Path(tls[0]), Path(tls[1]))
    with pytest.raises(NearfutureError, match="cannot be used"), running(engine, tls=files):
        pass


@pytest.mark.parametrize("name", ["max_streams", "max_stream_s", "max_message_bytes", "idle_s"])
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_a_limit_that_is_none(name: str, value: float) -> None:
    with refuses("out_of_range", name, value):
        ServerLimits(**{name: value})  # type: ignore[arg-type]


def test_less_audio_that_may_wait_than_can_be_computed() -> None:
    with refuses("out_of_range", "max_waiting_s", 0.2, "from 1"):
        ServerLimits(max_waiting_s=0.2)


def test_a_model_that_is_not_served(served: Served) -> None:
    with pytest.raises(RequestError, match="there is no model 'x' here: digits"):
        served.service.dispatcher("x")
