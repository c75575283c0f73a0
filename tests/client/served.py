"""A stand-in behind a real port, in a thread of its own, so that commands can be run against it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from nearfuture.client.connection import Closed
from tests.client.standin import Wire

Handler = Callable[[Wire], Awaitable[None]]


class Socket:
    """The server's end of a websocket, as a stand-in uses it."""

    def __init__(self, opened: ServerConnection) -> None:
        self._opened = opened

    async def send(self, message: str | bytes) -> None:
        try:
            await self._opened.send(message)
        except ConnectionClosed as closed:
            raise Closed("gone") from closed

    async def receive(self) -> str | bytes:
        try:
            return await self._opened.recv()
        except ConnectionClosed as closed:
            raise Closed("gone") from closed

    def close(self, why: str) -> None:
        self._opened.transport.abort()


@contextlib.contextmanager
def serving(handler: Handler, **options: Any) -> Iterator[str]:
    """Its address."""
    loop, opened = asyncio.new_event_loop(), threading.Event()
    stop = asyncio.Event()
    urls: list[str] = []

    async def handle(connection: ServerConnection) -> None:
        with contextlib.suppress(Closed):
            await handler(Socket(connection))

    async def run() -> None:
        async with serve(handle, "127.0.0.1", 0, **options) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            urls.append(f"ws://127.0.0.1:{port}")
            opened.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    try:
        assert opened.wait(10)
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
