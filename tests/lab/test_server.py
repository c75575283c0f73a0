"""The lab's end: Ctrl-C in the middle of a figure."""

import os
import signal
import threading
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from nearfuture.lab import PAGES, create_app, server
from nearfuture.lab.page import Page


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
