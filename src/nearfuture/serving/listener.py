"""Addresses and the sockets that listen on them."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from nearfuture.error import NearfutureError

BACKLOG = 1024
"""Connections that wait to be accepted."""


@dataclass(frozen=True)
class Address:
    """An address to listen on; `root` names the protocol that has this port to itself, if any."""

    host: str
    port: int
    root: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65536:
            raise NearfutureError(
                f"`port` {self.port} does not exist: ports go from 0 to 65535",
                code="out_of_range",
                parameter="port",
            )


@dataclass(frozen=True)
class Listener:
    """An address with the socket that listens on it."""

    address: Address
    socket: socket.socket


def bind(addresses: Sequence[Address]) -> list[Listener]:
    """Listen on each address, so that a port in use is known before all else.

    Raises:
        NearfutureError: naming the address that cannot be bound.
    """
    listeners: list[Listener] = []
    for address in addresses:
        try:
            listeners.append(Listener(address, _listen(address)))
        except (OSError, OverflowError) as error:
            for listener in listeners:
                listener.socket.close()
            reason = getattr(error, "strerror", None) or str(error)
            raise NearfutureError(
                f"cannot listen on {address.host}:{address.port}: {reason.lower()}; choose another "
                f"`port` or `host`",
                code="unavailable",
                parameter="port",
            ) from error
    return listeners


def _listen(address: Address) -> socket.socket:
    candidates = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, where = candidates[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listening.bind(where)
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    listening.setblocking(False)
    return listening
