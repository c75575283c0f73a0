"""The sentences of a report that a terminal and a page share."""

from __future__ import annotations

import math
from typing import Any

from nearfuture.audit.render.explanation import EXPLANATIONS
from nearfuture.audit.report import Finding, Report

LOWER_BOUND = "beyond that the influence is smaller than floating point resolves"


def verdict(report: Report) -> str:
    """State the result in one line."""
    if not report.holds:
        titles = (
            EXPLANATIONS[each.kind].title
            for each in report.findings
            if each.severity == report.verdict
        )
        whether = "it" if report.verdict == "broken" else "whether it"
        return f"{report.verdict}: {whether} {', '.join(dict.fromkeys(titles))}"
    if report.lookahead is None:
        ahead = "its lookahead is not known"
    elif report.lookahead == 0:
        ahead = f"it depends on nothing after its own {report.unit}"
    elif math.isinf(report.lookahead):
        ahead = "it looks ahead to the end of the sequence, whatever its length"
    else:
        ahead = f"it looks ahead {lookahead(report)}"
    allowed = limit(report)
    return f"holds: {ahead}; {f'allowed: {allowed}' if allowed else 'no limit was set'}"


def example(report: Report) -> str:
    """Describe the example and the outputs."""
    stride = "" if report.stride == 1 else f", one for every {report.stride}"
    known = f"; the first {report.observed} are known beforehand" if report.observed else ""
    return (
        f"an example of shape {report.shape}, axes {report.layout}; "
        f"{_units(report.input_frames, report.unit)} in, {report.output_frames:,} out"
        f"{stride}{known}"
    )


def lookahead(report: Report) -> str:
    """State how far it looks ahead."""
    if report.lookahead is not None and math.isinf(report.lookahead):
        return "the rest of the sequence, whatever its length"
    return _at_least(report.lookahead, report, report.lookahead_is_lower_bound)


def lookback(report: Report) -> str:
    """State how far it looks back."""
    if report.lookback is not None and math.isinf(report.lookback):
        return "as far back as the example goes"
    return _at_least(report.lookback, report, report.lookback_is_lower_bound)


def latency(report: Report) -> str:
    """State how long an output takes on an infinitely fast computer."""
    if report.lookahead is None:
        return "not known"
    if math.isinf(report.lookahead):
        return "until the sequence has ended"
    if report.latency_ms is None:
        return f"not known, as the duration of a {report.unit} is not"
    least = "at least " if report.lookahead_is_lower_bound else ""
    return f"{least}{number(report.latency_ms)} ms in the worst case"


def limit(report: Report) -> str:
    """State what is allowed; "" without a limit."""
    limits = [] if report.at_most is None else [f"{counted(report.at_most, report)} of lookahead"]
    if report.at_most_ms is not None:
        limits.append(f"a latency of {number(report.at_most_ms)} ms")
    return " and ".join(limits)


def reproduction(report: Report) -> str:
    """State how to get the same report again."""
    return (
        f"The probes were drawn with seed {report.seed}; the same model, example and seed give the "
        f"same report"
    )


def evidence(finding: Finding) -> list[tuple[str, str]]:
    """Return names and values of the evidence that the message does not name."""
    shown = {
        name.replace("_", " "): _value(value)
        for name, value in finding.evidence.items()
        if name not in ("output", "input")
    }
    return [(name, value) for name, value in shown.items() if value]


def counted(frames: float, report: Report) -> str:
    """State input frames, and milliseconds where their duration is known."""
    if math.isinf(frames):
        return "the whole sequence"
    words = _units(frames, report.unit)
    if report.frame_ms is None or frames == 0:
        return words
    return f"{words} ({number(frames * report.frame_ms)} ms)"


def number(value: float) -> str:
    """Format a number, to three decimals.

    >>> number(1240), number(12.5), number(float("inf"))
    ('1,240', '12.5', '∞')
    """
    if math.isinf(value):
        return "∞"
    whole, _, rest = f"{value:,.3f}".partition(".")
    return f"{whole}.{rest.rstrip('0')}" if rest.rstrip("0") else whole


def _units(count: float, unit: str) -> str:
    """Count frames, or samples.

    >>> _units(1, "frame"), _units(2000, "sample")
    ('1 frame', '2,000 samples')
    """
    return f"{number(count)} {unit}{'' if count == 1 else 's'}"


def _at_least(frames: float | None, report: Report, lower_bound: bool) -> str:
    if frames is None:
        return "not known"
    return f"{'at least ' if lower_bound else ''}{counted(frames, report)}"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_value(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    return str(value)
