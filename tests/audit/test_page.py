"""The page: well-formed, self-contained, safe, and the picture is the matrix."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

import nearfuture.audit.render.figure
from nearfuture.audit.render import html, runs, save
from nearfuture.audit.render.cells import COLOURS, cells, edge, ticks
from nearfuture.audit.render.explanation import EXPLANATIONS
from nearfuture.audit.report import Culprit, Finding, Kind, Report
from tests.audit.reports import LEAK, PLAIN, REPORTS

XHTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
CLASSES = {"past": 1, "future": 2, "beyond": 3}

each = pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)


def parsed(report: Report) -> ElementTree.Element:
    return ElementTree.fromstring(html(report))


def words(report: Report) -> str:
    """What a reader reads."""
    body = parsed(report).find(f"{XHTML}body")
    assert body is not None
    for parent in list(body.iter()):
        for child in list(parent):
            if child.tag in (f"{XHTML}script", f"{SVG}svg"):
                parent.remove(child)
    return " ".join("".join(body.itertext()).replace("\xa0", " ").split())


def drawn(report: Report) -> NDArray[np.uint8]:
    """The cells that the rectangles of a picture cover."""
    kinds = np.zeros((report.output_frames, report.input_frames), np.uint8)
    for path in parsed(report).iter(f"{SVG}path"):
        kind = CLASSES.get(path.get("class", "").split()[0])
        if kind is None:
            continue
        for run in path.get("d", "").split("z")[:-1]:
            found = re.fullmatch(r"M(\d+) (\d+)h(\d+)v1h-(\d+)", run)
            assert found, run
            start, row, wide, back = map(int, found.groups())
            assert wide == back
            assert not kinds[row, start : start + wide].any()
            kinds[row, start : start + wide] = kind
    return kinds


class Balance(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [name for name, _ in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@each
def test_well_formed_as_xml_and_as_html(report: Report) -> None:
    parsed(report)
    reader = Balance()
    reader.feed(html(report))
    assert reader.open == []
    assert html(report).startswith("<!DOCTYPE html>\n")


@each
def test_nothing_is_loaded_from_anywhere(report: Report) -> None:
    reader = Balance()
    reader.feed(html(report))
    assert not {"src", "href", "xlink:href", "action", "onclick", "onload"} & set(reader.attributes)
    names = {XHTML[1:-1], SVG[1:-1]}
    assert set(re.findall(r"https?://[^\s\"'<]+", html(report))) <= names
    assert "@import" not in html(report)
    assert "url(" not in html(report)


@each
def test_the_picture_is_the_matrix(report: Report) -> None:
    if report.matrix is None or report.matrix.size == 0:
        assert parsed(report).find(f".//{SVG}svg") is None
        return
    assert (drawn(report) == cells(report)).all()


@each
def test_the_rows_that_can_be_read_are_the_matrix(report: Report) -> None:
    rows = parsed(report).find(f".//{XHTML}script[@id='rows']")
    if report.matrix is None or report.matrix.size == 0:
        assert rows is None
        assert parsed(report).find(f".//{XHTML}script") is None
        return
    assert rows is not None
    shown = [[tuple(run) for run in row] for row in json.loads(rows.text or "")]
    assert shown == [runs(row) for row in report.matrix]


@each
def test_a_picture_is_described_in_words(report: Report) -> None:
    for picture in parsed(report).iter(f"{SVG}svg"):
        texts = {child.get("id"): child.text or "" for child in picture if child.get("id")}
        assert picture.get("role") == "img"
        assert set((picture.get("aria-labelledby") or "").split()) == set(texts)
        assert f"each of {report.output_frames} outputs" in texts["how"]


def line(report: Report, name: str) -> list[int] | None:
    """Where a line stands in each row."""
    found = parsed(report).find(f".//{SVG}path[@class='{name}']")
    if found is None:
        return None
    return [int(at) for at in re.findall(r"H(\d+)v1", found.get("d", ""))]


def test_the_diagonal_and_the_limit() -> None:
    strided = REPORTS["stride"]
    assert line(strided, "now") == [4 * u + 1 for u in range(50)]
    assert line(strided, "limit") == [min(4 * u + 20, 200) for u in range(50)]
    assert line(strided, "limit") == edge(strided, 19).tolist()


def test_without_a_limit_there_is_no_line_for_it() -> None:
    assert line(REPORTS["bidirectional"], "limit") is None
    assert "the limit" not in words(REPORTS["bidirectional"])


def test_where_nothing_ahead_is_allowed_one_line_is_enough() -> None:
    assert line(PLAIN, "now") is None
    assert line(PLAIN, "limit") == list(range(1, 201))


HOSTILE = "<script>alert('&\"')</script>\x00\x1b[31m\ud800"


def test_names_are_never_code() -> None:
    culprit = Culprit(where=HOSTILE, what=HOSTILE, operation=HOSTILE, source=HOSTILE)
    report = replace(
        PLAIN,
        model=HOSTILE,
        layout=HOSTILE,
        findings=(
            Finding(kind="future", message=HOSTILE, culprit=culprit, evidence={HOSTILE: HOSTILE}),
        ),
        lookahead_sources=(culprit,),
        checked=(HOSTILE,),
        notes=(HOSTILE,),
    )
    html(report).encode()
    scripts = list(parsed(report).iter(f"{XHTML}script"))
    assert len(scripts) == 2  # the rows and the page's own
    assert "alert" not in "".join(script.text or "" for script in scripts)
    assert words(report).count("<script>alert('&\"')</script>\ufffd\ufffd[31m\ufffd") >= 10


def test_the_script_is_xml_too() -> None:
    script = (files("nearfuture.audit.render") / "page.js").read_text(encoding="utf-8")
    assert not set("<&") & set(script)


def test_every_kind_is_explained() -> None:
    assert set(EXPLANATIONS) == set(get_args(Kind))
    read = words(REPORTS["every kind"])
    for about in EXPLANATIONS.values():
        assert about.meaning in read
        assert about.remedy in read


def test_a_kind_is_explained_once() -> None:
    read = words(replace(PLAIN, findings=(LEAK, LEAK)))
    assert read.count("Output 0 changes with input 199.") == 2
    assert read.count(EXPLANATIONS["normalisation"].meaning) == 1


def test_what_breaks_nothing_says_so() -> None:
    read = words(replace(PLAIN, findings=(replace(LEAK, severity="notice"),)))
    assert "It normalises over time (for information: nothing is broken by it)" in read
    assert read.startswith("nearfuture audit of streaming.py:encoder Holds: it depends on nothing")


def test_findings_have_their_culprit_and_their_evidence() -> None:
    read = words(REPORTS["leak"])
    assert "It enters at encoder.3.norm (GroupNorm, in group_norm at model.py:17)." in read
    assert "before0.117283after-1.5e-07" in read.replace(" ", "")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "causal",
            "depends on nothing that comes after its moment: it can be computed as soon as the",
        ),
        ("causal", "it comes up to 40 ms after the beginning of that moment"),
        (
            "bidirectional",
            "An output of this model depends on the sequence to its end, whatever its length",
        ),
        ("lookahead only", "depends on 3 frames (120 ms) of what comes after its moment"),
        ("stride", "it comes at least 200 ms after the beginning of that moment"),
        ("stride", "At least: beyond that the influence is smaller than floating point resolves."),
        ("not known", "could not be measured"),
        ("forecast", "or known beforehand"),
        ("leak", "Notes streaming: no step function was given"),
        ("leak", "with seed 0; the same model, example and seed give the same report."),
        ("samples", "input sample (each 0.125 ms)"),
        ("samples", "output frame, downwards (each 5 ms)"),
        ("samples", "depends on its own sample and before"),
        ("samples", "end of its own sample"),
        ("samples", "depends on 59 samples (7.375 ms) of what comes after its moment"),
        ("samples", "arrives later than the latency that the bundle declares"),
        ("long", "looks ahead, too far"),
    ],
)
def test_plain_words(name: str, sentence: str) -> None:
    assert sentence in words(REPORTS[name])


@pytest.mark.parametrize("frames", [1, 2, 3, 7, 30, 99, 160, 1000, 2000, 123_456])
def test_axes_have_a_few_round_numbers(frames: int) -> None:
    marks = ticks(frames)
    assert marks[0] == 0
    assert marks[-1] < frames
    assert min(frames, 3) <= len(marks) <= 6


def test_axes_are_in_frames_and_in_time() -> None:
    read = words(REPORTS["stride"])
    assert "output frame, downwards (each 40 ms)" in read
    assert "input frame (each 10 ms)" in read
    axes = [
        ["".join(label.itertext()) for label in axis.iter(f"{XHTML}span")]
        for axis in parsed(REPORTS["stride"]).iter(f"{XHTML}div")
        if axis.get("class") in ("down", "across")
    ]
    assert axes == [
        ["00 ms", "10400 ms", "20800 ms", "301,200 ms", "401,600 ms"],
        ["00 ms", "50500 ms", "1001,000 ms", "1501,500 ms"],
    ]
    assert "50010 s" not in words(REPORTS["long"])
    assert "50020 s" in words(REPORTS["long"])
    assert " ms" not in words(replace(REPORTS["bidirectional"], frame_ms=None))


def test_a_picture_of_too_many_pieces_is_drawn_coarser(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    report = replace(PLAIN, matrix=rng.random((200, 200)) < 0.5, at_most=None)
    monkeypatch.setattr(nearfuture.audit.render.figure, "_MAX_RUNS", 2000)
    coarse = html(report)
    assert "Drawn coarser than measured, 100 × 100 cells of 200 × 200" in words(report)
    assert len(coarse) < 100_000
    rectangles = [
        path.get("d", "")
        for path in parsed(report).iter(f"{SVG}path")
        if path.get("class") in CLASSES
    ]
    heights = {h for d in rectangles for h in re.findall(r"v([\d.]+)h-", d)}
    assert heights == {"2"}
    assert parsed(report).find(f".//{XHTML}script") is None


def test_two_thousand_frames_stay_small() -> None:
    report = replace(PLAIN, input_frames=2000, output_frames=2000, matrix=np.tri(2000, dtype=bool))
    assert len(html(report)) < 150_000


def test_a_single_cell_too_small_to_see_gets_a_rim() -> None:
    assert parsed(REPORTS["long"]).find(f".//{SVG}path[@class='beyond mark']") is not None
    assert parsed(REPORTS["leak"]).find(f".//{SVG}path[@class='beyond mark']") is None


def test_the_reader_starts_where_it_matters() -> None:
    slider = parsed(REPORTS["long"]).find(f".//{XHTML}input")
    assert slider is not None
    assert slider.get("value") == "200"


def test_colours_are_those_of_the_plot() -> None:
    css = (files("nearfuture.audit.render") / "page.css").read_text(encoding="utf-8")
    light = css.partition("prefers-color-scheme")[0]
    for name, kind in CLASSES.items():
        assert f"--{name}: {COLOURS[kind]};" in light


def schemes() -> list[dict[str, str]]:
    """The colours in light, in dark, and on paper."""
    css = (files("nearfuture.audit.render") / "page.css").read_text(encoding="utf-8")
    return [
        {
            name: c if len(c) == 7 else "#" + "".join(2 * x for x in c[1:])
            for name, c in re.findall(r"--(\w+): (#\w+)", block)
        }
        for block in re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    ]


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    a, b = sorted((luminance(one), luminance(other)))
    return (b + 0.05) / (a + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_can_be_read_in_light_and_dark(scheme: int) -> None:
    colours = schemes()[scheme]
    for text in ("ink", "quiet", "good", "bad", "warn"):
        for ground in ("paper", "card"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for fill in CLASSES:
        assert contrast(colours[fill], colours["paper"]) >= 2, fill


def test_a_report_is_saved_as_a_page(tmp_path: Path) -> None:
    save(PLAIN, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == html(PLAIN)


def test_the_limit_is_seen_on_every_colour_and_hides_nothing() -> None:
    order = [path.get("class") for path in parsed(REPORTS["chunked"]).iter(f"{SVG}path")]
    assert order == ["past", "future", "rim", "beyond", "now", "limit"]
    assert line(REPORTS["chunked"], "rim") == line(REPORTS["chunked"], "limit")
    for colours in schemes():
        assert contrast(colours["now"], colours["beyond"]) >= 3
        for fill in ("past", "future"):  # between them and the line is the rim
            rim = contrast(colours["paper"], colours[fill])
            assert max(contrast(colours["now"], colours[fill]), rim) >= 3, fill


def test_an_endless_limit_allows_everything() -> None:
    report = replace(REPORTS["leak"], at_most=math.inf, findings=())
    assert line(report, "limit") == [200] * 200
    assert not (drawn(report) == CLASSES["beyond"]).any()
