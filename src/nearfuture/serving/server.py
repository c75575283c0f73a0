"""uvicorn, one server for each port, in one event loop; and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import math
import signal
import socket
import ssl
from asyncio import sslproto
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn

from nearfuture.error import NearfutureError
from nearfuture.serving.app import create_app
from nearfuture.serving.listener import BACKLOG, Address, Listener
from nearfuture.serving.service import Service
from nearfuture.serving.transport import UvicornHttpProtocol, UvicornWebSocketProtocol

_PING_S = 20.0
_TLS_PACKET_BYTES = 1 << 14  # by default 256 KiB are decrypted, and then parsed, at once
_ACCEPTED = 64  # at once; then what they have sent is read, before too many more come
_LOG = logging.getLogger("nearfuture.serving")


async def serve(
    service: Service,
    listeners: Sequence[Listener],
    *,
    tls: tuple[Path, Path] | None = None,
    on_started: Callable[[], None] | None = None,
    on_stopping: Callable[[float], None] | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second signal ends it at once.

    Args:
        service: what is served.
        listeners: from `bind`.
        tls: certificate chain and key, as PEM files.
        on_started: called when all ports answer.
        on_stopping: called at the first signal, and at the second, with the seconds that remain.
        stop: does what a signal does, once it is set.

    Raises:
        NearfutureError: for certificates that cannot be used.
    """
    servers = [_Server(_config(service, listener.address, tls), service) for listener in listeners]
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_exception_handler(service))
    stop = asyncio.Event() if stop is None else stop
    hurry = asyncio.Event()

    def on_signal() -> None:
        (hurry if stop.is_set() else stop).set()

    with _signals(loop, on_signal):
        running = [
            asyncio.create_task(server.serve(sockets=[listener.socket]))
            for server, listener in zip(servers, listeners, strict=True)
        ]
        while not all(server.started for server in servers):
            await asyncio.sleep(0.01)
            for task in running:
                if task.done():
                    task.result()
        if on_started is not None:
            on_started()
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait([stopped, *running], return_when=asyncio.FIRST_COMPLETED)
        deadline = loop.time() + service.limits.drain_s - service.closing_s / 2
        if on_stopping is not None:
            on_stopping(service.limits.drain_s)
        draining = asyncio.create_task(service.drain())
        hurrying = asyncio.create_task(hurry.wait())
        await asyncio.wait([draining, hurrying], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        draining.cancel()
        if hurry.is_set() and on_stopping is not None:
            on_stopping(0.0)
        service.cancel_requests()
        for server in servers:
            server.should_exit = True
        closing = asyncio.gather(*running)
        ends: list[asyncio.Future[Any]] = [closing, hurrying]
        remaining = max(0.0, deadline - loop.time())
        await asyncio.wait(ends, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
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
        if config.ssl:
            sslproto.SSLProtocol.max_size = _TLS_PACKET_BYTES

        def protocol() -> UvicornHttpProtocol:
            state = self.lifespan.state
            return UvicornHttpProtocol(
                config,
                self.server_state,
                state,
                idle=self._service.idle,
                lingering=self._service.lingering,
            )

        self.servers = [
            await loop.create_server(
                protocol,
                sock=listening,
                ssl=config.ssl,
                ssl_handshake_timeout=self._service.limits.headers_s if config.ssl else None,
                backlog=_ACCEPTED,
            )
            for listening in sockets
        ]
        for listening in sockets:
            listening.listen(BACKLOG)  # asyncio takes one number for both
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def abort(self) -> None:
        """Drop clients that do not take their last messages."""
        self.force_exit = True
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()


def _config(service: Service, address: Address, tls: tuple[Path, Path] | None) -> uvicorn.Config:
    config = uvicorn.Config(
        create_app(service, root=address.root),
        loop="asyncio",
        http=UvicornHttpProtocol,
        lifespan="off",
        # Pings keep proxies from closing silent connections. There is no deadline for the answer:
        # it comes behind audio that waits to be read, from a client that is slow or far ahead, and
        # closing with 1011 would punish both. Dead clients are found by `idle_s`.
        ws=UvicornWebSocketProtocol,
        ws_ping_interval=_PING_S,
        ws_ping_timeout=None,
        ws_max_size=service.limits.max_message_bytes,
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
            f"the certificate {tls[0]} and the key {tls[1]} cannot be used: {error}",
            parameter="tls_cert",
        ) from error
    return config


def _exception_handler(
    service: Service,
) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """Return what handles the errors that asyncio reports.

    Without descriptors no socket can be accepted, not even that of a client who has a key. asyncio
    says so a thousand times a second, and tries again after one.
    """

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            service.idle.drop_oldest()
            _LOG.warning("no file descriptors are left: raise LimitNOFILE, or --max-connections")
        else:
            loop.default_exception_handler(context)

    return handle


@contextlib.contextmanager
def _signals(loop: asyncio.AbstractEventLoop, on_signal: Callable[[], None]) -> Iterator[None]:
    """Call a function on SIGTERM and SIGINT; where that is not possible, nothing does."""
    added = []
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, on_signal)
            added.append(number)
    try:
        yield
    finally:
        for number in added:
            loop.remove_signal_handler(number)
