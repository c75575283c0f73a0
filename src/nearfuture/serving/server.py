"""uvicorn, one for each port, in one event loop; and what happens when it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import math
import signal
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from nearfuture.error import NearfutureError
from nearfuture.serving.app import create_app
from nearfuture.serving.service import Service
from nearfuture.serving.transport import HttpProtocol, WebSocketProtocol

_PING_S = 20.0
_BACKLOG = 1024
_ACCEPTED = 64  # at once; then what they have sent is read, before too many more come
_LOG = logging.getLogger("nearfuture.serving")


@dataclass(frozen=True)
class Address:
    """Where to listen: `root` names the protocol that has this port to itself, if one has."""

    host: str
    port: int
    root: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65536:
            raise NearfutureError(f"port {self.port} is none: they go from 0 to 65535")


def bound(addresses: Sequence[Address]) -> list[socket.socket]:
    """A listening socket for each address, so that a port in use is known before all else.

    Raises:
        NearfutureError: naming the address that cannot be had.
    """
    sockets: list[socket.socket] = []
    for address in addresses:
        try:
            sockets.append(_listening(address))
        except (OSError, OverflowError) as error:
            for one in sockets:
                one.close()
            reason = getattr(error, "strerror", None) or str(error)
            raise NearfutureError(
                f"cannot listen on {address.host}:{address.port}: {reason.lower()}; choose another "
                f"--port or --host"
            ) from error
    return sockets


async def serve(
    service: Service,
    addresses: Sequence[Address],
    sockets: Sequence[socket.socket],
    *,
    tls: tuple[Path, Path] | None = None,
    started: Callable[[], None] | None = None,
    stopping: Callable[[float], None] | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second signal ends it at once.

    Args:
        service: what is served.
        addresses: one for each socket.
        sockets: from `bound`.
        tls: certificate chain and key, as PEM files.
        started: called when all ports answer.
        stopping: called when it is told to stop, and when it is to hurry, with the seconds it may
            take.
        stop: does what a signal does, once it is set.

    Raises:
        NearfutureError: for certificates that cannot be used.
    """
    servers = [_Server(_config(service, address, tls), service) for address in addresses]
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_complaint(service))
    stop = asyncio.Event() if stop is None else stop
    hurry = asyncio.Event()

    def told() -> None:
        (hurry if stop.is_set() else stop).set()

    with _signals(loop, told):
        running = [
            asyncio.create_task(server.serve(sockets=[one]))
            for server, one in zip(servers, sockets, strict=True)
        ]
        while not all(server.started for server in servers):
            await asyncio.sleep(0.01)
            for task in running:
                if task.done():
                    task.result()
        service.metrics.ready.set_function(lambda: float(service.ready))
        if started is not None:
            started()
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait([stopped, *running], return_when=asyncio.FIRST_COMPLETED)
        until = loop.time() + service.limits.drain_s - service.goodbye_s / 2
        if stopping is not None:
            stopping(service.limits.drain_s)
        draining = asyncio.create_task(service.drain())
        hurrying = asyncio.create_task(hurry.wait())
        await asyncio.wait([draining, hurrying], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        draining.cancel()
        if hurry.is_set() and stopping is not None:
            stopping(0.0)
        service.dismiss()
        for server in servers:
            server.should_exit = True
        closing = asyncio.gather(*running)
        ends: list[asyncio.Future[Any]] = [closing, hurrying]
        left = max(0.0, until - loop.time())
        await asyncio.wait(ends, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        hurrying.cancel()
        for server in servers:
            server.abort()
        await closing
    _LOG.info("stopped")


class _Server(uvicorn.Server):
    """A server that leaves signals to `serve`: there may be several, and streams to drain first."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; uvicorn's own way has a minute of patience for handshakes of TLS."""
        assert sockets is not None
        await self.lifespan.startup()
        loop, config = asyncio.get_running_loop(), self.config

        def protocol() -> HttpProtocol:
            state = self.lifespan.state
            return HttpProtocol(config, self.server_state, state, idle=self._service.idle)

        self.servers = [
            await loop.create_server(
                protocol,
                sock=one,
                ssl=config.ssl,
                ssl_handshake_timeout=self._service.limits.headers_s if config.ssl else None,
                backlog=_ACCEPTED,
            )
            for one in sockets
        ]
        for one in sockets:
            one.listen(_BACKLOG)  # asyncio takes one number for both
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def abort(self) -> None:
        """Wait no longer for clients that do not take what they are told."""
        self.force_exit = True
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()


def _config(service: Service, address: Address, tls: tuple[Path, Path] | None) -> uvicorn.Config:
    config = uvicorn.Config(
        create_app(service, root=address.root),
        loop="asyncio",
        http=HttpProtocol,
        lifespan="off",
        # Pings keep proxies from closing silent connections. There is no deadline for the answer:
        # it comes behind audio that waits to be read, from a client that is slow or far ahead, and
        # closing with 1011 would punish both. Dead clients are found by `idle_s`.
        ws=WebSocketProtocol,
        ws_ping_interval=_PING_S,
        ws_ping_timeout=None,
        ws_max_size=service.limits.most_message_bytes,
        ws_per_message_deflate=False,  # audio does not compress, and bombs do
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=math.ceil(service.limits.headers_s),
        ssl_certfile=None if tls is None else tls[0],
        ssl_keyfile=None if tls is None else tls[1],
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        assert tls is not None
        raise NearfutureError(
            f"the certificate {tls[0]} and the key {tls[1]} cannot be used: {error}"
        ) from error
    return config


def _complaint(service: Service) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """What asyncio has to say, and what to do about it.

    Without descriptors no socket can be accepted, not even that of a client who has a key. asyncio
    says so a thousand times a second, and tries again after one.
    """

    def complain(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            service.idle.drop_oldest()
            _LOG.warning("no file descriptors are left: raise LimitNOFILE, or --max-connections")
        else:
            loop.default_exception_handler(context)

    return complain


def _listening(address: Address) -> socket.socket:
    found = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, where = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listening.bind(where)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    listening.setblocking(False)
    return listening


@contextlib.contextmanager
def _signals(loop: asyncio.AbstractEventLoop, told: Callable[[], None]) -> Iterator[None]:
    """Have SIGTERM and SIGINT tell; where that is not possible, nothing does."""
    added = []
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, told)
            added.append(number)
    try:
        yield
    finally:
        for number in added:
            loop.remove_signal_handler(number)
