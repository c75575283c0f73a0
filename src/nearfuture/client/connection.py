"""A websocket to a server; whatever fails is told in one line, with the address in it."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol as Interface
from typing import TypeAlias
from urllib.parse import urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    InvalidURI,
)

from nearfuture.client.failure import ServerError
from nearfuture.client.protocol import Message, one_line

LARGEST_MESSAGE = 1 << 22  # bytes: a result with many words is far below it
_OPEN_S, _CLOSE_S = 10.0, 2.0
_HINTS = {
    401: " (an --api-key?)",
    403: " (another path, or an --api-key?)",  # what many servers say where there is no websocket
    404: " (another path?)",
}


class Closed(Exception):  # noqa: N818 - an event of every connection, not always an error
    """The other side has closed the connection; the text says how."""


class Connection(Interface):
    """Messages to and from a server, in order."""

    async def send(self, message: Message) -> None:
        """Hand over a message; waits while the server does not keep up. Raises `Closed`."""

    async def receive(self) -> Message:
        """The next message of the server. Raises `Closed`."""


Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Connection]]
"""Opens a connection for as long as a context lasts: `websocket`, or a stand-in of it."""


class _WebSocket:
    """A connection over a websocket."""

    def __init__(self, opened: ClientConnection) -> None:
        self._opened = opened

    async def send(self, message: Message) -> None:
        try:
            await self._opened.send(message)
        except ConnectionClosed as closed:
            raise Closed(_told(closed)) from closed

    async def receive(self) -> Message:
        try:
            return await self._opened.recv()
        except ConnectionClosed as closed:
            raise Closed(_told(closed)) from closed


def websocket_url(url: str) -> str:
    """The address of a server, with `http` taken for `ws`.

    Raises:
        ServerError: for what is no address.

    >>> websocket_url("https://here:8443/stream")
    'wss://here:8443/stream'
    """
    try:
        parts = urlsplit(url)
        scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
        complete = scheme in ("ws", "wss") and parts.hostname and parts.port != 0
    except ValueError:
        complete = False
    if not complete:
        raise ServerError(f"{url!r} is no address of a server: write it as ws://host:port/path")
    return urlunsplit(parts._replace(scheme=scheme))


@asynccontextmanager
async def websocket(url: str, *, api_key: str | None = None) -> AsyncIterator[Connection]:
    """Connect to a server.

    Args:
        url: `ws://…` or `wss://…`; `http` is taken for `ws`.
        api_key: sent as `Authorization: Bearer …`.

    Raises:
        ServerError: where it cannot be reached, refuses, or speaks no websocket.
    """
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        opened = await connect(
            websocket_url(url),
            additional_headers=headers,
            open_timeout=_OPEN_S,
            close_timeout=_CLOSE_S,
            max_size=LARGEST_MESSAGE,
            compression=None,  # of audio it gains nothing and costs both sides time
        )
    except InvalidStatus as error:
        raise ServerError(f"{url} refuses: {_refusal(error)}") from error
    except InvalidURI as error:
        raise ServerError(f"{url} is no address of a server: {error}") from error
    except InvalidHandshake as error:
        raise ServerError(f"{url} does not speak websocket: {error}") from error
    except TimeoutError as error:
        raise ServerError(f"{url} does not answer within {_OPEN_S:g} s") from error
    except ConnectionRefusedError as error:
        raise ServerError(f"{url}: nothing listens there: is the server running?") from error
    except socket.gaierror as error:
        raise ServerError(f"{url}: there is no host {urlsplit(url).hostname!r}") from error
    except ssl.SSLError as error:
        raise ServerError(f"{url}: no secure connection: {error.reason or error}") from error
    except (OSError, ConnectionClosed, EOFError) as error:
        raise ServerError(f"{url} cannot be reached: {error or type(error).__name__}") from error
    try:
        yield _WebSocket(opened)
    finally:
        await opened.close()


def _refusal(error: InvalidStatus) -> str:
    """The status and what the body says of it, in one line."""
    response = error.response
    status = one_line(f"{response.status_code} {response.reason_phrase}")
    body = (response.body or b"").decode(errors="replace")
    try:
        told = json.loads(body)
        while isinstance(told, dict):
            told = next((told[name] for name in ("error", "message", "detail") if name in told), "")
        body = str(told)
    except ValueError:
        pass
    said = one_line(body)
    hint = _HINTS.get(response.status_code, "")
    return f"{status}{f': {said}' if said and said != response.reason_phrase else ''}{hint}"


def _told(closed: ConnectionClosed) -> str:
    """Who closed and why: the close frame, or that there was none."""
    if closed.rcvd is not None and closed.rcvd_then_sent is not False:
        reason = f" {one_line(closed.rcvd.reason)}" if closed.rcvd.reason else ""
        return f"the server closed the connection ({closed.rcvd.code}{reason})"
    if closed.sent is not None:
        reason = f" {closed.sent.reason}" if closed.sent.reason else ""
        return f"the connection was given up ({closed.sent.code}{reason})"
    return "the server vanished without closing the connection"
