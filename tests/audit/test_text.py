"""A report on a terminal: the verdict first, every number, and nothing wider than 80 columns."""

import math
from dataclasses import replace

import numpy as np
import pytest

from nearfuture.audit.render import text
from nearfuture.audit.render.cells import (
    BEYOND,
    FUTURE,
    NOTHING,
    PAST,
    allowed,
    cells,
    edge,
    pooled,
)
from nearfuture.audit.report import Report, allowed_frames
from tests.audit.reports import LEAK, PLAIN, REPORTS


def section(report: Report, title: str) -> str:
    """The lines under a title, joined."""
    blocks = [block.split("\n", 1) for block in text(report).split("\n\n")]
    return " ".join(next(block[1] for block in blocks if block[0] == title).split())


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_eighty_columns_and_no_empty_end_of_line(report: Report) -> None:
    lines = text(report).split("\n")
    assert max(map(len, lines)) <= 80
    assert lines == [line.rstrip() for line in lines]


@pytest.mark.parametrize(
    ("report", "verdict"),
    [
        (
            PLAIN,
            "holds: it depends on nothing after its own frame; allowed: 0 frames of lookahead",
        ),
        (REPORTS["lookahead only"], "holds: it looks ahead 3 frames (120 ms); allowed: 3 frames"),
        (
            REPORTS["bidirectional"],
            "it looks ahead to the end of the sequence, whatever its length; no lim",
        ),
        (REPORTS["not known"], "holds: its lookahead is not known; no limit was set"),
        (
            REPORTS["upsampling"],
            "holds: it looks ahead 1 frame (40 ms); allowed: a latency of 80 ms",
        ),
        (
            REPORTS["stride"],
            "holds: it looks ahead at least 19 frames (190 ms); allowed: 19 frames",
        ),
        (REPORTS["leak"], "broken: it normalises over time"),
        (REPORTS["samples"], "broken: it needs longer than it declares"),
        (
            replace(REPORTS["samples"], findings=(), lookahead=0),
            "holds: it depends on nothing after its own sample; allowed: a latency of 6 ms",
        ),
        (replace(PLAIN, findings=(LEAK, LEAK)), "broken: it normalises over time"),
        (
            replace(PLAIN, findings=(replace(LEAK, severity="notice"),)),
            "holds: it depends on nothing",
        ),
    ],
)
def test_the_verdict_comes_first(report: Report, verdict: str) -> None:
    assert verdict in " ".join(text(report).split("\n\n")[0].split())


def test_every_broken_kind_is_in_the_verdict() -> None:
    verdict = " ".join(text(REPORTS["every kind"]).split("\n\n")[0].split())
    assert verdict == (
        "broken: it depends on the future, normalises over time, depends on the padding, mixes the "
        "rows of a batch, is not deterministic, streams differently from one call, leaks labels, "
        "reads features before time"
    )


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (PLAIN, "lookahead 0 frames"),
        (PLAIN, "lookback as far back as the example goes"),
        (PLAIN, "latency 40 ms in the worst case"),
        (PLAIN, "allowed 0 frames of lookahead"),
        (REPORTS["leak"], "lookahead the rest of the sequence, whatever its length"),
        (REPORTS["leak"], "latency until the sequence has ended"),
        (
            REPORTS["stride"],
            "at least beyond that the influence is smaller than floating point resolves",
        ),
        (REPORTS["stride"], "lookahead at least 19 frames (190 ms) allowed"),
        (REPORTS["stride"], "latency at least 200 ms in the worst case"),
        (REPORTS["chunked"], "allowed 8 frames (320 ms) of lookahead and a latency of 500 ms"),
        (REPORTS["bidirectional"], "allowed no limit was set"),
        (replace(PLAIN, frame_ms=None), "latency not known, as the duration of a frame is not"),
        (REPORTS["not known"], "lookahead not known"),
        (REPORTS["forecast"], "30 frames in, 30 out; the first 12 are known beforehand"),
        (REPORTS["stride"], "200 frames in, 50 out, one for every 4"),
        (REPORTS["upsampling"], "7 frames in, 14 out, one for every 1/2"),
        (
            replace(PLAIN, seed=7),
            "drawn with seed 7; the same model, example and seed give the same report.",
        ),
        (REPORTS["samples"], "240 samples in, 6 out, one for every 40"),
        (REPORTS["samples"], "lookahead 59 samples (7.375 ms)"),
        (REPORTS["samples"], "latency 7.5 ms in the worst case"),
        (REPORTS["samples"], "░ depends on its own sample and before"),
        (
            replace(REPORTS["samples"], frame_ms=None),
            "latency not known, as the duration of a sample is not",
        ),
    ],
)
def test_every_number_is_shown(report: Report, line: str) -> None:
    assert line in " ".join(text(report).split())


def test_a_causal_model_has_a_lower_bound_of_the_lookback_only() -> None:
    faint = " ".join(text(replace(PLAIN, lookback_is_lower_bound=True, lookback=90)).split())
    assert "lookahead 0 frames allowed" in faint
    assert "lookback at least 90 frames (3,600 ms) latency" in faint
    assert "latency 40 ms in the worst case" in faint


def test_the_culprit_is_named_first_with_the_evidence_below() -> None:
    assert section(REPORTS["leak"], "Findings") == (
        "✗ encoder.3.norm (GroupNorm, in group_norm at model.py:17): output 0 changes with "
        "input 199 before 0.117283; after -1.5e-07"
    )


