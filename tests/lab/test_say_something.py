"""Captions in chromium, by its own microphone: what the command line writes for the same sound."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="needs playwright")

import numpy as np
import soundfile
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from nearfuture.cli import app
from nearfuture.lab.live import LIMITS
from nearfuture.lab.recording import as_wav
from nearfuture.lab.recordings import PEOPLE
from nearfuture.runtime import StreamConfig
from nearfuture.serving.protocols import stream
from tests.lab.served_lab import CHROMIUM, chromium, served

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

expect.set_options(timeout=30_000)

SPOKEN = PEOPLE / "theo-48950.flac"
WATCHED = """
window.sent = [];
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (data) {
  if (this.url.endsWith("/stream")) {
    if (data instanceof Float32Array) sent.push(...data);
    else if (data.includes("hello")) window.rate = JSON.parse(data).rate;
  }
  return send.call(this, data);
};
const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = async (wanted) => (window.heard = await ask(wanted));
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium with a microphone into which somebody speaks digits, once."""
    wav = tmp_path_factory.mktemp("spoken") / "theo.wav"
    samples, rate = soundfile.read(SPOKEN)
    soundfile.write(wav, samples, rate)
    with chromium(
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-audio-capture={wav}%noloop",
    ) as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Tab]:
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script(WATCHED)
    yield page
    context.close()


def opened(page: Tab, lab: str, query: str = "") -> Tab:
    page.goto(f"{lab}/say-something?lang=en{query}")
    page.wait_for_selector("html[data-ready]")
    return page


def press(page: Tab, name: str) -> None:
    page.get_by_role("button", name=name).click()


def written(page: Tab) -> str:
    """The settled words."""
    return " ".join(page.locator(".said-word .word").all_inner_texts())


def ended(page: Tab) -> str:
    expect(page.locator(".working")).to_contain_text("ended")
    return written(page)


def fact(page: Tab, number: int) -> float:
    return float(page.locator(".facts dd").nth(number).inner_text().split()[0])


def command_line(path: Path, budget: int, capsys: Any) -> str:
    capsys.readouterr()
    app(["transcribe", str(path), "--budget", str(budget)], result_action="return_value")
    return str(capsys.readouterr().out).strip()


def test_the_microphone_writes_what_the_command_line_does(
    page: Tab, lab: str, capsys: Any, tmp_path: Path
) -> None:
    """For the samples that the browser took, whatever it has lost on a busy machine."""
    opened(page, lab)
    press(page, "Speak")
    while not page.evaluate("window.rate && sent.length > 4.5 * rate"):
        page.wait_for_timeout(100)
    assert page.evaluate("heard.getTracks().map((track) => track.readyState)") == ["live"]
    press(page, "Stop")
    assert page.evaluate("heard.getTracks().map((track) => track.readyState)") == ["ended"]
    text = ended(page)
    samples = np.array(page.evaluate("sent"), np.float32)
    rate = page.evaluate("rate")  # what the sound of the machine has: 48 or 44.1 kHz
    (tmp_path / "heard.wav").write_bytes(as_wav(samples, rate).content)
    assert text == command_line(tmp_path / "heard.wav", 400, capsys)
    assert {"four", "eight", "nine", "five", "zero"} & set(text.split())
    expect(page.locator(".provisional")).to_have_text("")
    assert fact(page, 0) == 380  # the resampler takes 5 ms of it
    assert 0 < fact(page, 1) <= 380
    assert fact(page, 2) >= fact(page, 1)


def test_the_dial_changes_what_a_recording_becomes(page: Tab, lab: str, capsys: Any) -> None:
    """Two budgets write two texts, each that of the command line for this file."""
    heard = PEOPLE / "jackson-09256.flac"
    texts = []
    for budget in (400, 60):
        opened(page, lab, f"&recording=2&budget={budget}")
        press(page, "Play the recording")
        texts.append(ended(page))
        assert texts[-1] == command_line(heard, budget, capsys)
        assert fact(page, 1) <= fact(page, 0) <= budget
    assert texts[0] != texts[1]
    lights = "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)"
    for strip in (".scope-bands", ".scope-letters"):
        assert page.locator(strip).evaluate(f"{lights}.data.filter((x, at) => at % 4 == 3 && x)")


def test_a_file_of_ones_own_is_played(page: Tab, lab: str, capsys: Any) -> None:
    opened(page, lab)
    own = PEOPLE / "nicolas-66327.flac"
    page.locator("#own-file").set_input_files(own)
    assert ended(page) == command_line(own, 400, capsys)
    page.locator("#own-file").set_input_files(
        {"name": "own.wav", "mimeType": "audio/wav", "buffer": b"no sound"}
    )
    expect(page.locator("#trouble")).to_contain_text("cannot be read as sound")


@pytest.mark.parametrize(
    ("language", "start", "said"),
    [
        ("en", "Play the recording", "40 ms are too few"),
        ("ko", "녹음 재생", "40 ms로는 부족합니다"),
    ],
)
def test_a_budget_that_nobody_can_keep_is_refused(
    page: Tab, lab: str, language: str, start: str, said: str
) -> None:
    page.goto(f"{lab}/say-something?lang={language}&budget=40")
    page.wait_for_selector("html[data-ready]")
    press(page, start)
    expect(page.locator("#trouble")).to_contain_text(said)
    expect(page.locator("#trouble")).to_contain_text("55 ms")
    expect(page.locator("#seen")).to_be_hidden()  # nothing has been seen


def test_a_page_without_a_secure_context_says_why(page: Tab, lab: str) -> None:
    page.add_init_script("Object.defineProperty(window, 'isSecureContext', { value: false })")
    opened(page, lab)
    press(page, "Speak")
    expect(page.locator("#trouble")).to_contain_text("http://127.0.0.1")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NotAllowedError", "Allow it for this page"),
        ("NotFoundError", "no microphone"),
        ("NotReadableError", "another program"),
        ("AbortError", "could not be opened"),
    ],
)
def test_a_microphone_that_cannot_be_had_is_explained(
    page: Tab, lab: str, name: str, said: str
) -> None:
    fault = f"() => Promise.reject(new DOMException('', '{name}'))"
    page.add_init_script(f"navigator.mediaDevices.getUserMedia = {fault}")
    opened(page, lab)
    press(page, "Speak")
    expect(page.locator("#trouble")).to_contain_text(said)
    expect(page.get_by_role("button", name="Stop")).to_be_disabled()


def test_a_server_at_its_limit_says_so(browser: Browser) -> None:
    limits = dataclasses.replace(LIMITS, max_streams=1)
    with served(limits) as lab:
        context = browser.new_context()
        first, second = (opened(context.new_page(), lab) for _ in range(2))
        press(first, "Speak")
        expect(first.locator(".working")).to_contain_text("Listening")
        press(second, "Play the recording")
        expect(second.locator("#trouble")).to_contain_text("All places are taken")
        press(first, "Stop")
        ended(first)
        press(second, "Play the recording")
        expect(second.locator(".working")).to_contain_text("Listening")
        context.close()


def test_text_that_is_settled_too_early_is_seen(
    page: Tab, lab: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that sends provisional text as committed writes words that do not stay."""
    message = stream._update_message

    def hasty(update: Any, session: Any) -> dict[str, Any]:
        sent = message(update, session)
        hurried = sent["provisional"].split()
        at = update.audio_ms
        sent["words"] += [
            {"text": text, "start_ms": at + n, "end_ms": at, "confidence": 1.0}
            for n, text in enumerate(hurried)
        ]
        return sent

    monkeypatch.setattr(stream, "_update_message", hasty)
    opened(page, lab, "&recording=2")
    press(page, "Play the recording")
    assert ended(page) != command_line(PEOPLE / "jackson-09256.flac", 400, capsys)


