"""The lab on a port of this machine, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from nearfuture.lab.app import create_app
from nearfuture.lab.live import LIMITS, LiveServer
from nearfuture.lab.texts import Language
from nearfuture.serving.idle import IdleSockets
from nearfuture.serving.listener import Address, Listener, bind
from nearfuture.serving.transport import UvicornHttpProtocol, UvicornWebSocketProtocol

HOST = "127.0.0.1"


def serve(
    port: int, *, language: Language | None = None, on_started: Callable[[str], None] | None = None
) -> None:
    """Serve the lab to this machine alone, until SIGINT or SIGTERM.

    Args:
        port: to listen on; 0 is any that is free.
        language: of a page whose address names none.
        on_started: called with the address of the front page, once it answers.

    Raises:
        NearfutureError: for a port that is in use.
    """
    (listener,) = bind([Address(HOST, port)])
    try:
        asyncio.run(_run(listener, language, on_started))
    finally:
        listener.socket.close()


class _Server(uvicorn.Server):
    """A server that ends with its process, without a traceback."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError, RuntimeError):  # Windows; not main thread
                loop.add_signal_handler(each, self._stop)
        yield

    def _stop(self) -> None:
        self.force_exit = self.should_exit  # a second signal waits for nobody
        self.should_exit = True
        # A figure that is cut off is no error.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)


def config(app: ASGIApp) -> uvicorn.Config:
    """Return how uvicorn serves the lab: by the protocols of nearfuture's own server.

    So sockets that send no request, or take no answer, are closed, and messages have a limit.
    """
    protocol: Any = partial(
        UvicornHttpProtocol,
        idle=IdleSockets(LIMITS.max_idle_sockets, LIMITS.headers_s),
        lingering=IdleSockets(LIMITS.max_idle_sockets, LIMITS.headers_s),
    )
    return uvicorn.Config(
        app,
        http=protocol,
        log_level="warning",
        lifespan="off",
        timeout_graceful_shutdown=1,
        ws=UvicornWebSocketProtocol,
        ws_max_size=LIMITS.max_message_bytes,
        ws_ping_timeout=None,  # the answer comes behind sound that waits to be read
        ws_per_message_deflate=False,
    )


async def _run(
    listener: Listener, language: Language | None, on_started: Callable[[str], None] | None
) -> None:
    live = LiveServer()
    app = create_app(language=language, live=live)
    server = _Server(config(app))
    running = asyncio.create_task(server.serve(sockets=[listener.socket]))
    while not server.started and not running.done():
        await asyncio.sleep(0.01)
    warming = asyncio.create_task(app.state.warm_up())
    if on_started is not None and not running.done():
        on_started(f"http://{HOST}:{listener.socket.getsockname()[1]}/")
    try:
        await running
    finally:
        warming.cancel()
        live.close()