def test_what_breaks_nothing_has_another_mark() -> None:
    found = section(replace(PLAIN, findings=(replace(LEAK, severity="notice"),)), "Findings")
    assert found.startswith("! encoder.3.norm")


def test_evidence_that_is_empty_is_not_shown() -> None:
    finding = replace(LEAK, evidence={"left_behind": [], "sizes": {"a": 1.0}, "rows": (1, 2.5)})
    found = section(replace(PLAIN, findings=(finding,)), "Findings")
    assert found.endswith("input 199 sizes a: 1; rows 1, 2.5")


def test_places_that_look_ahead_are_listed_and_many_are_counted() -> None:
    assert section(REPORTS["leak"], "Operations that look ahead") == (
        "• encoder.3.norm (GroupNorm, in group_norm at model.py:17): the whole sequence "
        "• encoder.0.conv (conv1d at model.py:12): 2 frames (80 ms)"
    )
    many = replace(REPORTS["leak"], lookahead_sources=REPORTS["leak"].lookahead_sources * 20)
    assert section(many, "Operations that look ahead").endswith("• and 30 more")


def test_what_was_checked_and_what_was_not() -> None:
    assert section(REPORTS["leak"], "Checked").count("•") == len(PLAIN.checked)
    assert section(REPORTS["leak"], "Notes") == "• streaming: no step function was given"
    assert "Notes" not in text(PLAIN)


def test_the_picture_is_about_as_high_as_wide_and_labelled() -> None:
    lines = text(REPORTS["leak"]).split("\n")
    rows = [line for line in lines if "│" in line and "output" not in line]
    assert len(rows) == 20
    assert rows[0] == "        0│" + "█" * 40
    assert rows[10] == "      100│" + "░" * 20 + "█" * 20
    assert rows[-1].startswith("      190│░")
    assert "          0                                    199  input" in lines


def test_small_pictures_have_wider_cells() -> None:
    rows = [line for line in text(REPORTS["upsampling"]).split("\n") if "│" in line][1:]
    assert [row.split("│")[1] for row in rows[:3]] == ["░░▒▒··········"] * 2 + ["░░░░▒▒········"]


def test_a_single_cell_of_four_million_is_seen() -> None:
    assert "█" in text(REPORTS["long"])


@pytest.mark.parametrize("name", ["lookahead only", "not known", "nothing came out"])
def test_without_a_matrix_there_is_no_picture(name: str) -> None:
    assert "Dependency matrix" not in text(REPORTS[name])


def test_past_future_and_too_far() -> None:
    kinds = cells(REPORTS["chunked"])
    assert kinds[0, [0, 8, 9, 15, 16]].tolist() == [PAST, FUTURE, BEYOND, BEYOND, NOTHING]
    assert kinds[15, [0, 15, 16]].tolist() == [PAST, PAST, NOTHING]
    known = cells(REPORTS["forecast"])
    assert known[0, [11, 12]].tolist() == [PAST, NOTHING]
    assert not (known > PAST).any()
    strided = cells(REPORTS["stride"])
    assert strided[5, [20, 21, 39, 40]].tolist() == [PAST, FUTURE, FUTURE, NOTHING]


@pytest.mark.parametrize(
    ("frames", "ms", "frame_ms", "most"),
    [
        (None, None, 40.0, None),
        (3, None, None, 3),
        (None, 760.0, 40.0, 18),
        (None, 0.3, 0.1, 2),  # 0.3 / 0.1 is 2.9999999999999996
        (None, 38.4, 12.8, 2),  # so is 38.4 / 12.8
        (None, 3_600_000.0 - 0.0625, 0.0625, 57_599_998),
        (None, 38.3, 12.8, 1),
        (None, 39.0, 40.0, -1),
        (None, 760.0, None, None),
        (5, 760.0, 40.0, 5),
        (math.inf, None, 40.0, math.inf),
    ],
)
def test_limits_in_frames(
    frames: float | None, ms: float | None, frame_ms: float | None, most: float | None
) -> None:
    report = replace(PLAIN, at_most=frames, at_most_ms=ms, frame_ms=frame_ms)
    assert allowed(report) == most
    assert allowed_frames(frames, ms, frame_ms) == (math.inf if most is None else most)
    if most is not None:
        assert edge(report, most)[0] == min(most + 1, 200)


def test_the_frames_of_outputs_and_what_lies_beyond_them() -> None:
    assert REPORTS["samples"].own_frames().tolist() == [1, 41, 81, 121, 161, 201]
    assert REPORTS["upsampling"].own_frames().tolist()[:5] == [0, 0, 1, 1, 2]
    assert REPORTS["nothing came out"].own_frames().tolist() == []
    assert edge(REPORTS["samples"], 47).tolist() == [49, 89, 129, 169, 209, 240]
    assert cells(REPORTS["samples"])[0, [1, 2, 48, 49, 60, 61]].tolist() == [
        *(PAST, FUTURE, FUTURE),
        *(BEYOND, BEYOND, NOTHING),
    ]


def test_less_than_its_own_frame_may_be_too_far() -> None:
    report = replace(PLAIN, at_most=None, at_most_ms=39.0)
    assert cells(report)[3, :5].tolist() == [PAST, PAST, PAST, BEYOND, NOTHING]


def test_pooling_keeps_the_gravest() -> None:
    values = np.zeros((7, 5), np.uint8)
    values[6, 4] = BEYOND
    assert pooled(values, 3, 2).tolist() == [[0, 0], [0, 0], [0, BEYOND]]
    assert pooled(values, 7, 5).tolist() == values.tolist()
