"""Over real sockets: what a user is told when a server cannot be reached, refuses or leaves."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Response

from nearfuture.audio import Audio
from nearfuture.client.connection import Closed, ServerError, websocket
from nearfuture.client.measure import ReferenceRecording, measure
from nearfuture.client.options import MeasureOptions
from nearfuture.client.protocols import protocol_factory
from nearfuture.decoding import Word
from tests.client.served import Socket
from tests.client.standin import Standin

WORDS = [("one", 100.0), ("two", 200.0)]


def served(
    handler: Callable[[ServerConnection], Awaitable[None]],
    use: Callable[[str], Awaitable[Any]],
    **options: Any,
) -> Any:
    async def both() -> Any:
        async with serve(handler, "127.0.0.1", 0, **options) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            return await use(f"ws://127.0.0.1:{port}")

    return asyncio.run(both())


async def failure(url: str, **options: Any) -> str:
    with pytest.raises(ServerError) as caught:
        async with websocket(url, **options) as connection:
            await connection.receive()
    line = str(caught.value)
    assert "\n" not in line
    assert url in line
    return line


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


async def nothing(opened: ServerConnection) -> None:
    await opened.wait_closed()


def test_nobody_there() -> None:
    assert "is the server running?" in asyncio.run(failure(f"ws://127.0.0.1:{free_port()}/"))


def test_no_such_host() -> None:
    assert "no host" in asyncio.run(failure("ws://no.such.host.invalid/"))


@pytest.mark.parametrize("url", ["localhost:2700", "ftp://here/", "ws://", "", "ws://here:port/"])
def test_no_address(url: str) -> None:
    assert "address" in asyncio.run(failure(url))


def test_a_refusal_shows_status_and_reason() -> None:
    def refuse(opened: ServerConnection, request: Any) -> Response:
        response = opened.respond(HTTPStatus.SERVICE_UNAVAILABLE, '{"error": {"message": "full"}}')
        return response

    line = served(nothing, failure, process_request=refuse)
    assert "503 Service Unavailable: full" in line


def test_the_api_key_is_a_bearer_token() -> None:
    def check(opened: ServerConnection, request: Any) -> Response | None:
        if request.headers.get("Authorization") == "Bearer secret":
            return None
        return opened.respond(HTTPStatus.UNAUTHORIZED, "")

    async def both(url: str) -> None:
        assert "`api_key`" in await failure(url)
        async with websocket(url, api_key="secret"):
            pass

    served(nothing, both, process_request=check)


def test_no_websocket() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"220 mail\r\n")
        writer.close()

    async def use() -> str:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await failure(f"ws://127.0.0.1:{port}")

    assert "does not speak websocket" in asyncio.run(use())


def test_who_closed_and_why() -> None:
    async def leave(opened: ServerConnection) -> None:
        await opened.close(4001, "quota")

    async def use(url: str) -> str:
        async with websocket(url) as connection:
            with pytest.raises(Closed) as caught:
                await connection.receive()
            with pytest.raises(Closed):
                await connection.send("late")
        return str(caught.value)

    assert served(leave, use) == "the server closed the connection (4001 quota)"


def test_a_server_that_vanishes() -> None:
    async def vanish(opened: ServerConnection) -> None:
        opened.transport.abort()

    async def use(url: str) -> str:
        async with websocket(url) as connection:
            with pytest.raises(Closed) as caught:
                await connection.receive()
        return str(caught.value)

    assert "vanished" in served(vanish, use)


@pytest.mark.parametrize("protocol", ["vosk", "openai", "nearfuture"])
def test_in_real_time_no_delay_is_shorter_than_the_servers(protocol: Any) -> None:
    """However busy this computer is, it can only add to a delay."""
    standin = Standin(words=WORDS, delay_ms=50, final_ms=80)
    sound = np.full(2400, 0.3, np.float32)
    spoken = [Word(word, end - 50, end, 1.0) for word, end in WORDS]
    rate = 24_000 if protocol == "openai" else 8000
    one = ReferenceRecording.of("a", Audio(sound, 8000), to=rate, words=spoken)

    async def use(url: str) -> Any:
        return await measure(
            [one], lambda: websocket(url), protocol_factory(protocol), MeasureOptions(connections=2)
        )

    async def handle(opened: ServerConnection) -> None:
        await getattr(standin, protocol)(Socket(opened))

    found = served(handle, use)
    assert found.failures == {}
    assert found.word_errors.edits.errors == 0
    figures = found.metrics()
    assert figures["word shown"].p50 >= 50
    assert figures["finalisation"].p50 >= 80
    assert figures["first token"].p50 >= 50 + 50
