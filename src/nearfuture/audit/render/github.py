"""Findings as workflow commands, which GitHub shows at their lines in a pull request."""

from __future__ import annotations

from nearfuture.audit.render.explanation import EXPLANATIONS
from nearfuture.audit.report import Finding, Report, Severity

_COMMANDS: dict[Severity, str] = {"broken": "error", "undecided": "warning", "notice": "notice"}


def github_annotations(report: Report) -> list[str]:
    """Return a workflow command for each finding, such as `::error file=net.py,line=17,…::…`."""
    return [_command(report, finding) for finding in report.findings]


def _command(report: Report, finding: Finding) -> str:
    title = f"it {EXPLANATIONS[finding.kind].title}"
    source = (finding.culprit.source if finding.culprit else None) or report.source
    properties = {"title": title}
    if source is not None:
        file, _, line = source.rpartition(":")
        properties = {"file": file, "line": line, "title": title}
    shown = ",".join(f"{name}={_escaped(value, ',:')}" for name, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {shown}::{_escaped(f'{report.model}: {finding}')}"


def _escaped(words: str, more: str = "") -> str:
    for character in f"%\r\n{more}":
        words = words.replace(character, f"%{ord(character):02X}")
    return words
