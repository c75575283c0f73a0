"""A report as plain text: for a terminal, and for `str(report)`."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from typing import Any, Literal

from nearfuture.audit.explanation import EXPLANATIONS
from nearfuture.audit.picture import BEYOND, FUTURE, PAST, UNSEEN, cells, legend, pooled
from nearfuture.audit.report import Finding, Report

Role = Literal["plain", "title", "good", "bad", "worth knowing", "quiet", "past", "future"]
"""What a piece of text is, for whoever gives it a colour."""

FADES = "beyond that the influence is smaller than the arithmetic shows"

Piece = tuple[str, Role]

_WIDTH = 80
_LABEL = 11
_PLACES = 10
_COLUMNS, _ROWS = 40, 20
_MARKS: dict[int, Piece] = {
    UNSEEN: ("·", "quiet"),
    PAST: ("░", "past"),
    FUTURE: ("▒", "future"),
    BEYOND: ("█", "bad"),
}


def text(report: Report) -> str:
    """A report in at most 80 columns, the verdict first.

    Args:
        report: of `audit.model`.
    """
    return "\n".join("".join(words for words, _ in line).rstrip() for line in lines(report))


def lines(report: Report) -> list[list[Piece]]:
    """The same line by line, each in pieces that say what they are.

    Args:
        report: of `audit.model`.
    """
    found = [line for finding in report.findings for line in _finding(finding)]
    places = [
        f"{culprit}: {counted(culprit.frames, report)}" for culprit in report.looks_ahead[:_PLACES]
    ]
    if rest := len(report.looks_ahead) - len(places):
        places.append(f"and {rest} more")
    sections = [
        ("", _paragraph(verdict(report), "good" if report.holds else "bad")),
        ("", _paragraph(f"{report.target}: {subject(report)}", "quiet")),
        ("", _numbers(report)),
        ("Found", found),
        ("Looks ahead on its own", _bullets(places)),
        ("Who looks at whom", _picture(report)),
        ("Checked", _bullets(report.checked)),
        ("Notes", _bullets(report.notes)),
        ("", _paragraph(f"{reproduction(report)}.", "quiet")),
    ]
    told: list[list[Piece]] = []
    for title, content in sections:
        if content:
            told += [[]] if told else []
            told += [[(title, "title")]] if title else []
            told += content
    return told


def verdict(report: Report) -> str:
    """The answer in one line."""
    if not report.holds:
        broken = (EXPLANATIONS[each.kind].title for each in report.findings if each.breaks)
        return f"broken: it {', '.join(dict.fromkeys(broken))}"
    if report.lookahead is None:
        looks = "how far it looks ahead is not known"
    elif report.lookahead == 0:
        looks = f"it looks at nothing ahead of its own {report.unit}"
    elif math.isinf(report.lookahead):
        looks = "it looks ahead to the end of the sequence, however long"
    else:
        looks = f"it looks ahead {ahead(report)}"
    allowed = limit(report)
    return f"holds: {looks}; {f'allowed: {allowed}' if allowed else 'no limit was set'}"


def subject(report: Report) -> str:
    """What was looked at: the example and what came out."""
    stride = "" if report.stride == 1 else f", one for every {report.stride}"
    known = f"; the first {report.observed} are known beforehand" if report.observed else ""
    return (
        f"an example of shape {report.shape}, axes {report.layout}; "
        f"{_units(report.input_frames, report.unit)} in, {report.output_frames:,} out"
        f"{stride}{known}"
    )


def ahead(report: Report) -> str:
    """How far it looks ahead."""
    return _at_least(
        report.lookahead, report, report.fades_ahead, "the rest of the sequence, however long"
    )


def back(report: Report) -> str:
    """How far it looks back."""
    return _at_least(report.lookback, report, report.fades_back, "as far back as the example goes")


def latency(report: Report) -> str:
    """How long an answer takes, however fast the computer is."""
    if report.lookahead is None:
        return "not known"
    if math.isinf(report.lookahead):
        return "until the sequence has ended"
    if report.latency_ms is None:
        return f"not known, as the duration of a {report.unit} is not"
    least = "at least " if report.fades_ahead else ""
    return f"{least}{number(report.latency_ms)} ms in the worst case"


def limit(report: Report) -> str:
    """What was allowed; "" without a limit."""
    limits = [] if report.at_most is None else [f"{counted(report.at_most, report)} of lookahead"]
    if report.at_most_ms is not None:
        limits.append(f"a latency of {number(report.at_most_ms)} ms")
    return " and ".join(limits)


def reproduction(report: Report) -> str:
    """How to get the same report again."""
    return (
        f"The probes were drawn with seed {report.seed}; the same model, example and seed give the "
        f"same report"
    )


def evidence(finding: Finding) -> list[tuple[str, str]]:
    """Names and values of what was seen."""
    told = {
        name.replace("_", " "): _value(value)
        for name, value in finding.evidence.items()
        if name not in ("output", "input")  # the message says them
    }
    return [(name, value) for name, value in told.items() if value]


def counted(frames: float, report: Report) -> str:
    """Input frames, and milliseconds where their duration is known."""
    if math.isinf(frames):
        return "the whole sequence"
    words = _units(frames, report.unit)
    if report.frame_ms is None or frames == 0:
        return words
    return f"{words} ({number(frames * report.frame_ms)} ms)"


def number(value: float) -> str:
    """A number to read, to three decimals.

    >>> number(1240), number(12.5), number(float("inf"))
    ('1,240', '12.5', '∞')
    """
    if math.isinf(value):
        return "∞"
    whole, _, rest = f"{value:,.3f}".partition(".")
    return f"{whole}.{rest.rstrip('0')}" if rest.rstrip("0") else whole


def _units(count: float, unit: str) -> str:
    """A number of frames, or of samples.

    >>> _units(1, "frame"), _units(2000, "sample")
    ('1 frame', '2,000 samples')
    """
    return f"{number(count)} {unit}{'' if count == 1 else 's'}"


def _at_least(frames: float | None, report: Report, fades: bool, endless: str) -> str:
    if frames is None:
        return "not known"
    if math.isinf(frames):
        return endless
    return f"{'at least ' if fades else ''}{counted(frames, report)}"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_value(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    return str(value)


def _numbers(report: Report) -> list[list[Piece]]:
    faint = f" ({FADES})"
    rows = [
        ("lookahead", ahead(report) + faint * ahead(report).startswith("at least")),
        ("allowed", limit(report) or "no limit was set"),
        ("lookback", back(report) + faint * back(report).startswith("at least")),
        ("latency", latency(report)),
    ]
    return [
        [(head, "quiet"), (words, "plain")]
        for name, value in rows
        for head, words in _wrapped(name.ljust(_LABEL), value)
    ]


def _finding(finding: Finding) -> Iterable[list[Piece]]:
    role: Role = "bad" if finding.breaks else "worth knowing"
    yield from _bullet("✗" if finding.breaks else "!", role, str(finding))
    seen = "; ".join(f"{name} {value}" for name, value in evidence(finding))
    yield from _paragraph(seen, "quiet", "    ") if seen else []


def _bullet(mark: str, role: Role, words: str) -> list[list[Piece]]:
    return [[(head, role), (line, role)] for head, line in _wrapped(f"  {mark} ", words)]


def _bullets(sentences: Iterable[str]) -> list[list[Piece]]:
    return [line for words in sentences for line in _bullet("•", "plain", words)]


def _paragraph(words: str, role: Role, indent: str = "") -> list[list[Piece]]:
    return [[(head + line, role)] for head, line in _wrapped(indent, words)]


def _wrapped(head: str, words: str) -> list[tuple[str, str]]:
    """Lines of text behind a head, and under it behind as much space."""
    wrapped = textwrap.wrap(words, _WIDTH - len(head), break_on_hyphens=False) or [""]
    return [(head if i == 0 else " " * len(head), line) for i, line in enumerate(wrapped)]


def _picture(report: Report) -> list[list[Piece]]:
    """The matrix with one mark a cell: about as wide as high on a terminal."""
    if report.matrix is None or report.matrix.size == 0:
        return []
    outputs, inputs = min(report.output_frames, _ROWS), min(report.input_frames, _COLUMNS)
    kinds = pooled(cells(report), outputs, inputs)
    wide = 2 if inputs <= _COLUMNS // 2 else 1  # a mark is half as wide as high
    first = [u * report.output_frames // outputs for u in range(outputs)]
    margin = len(str(report.output_frames - 1))
    labelled = {0, outputs // 2, outputs - 1}
    drawn: list[list[Piece]] = [[(f"  output {'│':>{max(margin - 6, 1)}}", "quiet")]]
    head = len(drawn[0][0][0]) - 1
    for row, marks in enumerate(kinds):
        label = str(first[row]) if row in labelled else ""
        drawn.append([(f"{label:>{head}}│", "quiet")])
        drawn[-1] += [(_MARKS[kind][0] * wide, _MARKS[kind][1]) for kind in marks.tolist()]
    last = str(report.input_frames - 1)
    axis = f"0{last:>{wide * inputs - 1}}" if inputs > 1 else "0"
    drawn.append([(f"{' ' * head}└{'─' * wide * inputs}", "quiet")])
    drawn.append([(f"{' ' * (head + 1)}{axis}  input", "quiet")])
    present = {int(kind) for kind in kinds.flat}
    drawn += [
        [("  ", "plain"), _MARKS[kind], (f" {words}", "quiet")]
        for kind, words in legend(report).items()
        if kind in present
    ]
    return drawn
