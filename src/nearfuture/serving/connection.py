"""A websocket as all protocols here use one: with limits, and an orderly end whatever happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from nearfuture.serving.errors import RequestError
from nearfuture.serving.limits import ServerLimits
from nearfuture.serving.transport import LOST

_CLOSE_S = 5.0


class Disconnected(Exception):  # noqa: N818 - an event of every connection, not always an error
    """The client has left, at whatever point."""


class WebSocketConnection:
    """An accepted websocket under the limits of the server.

    Args:
        websocket: accepted.
        limits: of the server.

    Attributes:
        closed: whether one side has closed it.
        owes_reply: whether the client waits for this server just now; then it may be silent.
    """

    def __init__(self, websocket: WebSocket, limits: ServerLimits) -> None:
        self._websocket, self._limits = websocket, limits
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + limits.max_stream_s
        self._sending = asyncio.Lock()
        self.closed = False
        self.owes_reply: Callable[[], bool] = lambda: False

    @classmethod
    async def accept(
        cls, websocket: WebSocket, limits: ServerLimits, subprotocol: str | None = None
    ) -> WebSocketConnection:
        """Accept a client.

        Raises:
            Disconnected: if it has left already.
        """
        try:
            await websocket.accept(subprotocol)
        except (WebSocketDisconnect, RuntimeError, OSError) as error:
            raise Disconnected from error
        return cls(websocket, limits)

    async def messages(self) -> AsyncIterator[str | bytes]:
        """Yield messages until the client leaves.

        Raises:
            RequestError: when it has been silent, or here, for too long.
        """
        while not self.closed:
            remaining = self._deadline - self._loop.time()
            try:
                async with asyncio.timeout(min(self._limits.idle_s, remaining)):
                    message = await self._websocket.receive()
            except TimeoutError:
                if self.owes_reply() and self._loop.time() < self._deadline:
                    continue
                raise self._overdue() from None
            if message["type"] == "websocket.disconnect":
                self.closed = True
                return
            # A packet may hold thousands of messages, and taking one that is there does not wait:
            # others have their turn in between.
            await asyncio.sleep(0)
            data = message.get("bytes")
            yield message["text"] if data is None else data

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send an object as JSON.

        Raises:
            Disconnected: if the client has left.
            RequestError: if it has taken nothing for too long.
        """
        text = json.dumps(message, ensure_ascii=False)
        text = text.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be sent
        async with self._sending:
            if self.closed:
                raise Disconnected
            try:
                async with asyncio.timeout(self._limits.idle_s):
                    await self._websocket.send_text(text)
            except TimeoutError:
                self.closed = True  # not even a close frame would get through
                raise RequestError(
                    "slow_reader", f"the client has taken nothing for {self._limits.idle_s:g} s"
                ) from None
            except (WebSocketDisconnect, RuntimeError, OSError) as error:
                self.closed = True
                raise Disconnected from error

    async def lost(self) -> None:
        """Wait until the socket is gone, also while no message is awaited.

        Raises:
            Disconnected: then.
        """
        extensions = self._websocket.scope.get("extensions", {})
        await extensions.get(LOST, asyncio.Event()).wait()
        self.closed = True
        raise Disconnected

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close; doing so twice, or after the client has left, does nothing."""
        if self.closed or self._websocket.application_state is not WebSocketState.CONNECTED:
            return
        self.closed = True
        try:
            async with asyncio.timeout(_CLOSE_S):
                # A close frame has room for 123 bytes of reason.
                cut = reason.encode()[:120].decode("utf-8", "ignore")
                await self._websocket.close(code, cut)
        except (TimeoutError, WebSocketDisconnect, RuntimeError, OSError):
            return

    def _overdue(self) -> RequestError:
        if self._loop.time() >= self._deadline:
            return RequestError(
                "too_long",
                f"a connection may last {self._limits.max_stream_s:g} s: open another one",
            )
        return RequestError(
            "idle",
            f"nothing came for {self._limits.idle_s:g} s: send audio, or a ping of the protocol "
            f"now and then",
        )


async def first_of(*tasks: Coroutine[Any, Any, None]) -> None:
    """Run several coroutines until one of them is over, and end the others.

    Raises:
        Exception: whatever that one raised.
    """
    running = [asyncio.create_task(task) for task in tasks]
    try:
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    for task in running:
        if task in done:
            task.result()
