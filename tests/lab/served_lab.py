"""The lab on a free port, and Debian's chromium; both for a whole module of tests."""

import asyncio
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from playwright.sync_api import Browser, sync_playwright

from nearfuture.lab import create_app
from nearfuture.lab.live import LIMITS, LiveServer
from nearfuture.lab.server import config
from nearfuture.serving.limits import ServerLimits
from nearfuture.serving.listener import Address, bind

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def served(limits: ServerLimits = LIMITS) -> Iterator[str]:
    """The address of a lab that runs in a thread."""
    (listener,) = bind([Address("127.0.0.1", 0)])
    live = LiveServer(limits)
    server = uvicorn.Server(config(create_app(live=live)))
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve(sockets=[listener.socket])), daemon=True
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        live.close()
        listener.socket.close()


@contextmanager
def chromium(*arguments: str) -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", *arguments]
        )
        yield browser
        browser.close()
