"""The lab's end: Ctrl-C in the middle of a figure."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from urllib.request import urlopen

import pytest

from nearfuture.lab import PAGES, create_app, server
from nearfuture.lab.live import LIMITS
from nearfuture.lab.page import Page
from tests.lab.served_lab import served


@pytest.mark.skipif(os.name == "nt", reason="a signal ends the process there")
def test_a_figure_that_is_cut_off_leaves_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    released, asked = threading.Event(), []

    def slow() -> Iterator[int]:
        yield 1
        released.wait(20)
        yield 2

    page = Page(name=PAGES[0].name, endpoints={"slow": slow}, module=__name__)
    monkeypatch.setattr(server, "create_app", lambda language, live: create_app(pages=[page]))

    def ask(address: str) -> None:
        with urlopen(f"{address}api/{page.name}/slow") as answer:
            asked.append(answer.readline())
            os.kill(os.getpid(), signal.SIGINT)
            asked.append(answer.readline())

    def begin(address: str) -> None:
        threading.Thread(target=ask, args=(address,), daemon=True).start()

    try:
        server.serve(0, on_started=begin)
    finally:
        released.set()
    assert asked[0] == b"1\n"
    assert "Traceback" not in capfd.readouterr().err


def test_sockets_that_ask_for_nothing_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the first of too many; whoever asks is served."""
    monkeypatch.setattr(server, "LIMITS", replace(LIMITS, max_idle_sockets=3, headers_s=1.0))
    with served() as address:
        port = int(address.split(":")[-1])
        silent = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(5)]
        silent[4].sendall(b"GET / HTTP/1.1\r\nHost:")
        with urlopen(f"{address}/assets/icon.svg") as answer:
            assert answer.status == 200
        for each in silent:
            with each, suppress(ConnectionResetError):
                assert each.recv(1) == b""


def test_a_message_has_a_largest_size() -> None:
    assert server.config(create_app()).ws_max_size == LIMITS.max_message_bytes
