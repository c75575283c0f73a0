"""A copy in chromium, from a file server, below a path of its own: the running lab's touches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="needs playwright")

from playwright.sync_api import Browser, expect

from nearfuture.audio import read
from nearfuture.error import NearfutureError
from nearfuture.lab import PAGES, copy
from nearfuture.lab.page import Page
from nearfuture.lab.recordings import PEOPLE
from nearfuture.runtime import load
from tests.lab.served_lab import CHROMIUM, chromium
from tests.lab.test_browser import TOUCHES, slide, tab

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

RECORDED = ("row-convolution", "padding", "quiz")
"""Pages whose answers take little time to record."""

PAGE = {page.name: page for page in PAGES}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def serve(root: Path) -> tuple[ThreadingHTTPServer, str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=root))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


def copied(folder: Path, pages: list[Page], **options: Any) -> Iterator[str]:
    copy.export(folder / "a" / "class" / "lab", pages=pages, **options)
    server, address = serve(folder)
    yield f"{address}/a/class/lab"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from copied(tmp_path_factory.mktemp("site"), [PAGE[name] for name in RECORDED])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.mark.parametrize(("language", "width"), [("en", 1280), ("ko", 390)])
@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_page_answers_to_a_touch(
    site: str, browser: Browser, name: str, language: str, width: int
) -> None:
    with tab(browser, f"{site}/{language}/{name}.html", width=width) as page:
        expect(page.locator(".copied")).to_be_visible()
        TOUCHES[name](page)
        expect(page.locator("#seen")).to_be_visible()
        expect(page.locator("#trouble")).to_be_hidden()


def test_the_entrance_leads_on_and_links_keep_the_language(site: str, browser: Browser) -> None:
    with tab(browser, f"{site}/") as page:
        assert page.url == f"{site}/en/"
        page.locator(".begin a").click()
        page.wait_for_selector("html[data-ready]")
        assert page.url == f"{site}/en/{RECORDED[0]}.html"
        page.goto(f"{site}/en/padding.html?padding=2")
        page.wait_for_selector("html[data-ready]")
        page.locator("[data-language=ko]").click()
        page.wait_for_selector("html[lang=ko][data-ready]")
        assert page.url == f"{site}/ko/padding.html?padding=2"
        assert page.locator("#control-padding").input_value() == "2"


def test_what_was_not_recorded_is_said(site: str, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site}/en/row-convolution.html")
    page.wait_for_selector("html[data-ready]")
    slide(page, "width", 640)
    expect(page.locator("#trouble")).to_be_hidden()
    slide(page, "frames", 4)
    expect(page.locator("#trouble")).to_contain_text("Only the running lab can measure")
    context.close()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        runtime = copy.onnxruntime_web()
    except NearfutureError as error:
        pytest.skip(str(error))
    pages = [page for page in PAGES if page.in_browser]  # and it runs the recogniser
    yield from copied(tmp_path_factory.mktemp("live"), pages, runtime=runtime)


@pytest.mark.slow
@pytest.mark.parametrize(("language", "width"), [("en", 1280), ("ko", 390)])
def test_a_page_computes_in_the_browser(
    live: str, browser: Browser, language: str, width: int
) -> None:
    with tab(browser, f"{live}/{language}/unrolled.html", width=width) as page:
        TOUCHES["unrolled"](page)
        expect(page.locator("#seen")).to_be_visible()
        expect(page.locator("#trouble")).to_be_hidden()


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True])
def test_the_recogniser_in_the_browser_writes_what_the_library_writes(
    live: str, browser: Browser, own: bool
) -> None:
    recording = next(iter(sorted(PEOPLE.glob("*.flac")))) if own else PEOPLE / "george-75423.flac"
    audio = read(recording)
    stream = load("digits", budget_ms=400).stream(audio.rate)
    expected = [*stream.accept(audio.samples), stream.finish()][-1].committed
    with tab(browser, f"{live}/en/say-something.html") as page:
        if own:
            page.locator("#own-file").set_input_files(recording)
        else:
            page.locator(".sources-of-sound button.plain").first.click()
        expect(page.locator(".working")).to_contain_text("ended", timeout=60_000)
        words = page.locator(".said-word .word").all_inner_texts()
        expect(page.locator(".provisional")).to_be_empty()
    assert " ".join(words) == expected
