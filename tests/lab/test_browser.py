"""Every page in chromium: its figure answers to a touch as the facts say, for anybody."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import onnx
import pytest

pytest.importorskip("playwright", reason="needs playwright")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, expect
from playwright.sync_api import Page as Tab

from nearfuture.budget import recurrent_cost
from nearfuture.lab import PAGES, dependency, forward_alone, graphs, recordings
from nearfuture.lab.pages import after_rnns, concat_or_sum
from nearfuture.runtime import Bundle
from tests.lab.served_lab import CHROMIUM, chromium, served

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def lab() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@contextmanager
def tab(browser: Browser, url: str, *, width: int = 1280, theme: Any = "light") -> Iterator[Tab]:
    """Open a page and wait for its figure; a complaint of the browser fails the test."""
    viewport: Any = {"width": width, "height": 900}
    context = browser.new_context(viewport=viewport, color_scheme=theme, reduced_motion="reduce")
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
    page.on("request", lambda request: _own(request.url, url, complaints))
    page.goto(url)
    page.wait_for_selector("html[data-ready]")
    yield page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "overflow"
    aborted = [each for each in complaints if "/api/" in each and each.startswith("failed")]
    assert [each for each in complaints if each not in aborted] == []
    context.close()


def _own(url: str, page: str, complaints: list[str]) -> None:
    if not url.startswith(("blob:", "data:")) and urlsplit(url).netloc != urlsplit(page).netloc:
        complaints.append(f"elsewhere: {url}")


def slide(page: Tab, control: str, value: int) -> None:
    page.locator(f"#control-{control}").evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input')); }", value
    )


def filled(page: Tab) -> int:
    """How many cells of the matrix are future."""
    return page.locator(".matrix rect.future").count()


def touch_matrix(page: Tab) -> None:
    assert filled(page) == 13 * 3 + 2 + 1  # a band of three
    slide(page, "tau", 5)
    expect(page.locator(".matrix rect.future")).to_have_count(11 * 5 + 4 + 3 + 2 + 1)
    page.locator("input[value=unidirectional]").check(force=True)
    expect(page.locator(".matrix rect.future")).to_have_count(0)
    page.locator("input[value=bidirectional]").check(force=True)
    expect(page.locator(".matrix rect.future")).to_have_count(16 * 15 // 2)
    page.locator("input[value=chunked-attention]").check(force=True)
    expect(page.locator(".matrix rect.future")).to_have_count(4 * (3 + 2 + 1))
    page.locator("input[value=full-attention]").check(force=True)
    expect(page.locator(".matrix rect.future")).to_have_count(16 * 15 // 2)
    page.locator(".matrix").focus()
    page.keyboard.press("ArrowUp")
    assert "output=6" in page.url
    page.locator(".player input").fill("15")
    expect(page.locator(".matrix rect.waiting")).to_have_count(16 * 16)  # nothing before the end


def touch_row_convolution(page: Tab) -> None:
    values = page.locator(".bars").first.locator(".bar-value")
    expect(values.nth(0)).to_have_text("51,200")
    expect(values.nth(1)).to_have_text("131,072,000")
    expect(page.locator(".terms tbody tr")).to_have_count(3 + 1)
    slide(page, "tau", 4)
    expect(page.locator(".terms tbody tr")).to_have_count(5 + 1)
    page.locator(".cell-grid .output").last.click()
    expect(page.locator(".terms tbody tr")).to_have_count(1 + 1)  # the end: no future is left
    budget = page.locator(".bars").last.locator(".bar-value").first
    expect(budget).to_contain_text("930")
    slide(page, "layers", 2)
    expect(budget).to_contain_text("1,690")


def touch_unrolled(page: Tab) -> None:
    expect(page.locator(".facts dd").first).to_contain_text("112")
    expect(page.locator(".facts dd").first).to_contain_text("104")
    assert page.locator(".step").count() == 8
    page.locator(".step").nth(1).click()
    expect(page.locator(".step.chosen")).to_have_count(1)
    expect(page.locator(".close tbody tr")).to_have_count(8)
    assert "frame=2" in page.url
    page.locator(".controls .plain").click()
    expect(page.locator(".readout").first).to_contain_text("aabcdabc")
    page.locator("#control-text").fill("cab!")
    expect(page.locator(".step")).to_have_count(3)
    page.locator(".choice input").nth(2).check(force=True)
    expect(page.locator(".facts dd").first).to_contain_text("336")
    shapes = page.locator(".part-of-figure").last
    expect(shapes.locator(".facts dd").nth(1)).to_contain_text("(2, 3, 8)")
    expect(shapes.locator(".naive")).to_have_count(0)
    shapes.locator("input[value=both]").check(force=True)
    slide(page, "layers", 2)
    expect(shapes.locator(".facts dd").nth(1)).to_contain_text("(2, 3, 16)")
    expect(shapes.locator(".facts dd").nth(2)).to_contain_text("(4, 2, 8)")
    expect(shapes.locator(".naive")).to_have_count(1)
    shapes.locator("input[value=time-first]").check(force=True)
    expect(shapes.locator(".facts dd").nth(1)).to_contain_text("(3, 2, 16)")
    expect(shapes.locator(".facts dd").nth(2)).to_contain_text("(4, 2, 8)")
    shapes.locator("input[value=each]").check(force=True)
    expect(shapes.locator(".taken")).to_have_count(2 * 3)


def touch_concat_or_sum(page: Tab) -> None:
    times = page.locator(".bar-value")
    expect(times).to_have_count(7)
    expect(times.nth(0)).to_have_text("× 2")
    expect(times.nth(6)).to_have_text("× 3")
    page.locator(".choice").nth(0).locator("input").nth(1).check(force=True)  # added
    expect(times.nth(6)).to_have_text("× 2")
    page.locator(".choice").nth(1).locator("input").nth(1).check(force=True)  # shared W
    expect(times.nth(0)).to_have_text("× 1.94")
    expect(times.nth(6)).to_have_text("× 1.5")
    expect(page.locator(".numbers .chosen td").last).to_have_text("× 1.536")
    slide(page, "layers", 2)
    expect(times).to_have_count(2)


def touch_race(page: Tab) -> None:
    lanes = page.locator(".lane")
    expect(page.locator(".lane-track svg")).to_have_count(3)
    expect(lanes.nth(2).locator(".lane-text")).to_have_text("seven five four two three")
    time = page.locator(".clock input")
    time.fill("500")  # of 1000
    written = [lane.locator(".letter:not(.unwritten)").count() for lane in lanes.all()]
    assert written[0] >= written[1] > 0
    assert written[2] == 0
    time.fill("1000")
    expect(page.locator(".letter.unwritten")).to_have_count(0)
    page.locator(".clock button").click()
    page.wait_for_timeout(600)
    page.locator(".clock button").click()
    assert 0 < float(time.input_value()) < 900  # it runs, and not faster than the clock


def touch_quiz(page: Tab) -> None:
    cards = page.locator(".questions > li")
    expect(cards).to_have_count(10)
    promise = page.locator("[data-question=promise]")
    promise.locator("input").nth(1).check()  # 8 × 40
    expect(promise.locator("label.wrong")).to_have_count(1)
    expect(promise.locator(".bar-value").last).to_have_text("375 ms")
    cost = page.locator("[data-question=cost]")
    cost.locator("input").nth(2).check()  # three times
    expect(cost.locator(".bar-value").last).to_contain_text("3")
    expect(page.locator(".score strong").first).to_have_text(re.compile("[12]"))
    page.locator("[data-question=leak] input").first.check()
    expect(page.locator("[data-question=leak] .ring")).to_have_count(2 * 11)


def touch_padding(page: Tab) -> None:
    lanes = page.locator(".read-row")
    expect(lanes).to_have_count(4)  # the last is torch's
    assert lanes.nth(0).locator("rect.future.drift").count() == 6
    expect(page.locator(".readout strong").first).to_contain_text("93%")
    tall = "rects => rects.filter(rect => rect.getAttribute('height') > 0).length"
    assert lanes.nth(0).locator("rect.future.drift").evaluate_all(tall) == 6
    assert lanes.nth(1).locator("rect.future.drift").evaluate_all(tall) == 0  # with lengths
    assert lanes.nth(2).locator("rect.past.drift").evaluate_all(tall) == 8
    expect(page.locator(".readout").last).to_contain_text("10⁻")
    slide(page, "padding", 2)
    expect(lanes.nth(2).locator("rect.past.drift")).to_have_count(3)
    slide(page, "padding", 0)
    expect(lanes.nth(2).locator("rect.past.drift")).to_have_count(1)
    assert lanes.nth(0).locator("rect.future.drift").evaluate_all(tall) == 0


def touch_evidence(page: Tab) -> None:
    made_up, heard, read = (page.locator(".part-of-figure").nth(at) for at in range(3))
    readout = made_up.locator(".readout")
    expect(made_up.locator(".frame.read")).to_have_count(1)
    expect(readout).to_contain_text("88%")
    slide(page, "tau", 2)
    expect(readout).to_contain_text("95%")  # wrong, more firmly
    slide(page, "tau", 3)
    expect(readout).to_contain_text("0.2%")  # turned
    expect(made_up.locator(".frame.read")).to_have_count(4)
    made_up.locator("input[value=scattered]").check(force=True)
    slide(page, "tau", 1)
    expect(readout).to_contain_text("88%")
    expect(heard.locator(".readout")).to_contain_text("89%")
    slide(page, "heard", 2)
    expect(heard.locator(".readout")).to_contain_text("24%")
    slide(page, "onset", 70)
    expect(heard.locator(".readout")).to_contain_text("/t/")
    heard.locator("button").click()  # it sounds
    read.locator("input[value=bank]").check(force=True)
    expect(read.locator(".arriving .target")).to_have_text("bank")
    read.locator(".player input").fill("1")
    expect(read.locator(".arriving .coming")).to_have_count(5)
    expect(read.locator("circle.point.past")).to_have_count(2)
    read.locator("#control-sentence").fill("no such word")
    expect(read.locator(".readout")).to_contain_text("bank")
    read.locator("#control-sentence").fill("the bank was gone because of the canoe")
    expect(read.locator(".arriving .target + span")).to_have_text("was")
    expect(read.locator(".readout strong").last).to_contain_text("6")


def touch_price(page: Tab) -> None:
    expect(page.locator(".sentence")).to_have_count(14)
    kept = page.locator(".price-chart ~ .readout").first
    expect(kept).to_contain_text("5.89")
    wrong = page.locator(".by-head .wrong")
    expect(wrong).to_have_count(5)
    slide(page, "budget_ms", 400)
    expect(kept).to_contain_text("1.02")
    expect(wrong).to_have_count(2)
    expect(page.locator(".word-said.changed")).not_to_have_count(0)
    assert page.locator(".by-twin .wrong").count() == 2
    page.locator("input[value=thirteen-heads]").check(force=True)
    expect(page.locator(".price-chart .point")).to_have_count(13 + 1)
    page.locator("input[value=families]").check(force=True)
    expect(page.locator(".price-chart .point")).to_have_count(2 * 3 + 1)
    slide(page, "budget_ms", 100)
    expect(page.locator(".price-chart .kept")).to_have_count(0)  # no head of those keeps it


def touch_as_you_will_stream(page: Tab) -> None:
    def words(lane: str) -> Locator:
        return page.locator(f".spectrum-lane.{lane} .lane-text")

    expect(page.locator(".spectrum canvas")).to_have_count(3)
    expect(words("twin")).to_have_text("seven five four two three")
    expect(words("alone")).to_have_text("eeen ve our o e")
    facts = page.locator(".spectrum-lane.trained .lane-facts strong")
    expect(facts.nth(1)).to_contain_text("80 ms")
    page.locator("input[value='4']").check(force=True)
    expect(facts.nth(1)).not_to_contain_text("80 ms")
    for recording in (6, 5, 4, 3, 2):  # quicker than the models listen
        slide(page, "recording", recording)
    expect(words("trained")).to_have_text("zero nine two five six")
    expect(page.locator("#trouble")).to_be_hidden()
    expect(page.locator(".bar-value").nth(1)).to_contain_text("98.8")


def touch_after_rnns(page: Tab) -> None:
    def place(at: int) -> list[float]:
        point = page.locator(".family-point circle").nth(at)
        return [float(point.get_attribute(name) or "nan") for name in ("cx", "cy")]

    expect(page.locator(".family-point")).to_have_count(7)
    expect(page.locator(".matrix rect.future")).to_have_count(4 * (3 + 2 + 1))
    page.locator("input[value=causal-attention]").check(force=True)
    expect(page.locator(".matrix rect.future")).to_have_count(0)
    blstm, rnn = place(2), place(0)
    slide(page, "seconds", 30)
    expect(page.locator(".family-point circle").nth(2)).not_to_have_attribute("cx", str(blstm[0]))
    assert place(2)[0] > blstm[0]  # it waits longer
    assert place(0)[0] == rnn[0]
    page.locator("input[value=row-convolution]").check(force=True)
    slide(page, "layers", 2)
    expect(page.locator(".family-text .readout strong").first).to_contain_text("6")
    expect(page.locator(".system")).to_have_count(5)


def touch_say_something(page: Tab) -> None:
    play, stop = (page.locator(".sources-of-sound button").nth(at) for at in (1, 2))
    play.click()
    expect(page.locator(".said-word .word").first).to_have_text("seven")
    expect(page.locator(".said-word small").first).to_contain_text("ms")
    assert page.locator(".said-word .ruler .future").count() >= 1
    stop.click()
    expect(stop).to_be_disabled()
    expect(page.locator(".facts dd").first).to_contain_text("375")


def touch_the_leak(page: Tab) -> None:
    audits, losses, writing = (page.locator(".part-of-figure").nth(at) for at in range(3))
    expect(audits.locator("figure")).to_have_count(4)
    expect(audits.locator("span.said-forbidden")).to_have_count(1)
    rows = losses.locator("tbody tr")
    expect(rows.nth(1).locator("td").first).to_have_text(re.compile(r"0\.0\d"))
    expect(rows.nth(0).locator("td").first).to_have_text(re.compile(r"1\.\d\d"))
    losses.locator(".player input").fill("5")
    expect(losses.locator(".player-said")).to_contain_text("25")
    train = losses.locator(".live .plain")
    train.click()
    expect(losses.locator(".live .readout")).to_contain_text("300", timeout=90_000)
    expect(losses.locator(".live .readout")).to_contain_text("t + 1")
    name = train.inner_text()
    train.click()
    expect(train).not_to_have_text(name)
    writing.locator(".plain").first.click()
    expect(writing.locator(".blanks .written")).to_have_count(2)
    expect(writing.locator(".lane > .written").last).to_have_text(re.compile(".{60}", re.DOTALL))
    writing.locator(".plain").last.click()
    expect(writing.locator(".lane > .written").last).to_have_text(re.compile(".{60}", re.DOTALL))
    assert "seed=1" in page.url


TOUCHES: dict[str, Callable[[Tab], None]] = {
    "the-race": touch_race,
    "who-looks-at-whom": touch_matrix,
    "unrolled": touch_unrolled,
    "evidence": touch_evidence,
    "the-leak": touch_the_leak,
    "concat-or-sum": touch_concat_or_sum,
    "row-convolution": touch_row_convolution,
    "padding": touch_padding,
    "the-price": touch_price,
    "as-you-will-stream": touch_as_you_will_stream,
    "after-rnns": touch_after_rnns,
    "say-something": touch_say_something,
    "quiz": touch_quiz,
}
"""A line for each page: what its test touches, and what must change."""


def test_every_page_is_touched() -> None:
    assert set(TOUCHES) == {page.name for page in PAGES}


def shut_out(page: Tab) -> list[tuple[str, list[Any]]]:
    """What axe finds that keeps somebody out, and where."""
    hidden = page.evaluate("document.getElementById('seen')?.hidden")
    page.evaluate("document.getElementById('seen')?.removeAttribute('hidden')")
    found = Axe().run(page).response["violations"]
    if hidden:
        page.evaluate("document.getElementById('seen').hidden = true")
    grave = [each for each in found if each["impact"] in ("serious", "critical")]
    return [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in grave]


# Each width, language and theme once; the slow tests have other combinations.
@pytest.mark.parametrize(
    ("width", "language", "theme"),
    [
        *((1280, "en", "light"), (390, "ko", "dark")),
        *(
            pytest.param(*other, marks=pytest.mark.slow)
            for other in ((390, "en", "light"), (1280, "ko", "dark"))
        ),
    ],
)
@pytest.mark.parametrize("name", TOUCHES)
def test_a_page_keeps_nobody_out_and_answers_to_a_touch(
    lab: str, browser: Browser, name: str, language: str, width: int, theme: str
) -> None:
    with tab(browser, f"{lab}/{name}?lang={language}", width=width, theme=theme) as page:
        assert shut_out(page) == []
        expect(page.locator("#seen")).to_be_hidden()
        TOUCHES[name](page)
        expect(page.locator("#seen")).to_be_visible()
        expect(page.locator("#trouble")).to_be_hidden()


@pytest.mark.parametrize(("width", "language"), [(1280, "ko"), (390, "en")])
def test_the_front_page_leads_to_every_page(
    lab: str, browser: Browser, width: int, language: str
) -> None:
    with tab(browser, f"{lab}/?lang={language}", width=width) as page:
        assert page.locator(".shapes svg").count() == 3
        assert page.locator(".contents a").count() == len(PAGES)
        page.locator(".begin a").click()
        page.wait_for_selector("html[data-ready]")
        assert page.url == f"{lab}/{PAGES[0].name}?lang={language}"


@pytest.mark.parametrize(
    ("theme", "width", "language"), [("light", 1280, "en"), ("dark", 390, "ko")]
)
def test_the_front_page_keeps_nobody_out(
    lab: str, browser: Browser, theme: str, width: int, language: str
) -> None:
    with tab(browser, f"{lab}/?lang={language}", width=width, theme=theme) as page:
        assert shut_out(page) == []


def test_a_page_is_as_its_address_says_and_keeps_it_in_the_other_language(
    lab: str, browser: Browser
) -> None:
    url = f"{lab}/who-looks-at-whom?lang=en&tau=6&layers=2&output=3&input=5"
    with tab(browser, url) as page:
        assert page.locator("#control-tau").input_value() == "6"
        slide(page, "tau", 2)
        expect(page.locator(".facts dd").first).to_contain_text("4 frames")
        page.locator("[data-language=ko]").click()
        page.wait_for_selector("html[lang=ko][data-ready]")
        assert page.locator("#control-tau").input_value() == "2"
        expect(page.locator(".facts dd").first).to_contain_text("4프레임")


def test_layers_can_be_typed(lab: str, browser: Browser) -> None:
    pytest.importorskip("torch")
    with tab(browser, f"{lab}/who-looks-at-whom?lang=en") as page:
        page.locator("#own-layers").fill("lookahead 1, gru, attention 3 1")
        page.keyboard.press("Enter")
        expect(page.locator(".matrix rect.future")).to_have_count(14 * 2 + 1)
        expect(page.locator(".facts dd").first).to_contain_text("2 frames")
        page.get_by_role("button", name="Back to the models above").click()
        expect(page.locator(".matrix rect.future")).to_have_count(13 * 3 + 2 + 1)
        assert "own=" not in page.url


@pytest.mark.parametrize(("language", "said"), [("en", "goes from 0 to 6"), ("ko", "0에서 6까지")])
def test_a_refusal_is_said_in_the_language_of_the_page(
    lab: str, browser: Browser, language: str, said: str
) -> None:
    page = browser.new_page()
    page.goto(f"{lab}/who-looks-at-whom?lang={language}&tau=9")
    expect(page.locator("#trouble")).to_contain_text(said)
    latin = re.sub(r"tau", "", page.locator("#trouble").inner_text())
    assert (language == "en") == bool(re.search("[a-z]", latin))
    page.close()


def test_terms_themes_and_code_can_be_used(lab: str, browser: Browser) -> None:
    with tab(browser, f"{lab}/row-convolution?lang=en") as page:
        page.locator(".lead .term").first.click()
        expect(page.locator("#term")).to_contain_text("Bidirectional")
        page.locator("#open-glossary").click()
        expect(page.locator("#glossary")).to_be_visible()
        page.keyboard.press("Escape")
        page.locator("#theme").click()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.reload()
        page.wait_for_selector("html[data-ready]")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@contextmanager
def planted(folder: Path, name: str, change: Callable[[onnx.ModelProto], None]) -> Iterator[None]:
    """A lab in which one graph is wrong, and declares what it declared before."""
    for file in graphs.FOLDER.glob("*.onnx"):
        (folder / file.name).write_bytes(file.read_bytes())
    model = onnx.load(folder / f"{name}.onnx")
    change(model)
    onnx.save(model, folder / f"{name}.onnx")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graphs, "FOLDER", folder)
        for cache in (graphs.open_graph, dependency._alone):
            cache.cache_clear()
        yield
    for cache in (graphs.open_graph, dependency._alone):
        cache.cache_clear()


def look_one_frame_too_far(model: onnx.ModelProto) -> None:
    other = onnx.load(graphs.FOLDER / "row-convolution-4.onnx")
    model.graph.CopyFrom(other.graph)


def test_a_lookahead_that_is_off_by_one_is_seen(lab: str, browser: Browser, tmp_path: Path) -> None:
    with (
        planted(tmp_path, "row-convolution-3", look_one_frame_too_far),
        tab(browser, f"{lab}/who-looks-at-whom?lang=en&tau=3") as page,
    ):
        assert page.locator(".matrix rect.forbidden").count() == 12  # one more for each output
        expect(page.locator(".facts dd").first).to_contain_text("4 frames")
        expect(page.locator(".facts dd").first).to_contain_text("not what the layers declare")


def test_a_wrong_weight_is_seen(lab: str, browser: Browser, tmp_path: Path) -> None:
    def change(model: onnx.ModelProto) -> None:
        for each in model.graph.initializer:
            weights = onnx.numpy_helper.to_array(each)
            if weights.size == 4 * 3:
                each.CopyFrom(onnx.numpy_helper.from_array(weights + 1, each.name))

    def weight(page: Tab) -> str:
        return page.locator(".terms tbody td").first.inner_text()

    with tab(browser, f"{lab}/row-convolution?lang=en") as page:
        right = weight(page)
    with (
        planted(tmp_path, "row-convolution-2", change),
        tab(browser, f"{lab}/row-convolution?lang=en") as page,
    ):
        assert float(weight(page)) == pytest.approx(float(right) + 1)


def test_a_mask_that_is_forgotten_is_seen(lab: str, browser: Browser, tmp_path: Path) -> None:
    def forget(model: onnx.ModelProto) -> None:
        model.graph.CopyFrom(onnx.load(graphs.FOLDER / "full-attention-1.onnx").graph)

    after_rnns.measured.cache_clear()
    with (
        planted(tmp_path, "causal-attention-1", forget),
        tab(browser, f"{lab}/after-rnns?lang=en&family=causal-attention") as page,
    ):
        expect(page.locator(".matrix rect.forbidden")).to_have_count(16 * 15 // 2)
        expect(page.locator(".family-text .readout")).to_contain_text("not what the layers declare")
        expect(page.locator(".family-point .forbidden")).to_have_count(3)  # one more
    after_rnns.measured.cache_clear()


def test_a_backward_direction_that_is_left_in_is_seen(
    lab: str, browser: Browser, tmp_path: Path
) -> None:
    model = onnx.load(forward_alone.GRAPH, load_external_data=False)
    both = onnx.load(Bundle.open(recordings.TWIN).folder / "offline.onnx", load_external_data=False)
    kept = [output for output in model.graph.output if output.name == "log_mel"]
    identity = next(node for node in model.graph.node if node.output[0] == "log_mel")
    both.graph.node.append(identity)
    both.graph.output.extend(kept)
    (tmp_path / "wrong.onnx").write_bytes(both.SerializeToString())
    caches = (forward_alone._session, forward_alone.heard_forwards)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forward_alone, "GRAPH", tmp_path / "wrong.onnx")
        for cache in caches:
            cache.cache_clear()
        with tab(browser, f"{lab}/as-you-will-stream?lang=en") as page:
            text = page.locator(".spectrum-lane.alone .lane-text")
            expect(text).to_have_text("seven five four two three")
    for cache in caches:
        cache.cache_clear()


def test_heads_that_are_mixed_up_are_seen(lab: str, browser: Browser) -> None:
    right = recordings.log_probs_of_heads

    def mixed(recording: recordings.Recording) -> dict[int, recordings.LogProbs]:
        heads = right(recording)
        return dict(zip(heads, reversed(list(heads.values())), strict=True))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recordings, "log_probs_of_heads", mixed)
        with tab(browser, f"{lab}/the-price?lang=en") as page:
            expect(page.locator(".by-head .wrong")).to_have_count(2)  # with τ = 0, not 5


def read_the_padding(model: onnx.ModelProto) -> None:
    """Every row of a batch is as long as the longest."""
    for node in model.graph.node:
        node.input[:] = ["read" if each == "lengths" else each for each in node.input]
    make = onnx.helper.make_node
    for at, node in enumerate(
        [
            make("Sub", ["lengths", "lengths"], ["nothing"]),
            make("ReduceMax", ["lengths"], ["most"], keepdims=1),
            make("Add", ["nothing", "most"], ["read"]),
        ]
    ):
        model.graph.node.insert(at, node)


def test_padding_that_is_read_is_seen(lab: str, browser: Browser, tmp_path: Path) -> None:
    tall = "rects => rects.filter(rect => rect.getAttribute('height') > 0).length"
    with (
        planted(tmp_path, "bidirectional-concat", read_the_padding),
        tab(browser, f"{lab}/padding?lang=en") as page,
    ):
        exact = page.locator(".read-row").nth(1)
        assert exact.locator("rect.future.drift").evaluate_all(tall) == 6  # none otherwise


def test_a_sum_in_place_of_a_concatenation_is_seen(
    lab: str, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def added(*sizes: Any, **options: Any) -> Any:
        return recurrent_cost(
            *sizes, **({**options, "merge": "sum"} if "merge" in options else options)
        )

    monkeypatch.setattr(concat_or_sum, "recurrent_cost", added)
    with tab(browser, f"{lab}/concat-or-sum?lang=en") as page:
        expect(page.locator(".bar-value").nth(6)).to_have_text("× 2")  # 3 otherwise


def test_the_address_of_a_page_has_only_what_was_changed(lab: str, browser: Browser) -> None:
    with tab(browser, f"{lab}/who-looks-at-whom?lang=en") as page:
        slide(page, "tau", 4)
        expect(page.locator(".facts dd").first).to_contain_text("4 frames")
        slide(page, "tau", 3)
        assert re.search(r"\?lang=en$", page.url)
