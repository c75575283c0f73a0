"""A websocket to a server; every failure is one line that names the address."""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    InvalidURI,
)

from nearfuture.error import NearfutureError

Message: TypeAlias = str | bytes
"""One message of a websocket: text or binary."""

MAX_MESSAGE_BYTES = 1 << 22  # a result with many words is far below it
_OPEN_S, _CLOSE_S = 10.0, 2.0
_HINTS = {
    401: " (an `api_key`?)",
    403: " (another path, or an `api_key`?)",  # what many servers say where there is no websocket
    404: " (another path?)",
}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # lone surrogates cannot be printed


class ServerError(NearfutureError):
    """A server cannot be reached, refuses, breaks its protocol or leaves too early."""

    code = "unavailable"


class Closed(Exception):  # noqa: N818 - an event of every connection, not always an error
    """The other side has closed the connection; the text states how."""


class Connection(Protocol):
    """Messages to and from a server, in order."""

    async def send(self, message: Message) -> None:
        """Hand over a message; waits while the server does not keep up. Raises `Closed`."""

    async def receive(self) -> Message:
        """Return the next message of the server. Raises `Closed`."""


Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Connection]]
"""Opens a connection for as long as a context lasts: `websocket`, or a stand-in for it."""


class _WebSocket:
    """A connection over a websocket."""

    def __init__(self, opened: ClientConnection) -> None:
        self._opened = opened

    async def send(self, message: Message) -> None:
        try:
            await self._opened.send(message)
        except ConnectionClosed as error:
            raise Closed(_close_reason(error)) from error

    async def receive(self) -> Message:
        try:
            return await self._opened.recv()
        except ConnectionClosed as error:
            raise Closed(_close_reason(error)) from error


def websocket_url(url: str) -> str:
    """Return the address of a server, with `http` taken for `ws`.

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
        raise ServerError(
            f"{url!r} is no address of a server: write it as ws://host:port/path",
            code="invalid",
            parameter="url",
        )
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
            max_size=MAX_MESSAGE_BYTES,
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


def printable(text: str) -> str:
    r"""Replace control characters by spaces: what is shown in a terminal must not command it.

    >>> printable("one\x1b[2Jtwo")
    'one [2Jtwo'
    """
    return _CONTROL.sub(" ", text)


def one_line(text: object) -> str:
    r"""Return text of a server for an error: one printable line of at most 200 characters.

    >>> one_line("a\x1b[2J\n b")
    'a [2J b'
    """
    return " ".join(printable(str(text)).split())[:200]


def _refusal(error: InvalidStatus) -> str:
    """Return the status and the reason in the body, in one line."""
    response = error.response
    status = one_line(f"{response.status_code} {response.reason_phrase}")
    body = (response.body or b"").decode(errors="replace")
    try:
        value = json.loads(body)
        while isinstance(value, dict):
            names = (name for name in ("error", "message", "detail") if name in value)
            value = value.get(next(names, ""), "")
        body = str(value)
    except ValueError:
        pass
    reason = one_line(body)
    hint = _HINTS.get(response.status_code, "")
    return f"{status}{f': {reason}' if reason and reason != response.reason_phrase else ''}{hint}"


def _close_reason(error: ConnectionClosed) -> str:
    """Return who closed and why: the close frame, or that there was none."""
    if error.rcvd is not None and error.rcvd_then_sent is not False:
        reason = f" {one_line(error.rcvd.reason)}" if error.rcvd.reason else ""
        return f"the server closed the connection ({error.rcvd.code}{reason})"
    if error.sent is not None:
        reason = f" {error.sent.reason}" if error.sent.reason else ""
        return f"the connection was given up ({error.sent.code}{reason})"
    return "the server vanished without closing the connection"
