"""Virtual time: an event loop whose clock jumps to the next timer instead of waiting for it.

Delays are then exact, whatever else the computer does, and hours pass in no time. Connections are
pairs of queues, since a socket would live in real time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from nearfuture.client.connection import Closed

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("nothing will ever happen again: something waits for nothing")
        self.now_s += max(0.0, timeout)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run it in virtual time."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(coroutine)


class Peer:
    """One end of a connection in memory; `room` messages may wait to be received."""

    def __init__(self, room: int = 1_000_000) -> None:
        self.room = room
        self.inbox: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self.other: Peer | None = None
        self.why = ""

    async def send(self, message: str | bytes) -> None:
        assert self.other is not None
        if self.why:
            raise Closed(self.why)
        while self.other.inbox.qsize() >= self.other.room:
            await asyncio.sleep(0.001)
            if self.why:
                raise Closed(self.why)
        self.other.inbox.put_nowait(message)

    async def receive(self) -> str | bytes:
        message = await self.inbox.get()
        if message is None:
            self.inbox.put_nowait(None)
            raise Closed(self.why)
        return message

    def close(self, why: str) -> None:
        assert self.other is not None
        for end in (self, self.other):
            if not end.why:
                end.why = why
                end.inbox.put_nowait(None)


Handler = Callable[[Peer], Awaitable[None]]


def connector(handler: Handler, *, connect_s: float = 0.0, room: int = 1_000_000) -> Any:
    """What opens connections to a server that `handler` is, each after `connect_s`."""

    @asynccontextmanager
    async def connect() -> AsyncIterator[Peer]:
        await asyncio.sleep(connect_s)
        client, server = Peer(), Peer(room)
        client.other, server.other = server, client

        async def serve() -> None:
            try:
                await handler(server)
                server.close("the server closed the connection (1000)")
            except Closed:
                pass

        task = asyncio.create_task(serve())
        try:
            yield client
        finally:
            client.close("the client left")
            if not task.done():
                task.cancel()
            # What a server asserts about its client fails the test.
            for error in await asyncio.gather(task, return_exceptions=True):
                if isinstance(error, Exception):
                    raise error

    return connect
