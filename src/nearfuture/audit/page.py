"""A report as one HTML page that needs nothing but itself."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from nearfuture.audit import text
from nearfuture.audit.explanation import EXPLANATIONS
from nearfuture.audit.figure import figure
from nearfuture.audit.report import Culprit, Finding, Kind, Report

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(report: Report) -> str:
    """A report as a self-contained page, to be read by people who did not run it.

    It is HTML that is also well-formed XML, loads nothing, and is complete without its script.

    Args:
        report: of `audit.model`.
    """
    folder = files(__package__)
    title = _sentence(text.verdict(report))
    drawn = report.matrix is not None and report.matrix.size > 0
    picture = figure(report) if drawn else ""
    parts = [
        f'<p class="quiet">nearfuture audit of <code>{escape(report.target)}</code></p>',
        f'<h1 class="verdict">{_together(title)}</h1>',
        f'<p class="lead">{_together(_in_plain_words(report))}</p>',
        _numbers(report),
        _section("What was found", _findings(report.findings)),
        _section("Who looks at whom", picture),
        _section("What looks ahead on its own", _places(report)),
        _section("What was checked", _list(map(escape, report.checked))),
        _section("Notes", _list(map(escape, report.notes))),
        f'<p class="quiet">{escape(_sentence(text.subject(report)))}. '
        f"{escape(text.reproduction(report))}.</p>",
    ]
    if 'id="rows"' in picture:
        parts.append(f"<script>{(folder / 'page.js').read_text(encoding='utf-8')}</script>")
    body = "\n".join(part for part in parts if part)
    whole = f"""<!DOCTYPE html>
<html lang="en" xmlns="http://www.w3.org/1999/xhtml">
<head>
<meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="{_POLICY}"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{escape(f"{report.target} {title.partition(':')[0].lower()}")} – nearfuture audit</title>
<style>{(folder / "page.css").read_text(encoding="utf-8")}</style>
</head>
<body class="{"holds" if report.holds else "broken"}">
{body}
</body>
</html>
"""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", whole)


def _in_plain_words(report: Report) -> str:
    """The numbers for somebody who has never heard of lookahead."""
    if report.lookahead is None:
        first = "Whether this model has to wait for the future could not be found out."
    elif report.lookahead == 0:
        first = (
            "What this model says about a moment depends on nothing that comes after it: it can "
            "answer as soon as the moment is over."
        )
    elif math.isinf(report.lookahead):
        first = (
            "Before this model can say anything about a moment, it must have seen the sequence to "
            "its end, however long that takes: it cannot be used live as it is."
        )
    else:
        first = (
            f"Before this model can say anything about a moment, it must have seen "
            f"{text.ahead(report)} of what comes after it."
        )
    latency = report.latency_ms
    if latency is None or math.isinf(latency):
        return first
    most = "at least" if text.ahead(report).startswith("at least") else "up to"
    return (
        f"{first} Even on an infinitely fast computer its answer comes {most} "
        f"{text.number(latency)} ms after the beginning of that moment."
    )


def _numbers(report: Report) -> str:
    numbers = {
        "Looks ahead": text.ahead(report),
        "Allowed": text.limit(report) or "no limit was set",
        "Looks back": text.back(report),
        "Latency": text.latency(report),
    }
    faint = any(said.startswith("at least") for said in numbers.values())
    rows = (
        f"<div><dt>{name}</dt><dd>{_together(said)}</dd></div>" for name, said in numbers.items()
    )
    note = f'<p class="quiet">At least: {text.FADES}.</p>' if faint else ""
    return f'<dl class="numbers">{"".join(rows)}</dl>{note}'


def _findings(findings: Sequence[Finding]) -> str:
    """A card for each; a kind is explained where it first appears."""
    explained: set[Kind] = set()
    cards = []
    for finding in findings:
        about = EXPLANATIONS[finding.kind]
        badge = "" if finding.breaks else " (worth knowing; nothing is broken by it)"
        seen = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(said)}</dd></div>"
            for name, said in text.evidence(finding)
        )
        card = [
            f"<h3><span>It {about.title}</span>{badge}</h3>",
            f"<p>{escape(_sentence(finding.message))}.</p>",
            f"<p>It enters at {_culprit(finding.culprit)}.</p>" if finding.culprit else "",
            f"<dl>{seen}</dl>" if seen else "",
        ]
        if finding.kind not in explained:
            explained.add(finding.kind)
            card += [
                f'<p class="quiet"><strong>What this means.</strong> {escape(about.meaning)}</p>',
                f'<p class="quiet"><strong>What to do.</strong> {escape(about.remedy)}</p>',
            ]
        breaks = " breaks" if finding.breaks else ""
        cards.append(f'<div class="finding{breaks}">{"".join(card)}</div>')
    return "\n".join(cards)


def _culprit(culprit: Culprit) -> str:
    name, _, rest = str(culprit).partition(" (")
    return f"<code>{escape(name)}</code>" + (f" ({escape(rest)}" if rest else "")


def _places(report: Report) -> str:
    return _list(
        f"{_culprit(culprit)}: {escape(text.counted(culprit.frames, report))}"
        for culprit in report.looks_ahead
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>\n{content}</section>" if content else ""


def _list(items: Iterable[str]) -> str:
    rows = "".join(f"<li>{item}</li>" for item in items)
    return f"<ul>{rows}</ul>" if rows else ""


def _together(words: str) -> str:
    return escape(words.replace(" ms", "\N{NO-BREAK SPACE}ms"))


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:].rstrip(".")