def test_a_budget_that_is_ignored_is_seen(
    page: Tab, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that waits for another lookahead than it has promised."""
    choose = StreamConfig.choose

    def ignoring(*arguments: Any, **options: Any) -> StreamConfig:
        return dataclasses.replace(choose(*arguments, **options), lookahead=19)

    monkeypatch.setattr(StreamConfig, "choose", ignoring)
    opened(page, lab, "&recording=2")
    press(page, "Play the recording")
    ended(page)
    assert fact(page, 0) == 375
    assert fact(page, 1) > 375
    expect(page.locator(".facts")).to_contain_text("longer than promised")
    assert page.locator(".ruler .forbidden").count() >= 4


def test_the_race_hears_a_recording_of_ones_own(page: Tab, lab: str, capsys: Any) -> None:
    own = PEOPLE / "nicolas-66327.flac"
    page.goto(f"{lab}/the-race?lang=en&seconds=1")
    page.wait_for_selector("html[data-ready]")
    page.locator("#own-file").set_input_files(own)
    expect(page.locator(".lane-facts").nth(2)).to_contain_text("Nobody has written down")
    lanes = page.locator(".lane-text")
    assert lanes.nth(0).inner_text() == command_line(own, 60, capsys)
    assert lanes.nth(1).inner_text() == command_line(own, 400, capsys)
    assert page.locator(".clock audio").get_attribute("src").startswith("blob:")  # type: ignore[union-attr]
    assert page.locator(".letter.wrong").count() == 0
    press(page, "The bundled recordings")
    expect(lanes.nth(2)).to_have_text("seven")
    page.locator("#own-file").set_input_files(
        {"name": "own.wav", "mimeType": "audio/wav", "buffer": b"no sound"}
    )
    expect(page.locator("#trouble")).to_contain_text("cannot be read as sound")


@pytest.mark.slow  # page 12 listens to the same microphone, and the race to a file
def test_the_race_hears_the_microphone(page: Tab, lab: str) -> None:
    page.goto(f"{lab}/the-race?lang=en&seconds=1")
    page.wait_for_selector("html[data-ready]")
    press(page, "Record yourself")
    page.wait_for_timeout(2500)
    press(page, "Stop recording")
    assert page.evaluate("heard.getTracks().map((track) => track.readyState)") == ["ended"]
    expect(page.locator(".lane-facts").nth(2)).to_contain_text("Nobody has written down")
    assert {"four", "eight", "nine"} & set(page.locator(".lane-text").nth(2).inner_text().split())
    promises = page.locator(".lane .promise")
    expect(promises.nth(0)).to_contain_text("60 ms")  # 5 ms of it for the resampler
    expect(promises.nth(1)).to_contain_text("380 ms")
