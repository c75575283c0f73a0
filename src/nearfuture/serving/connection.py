"""A websocket as all protocols here use one: with limits, and an orderly end whatever happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from nearfuture.serving.limits import Refused, shown
from nearfuture.serving.service import Service
from nearfuture.serving.transport import LOST

_GOODBYE_S = 5.0


class Gone(Exception):  # noqa: N818 - what happened, not that it failed
    """The client has left, at whatever point."""


class Connection:
    """An accepted websocket under the limits of the server.

    Args:
        websocket: accepted.
        service: whose limits hold.

    Attributes:
        closed: whether one side has said goodbye.
        owing: whether the client is waiting for this server just now; then its silence is patience.
    """

    def __init__(self, websocket: WebSocket, service: Service) -> None:
        self._websocket, self._limits = websocket, service.limits
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + self._limits.most_seconds
        self._sending = asyncio.Lock()
        self.closed = False
        self.owing: Callable[[], bool] = lambda: False

    @classmethod
    async def accept(
        cls, websocket: WebSocket, service: Service, subprotocol: str | None = None
    ) -> Connection:
        """Let a client in.

        Raises:
            Gone: if it has left already.
        """
        try:
            await websocket.accept(subprotocol)
        except (WebSocketDisconnect, RuntimeError, OSError) as error:
            raise Gone from error
        return cls(websocket, service)

    async def messages(self) -> AsyncIterator[str | bytes]:
        """Messages, until the client leaves.

        Raises:
            Refused: when it has been silent, or here, for too long.
        """
        while not self.closed:
            left = self._until - self._loop.time()
            try:
                async with asyncio.timeout(min(self._limits.idle_s, left)):
                    message = await self._websocket.receive()
            except TimeoutError:
                if self.owing() and self._loop.time() < self._until:
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

    async def send(self, message: Mapping[str, Any] | str) -> None:
        """Send a text, or an object as JSON.

        Raises:
            Gone: if the client has left.
            Refused: if it has taken nothing for too long.
        """
        text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
        text = text.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be sent
        async with self._sending:
            if self.closed:
                raise Gone
            try:
                async with asyncio.timeout(self._limits.idle_s):
                    await self._websocket.send_text(text)
            except TimeoutError:
                self.closed = True  # not even a goodbye would get through
                raise Refused(
                    "slow_reader",
                    f"the client has taken nothing for {self._limits.idle_s:g} s",
                ) from None
            except (WebSocketDisconnect, RuntimeError, OSError) as error:
                self.closed = True
                raise Gone from error

    async def lost(self) -> None:
        """Until the socket is gone, which shows here also while nobody asks for messages.

        Raises:
            Gone: then.
        """
        extensions = self._websocket.scope.get("extensions", {})
        await extensions.get(LOST, asyncio.Event()).wait()
        self.closed = True
        raise Gone

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Say goodbye; doing so twice, or to a client that has left, does nothing."""
        if self.closed or self._websocket.application_state is not WebSocketState.CONNECTED:
            return
        self.closed = True
        try:
            async with asyncio.timeout(_GOODBYE_S):
                # A close frame has room for 123 bytes of reason.
                cut = reason.encode()[:120].decode("utf-8", "ignore")
                await self._websocket.close(code, cut)
        except (TimeoutError, WebSocketDisconnect, RuntimeError, OSError):
            return

    def _overdue(self) -> Refused:
        if self._loop.time() >= self._until:
            return Refused(
                "too_long",
                f"a connection may last {self._limits.most_seconds:g} s: open another one",
            )
        return Refused(
            "idle",
            f"nothing came for {self._limits.idle_s:g} s: send audio, or a ping of the protocol "
            f"now and then",
        )


def as_message(text: str) -> dict[str, Any]:
    """A JSON object out of a client's text.

    Raises:
        Refused: for anything else.

    >>> as_message('{"type": "ping"}')
    {'type': 'ping'}
    >>> as_message("[" * 100_000)
    Traceback (most recent call last):
    nearfuture.serving.limits.Refused: a text message is a JSON object, not '[[[[[[[[[[[[[[[[[[[['…
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Refused("bad_message", f"a text message is a JSON object, not {shown(text, 20)}")
    return value


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
