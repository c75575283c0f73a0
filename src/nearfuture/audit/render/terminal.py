"""A report as text for a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import Literal

from nearfuture.audit.render import wording
from nearfuture.audit.render.cells import BEYOND, FUTURE, NOTHING, PAST, cells, legend, pooled
from nearfuture.audit.report import Finding, Report, Severity

Role = Literal["plain", "title", "good", "bad", "notice", "quiet", "past", "future"]
"""What a piece of text is, which decides its colour."""

Piece = tuple[str, Role]

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_JOINER = "\u2060"  # has no width
_WIDTH = 80
_LABEL = 11
_PLACES = 10
_COLUMNS, _ROWS = 40, 20
_MARKS: dict[int, Piece] = {
    NOTHING: ("·", "quiet"),
    PAST: ("░", "past"),
    FUTURE: ("▒", "future"),
    BEYOND: ("█", "bad"),
}
_SEVERITIES: dict[Severity, Piece] = {
    "broken": ("✗", "bad"),
    "undecided": ("?", "bad"),
    "notice": ("!", "notice"),
}


def text(report: Report) -> str:
    """Render a report in at most 80 columns, the verdict first."""
    return "\n".join("".join(words for words, _ in line).rstrip() for line in lines(report))


def lines(report: Report) -> list[list[Piece]]:
    """Render a report line by line, each in pieces with a role."""
    findings = [line for finding in report.findings for line in _finding(finding)]
    sources = [
        f"{culprit}: {wording.counted(culprit.frames, report)}"
        for culprit in report.lookahead_sources[:_PLACES]
    ]
    if rest := len(report.lookahead_sources) - len(sources):
        sources.append(f"and {rest} more")
    sections = [
        ("", _paragraph(wording.verdict(report), "good" if report.holds else "bad")),
        ("", _paragraph(f"{report.model}: {wording.example(report)}", "quiet")),
        ("", _numbers(report)),
        ("Findings", findings),
        ("Operations that look ahead", _bullets(sources)),
        ("Dependency matrix", _picture(report)),
        ("Checked", _bullets(report.checked)),
        ("Notes", _bullets(report.notes)),
        ("", _paragraph(f"{wording.reproduction(report)}.", "quiet")),
    ]
    rendered: list[list[Piece]] = []
    for title, content in sections:
        if content:
            rendered += [[]] if rendered else []
            rendered += [[(title, "title")]] if title else []
            rendered += content
    return [_inert(line) for line in rendered]


def _inert(line: list[Piece]) -> list[Piece]:
    """Take from a line what would command the terminal or the CI server that shows it.

    Names of modules and of nodes come from the model: whoever wrote it chose them.
    """
    shown = [
        (_CONTROL.sub("\ufffd", words).replace("##[", f"#{_JOINER}#["), r) for words, r in line
    ]
    if "".join(words for words, _ in shown).lstrip().startswith("::"):
        shown[0] = (_JOINER + shown[0][0], shown[0][1])
    return shown


def _numbers(report: Report) -> list[list[Piece]]:
    rows = [
        ("lookahead", wording.lookahead(report)),
        ("allowed", wording.limit(report) or "no limit was set"),
        ("lookback", wording.lookback(report)),
        ("latency", wording.latency(report)),
    ]
    if report.lookahead_is_lower_bound or report.lookback_is_lower_bound:
        rows.append(("at least", wording.LOWER_BOUND))
    return [
        [(head, "quiet"), (words, "plain")]
        for name, value in rows
        for head, words in _wrapped(name.ljust(_LABEL), value)
    ]


def _finding(finding: Finding) -> Iterable[list[Piece]]:
    mark, role = _SEVERITIES[finding.severity]
    yield from _bullet(mark, role, str(finding))
    numbers = "; ".join(f"{name} {value}" for name, value in wording.evidence(finding))
    yield from _paragraph(numbers, "quiet", "    ") if numbers else []


def _bullet(mark: str, role: Role, words: str) -> list[list[Piece]]:
    return [[(head, role), (line, role)] for head, line in _wrapped(f"  {mark} ", words)]


def _bullets(sentences: Iterable[str]) -> list[list[Piece]]:
    return [line for words in sentences for line in _bullet("•", "plain", words)]


def _paragraph(words: str, role: Role, indent: str = "") -> list[list[Piece]]:
    return [[(head + line, role)] for head, line in _wrapped(indent, words)]


def _wrapped(head: str, words: str) -> list[tuple[str, str]]:
    """Wrap text after a head; the lines below the first are indented as far."""
    wrapped = textwrap.wrap(words, _WIDTH - len(head), break_on_hyphens=False) or [""]
    return [(head if i == 0 else " " * len(head), line) for i, line in enumerate(wrapped)]


def _picture(report: Report) -> list[list[Piece]]:
    """Draw the matrix with one mark a cell, about as wide as high."""
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
