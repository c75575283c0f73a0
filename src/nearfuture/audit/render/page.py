"""A report as one HTML page without any other file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from nearfuture.audit.render import wording
from nearfuture.audit.render.explanation import EXPLANATIONS
from nearfuture.audit.render.figure import figure
from nearfuture.audit.report import Culprit, Finding, Kind, Report, Severity

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_BADGES: dict[Severity, str] = {
    "broken": "",
    "undecided": " (undecided)",
    "notice": " (for information: nothing is broken by it)",
}

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def html(report: Report) -> str:
    """Render a report as a self-contained page for people who did not run the audit.

    It is HTML that is also well-formed XML, loads nothing, and is complete without its script.
    """
    folder = files(__package__)
    title = _sentence(wording.verdict(report))
    drawn = report.matrix is not None and report.matrix.size > 0
    picture = figure(report) if drawn else ""
    parts = [
        f'<p class="quiet">nearfuture audit of <code>{escape(report.model)}</code></p>',
        f'<h1 class="verdict">{_together(title)}</h1>',
        f'<p class="lead">{_together(_in_plain_words(report))}</p>',
        _numbers(report),
        _section("Findings", _findings(report.findings)),
        _section("Dependency matrix", picture),
        _section("Operations that look ahead", _places(report)),
        _section("What was checked", _list(map(escape, report.checked))),
        _section("Notes", _list(map(escape, report.notes))),
        f'<p class="quiet">{escape(_sentence(wording.example(report)))}. '
        f"{escape(wording.reproduction(report))}.</p>",
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
<title>{escape(f"{report.model} {title.partition(':')[0].lower()}")} – nearfuture audit</title>
<style>{(folder / "page.css").read_text(encoding="utf-8")}</style>
</head>
<body class="{"holds" if report.holds else "broken"}">
{body}
</body>
</html>
"""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", whole)


def _in_plain_words(report: Report) -> str:
    """Explain the numbers without the word lookahead."""
    if report.lookahead is None:
        first = "Whether this model has to wait for later input could not be measured."
    elif report.lookahead == 0:
        first = (
            "An output of this model depends on nothing that comes after its moment: it can be "
            "computed as soon as the moment is over."
        )
    elif math.isinf(report.lookahead):
        first = (
            "An output of this model depends on the sequence to its end, whatever its length: the "
            "model cannot be used live as it is."
        )
    else:
        first = (
            f"An output of this model depends on {wording.lookahead(report)} of what comes after "
            f"its moment."
        )
    latency = report.latency_ms
    if latency is None or math.isinf(latency):
        return first
    most = "at least" if report.lookahead_is_lower_bound else "up to"
    return (
        f"{first} Even on an infinitely fast computer it comes {most} "
        f"{wording.number(latency)} ms after the beginning of that moment."
    )


def _numbers(report: Report) -> str:
    numbers = {
        "Lookahead": wording.lookahead(report),
        "Allowed": wording.limit(report) or "no limit was set",
        "Lookback": wording.lookback(report),
        "Latency": wording.latency(report),
    }
    lower_bound = report.lookahead_is_lower_bound or report.lookback_is_lower_bound
    rows = (
        f"<div><dt>{name}</dt><dd>{_together(value)}</dd></div>" for name, value in numbers.items()
    )
    note = f'<p class="quiet">At least: {wording.LOWER_BOUND}.</p>' if lower_bound else ""
    return f'<dl class="numbers">{"".join(rows)}</dl>{note}'


def _findings(findings: Sequence[Finding]) -> str:
    """Render a card for each finding; a kind is explained where it first appears."""
    explained: set[Kind] = set()
    cards = []
    for finding in findings:
        about = EXPLANATIONS[finding.kind]
        title = f"{'Whether it' if finding.severity == 'undecided' else 'It'} {about.title}"
        numbers = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
            for name, value in wording.evidence(finding)
        )
        card = [
            f"<h3><span>{title}</span>{_BADGES[finding.severity]}</h3>",
            f"<p>{escape(_sentence(finding.message))}.</p>",
            f"<p>It enters at {_culprit(finding.culprit)}.</p>" if finding.culprit else "",
            f"<dl>{numbers}</dl>" if numbers else "",
        ]
        if finding.kind not in explained:
            explained.add(finding.kind)
            card += [
                f'<p class="quiet"><strong>What this means.</strong> {escape(about.meaning)}</p>',
                f'<p class="quiet"><strong>What to do.</strong> {escape(about.remedy)}</p>',
            ]
        breaks = "" if finding.severity == "notice" else " breaks"
        cards.append(f'<div class="finding{breaks}">{"".join(card)}</div>')
    return "\n".join(cards)


def _culprit(culprit: Culprit) -> str:
    name, _, rest = str(culprit).partition(" (")
    return f"<code>{escape(name)}</code>" + (f" ({escape(rest)}" if rest else "")


def _places(report: Report) -> str:
    return _list(
        f"{_culprit(culprit)}: {escape(wording.counted(culprit.frames, report))}"
        for culprit in report.lookahead_sources
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
