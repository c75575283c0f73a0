"""A report as JUnit XML, which CI servers show as a list of tests."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from nearfuture.audit.render.explanation import EXPLANATIONS
from nearfuture.audit.render.terminal import text
from nearfuture.audit.render.wording import verdict
from nearfuture.audit.report import Finding, Report

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report) -> str:
    """Render a report as one test suite: a test for the verdict, and one for each finding.

    A finding that is broken is a failure, an undecided one an error, and a notice passes. The test
    of a finding names the file and the line where it enters, as far as they are known.
    """
    failures = [each for each in report.findings if each.severity == "broken"]
    undecided = [each for each in report.findings if each.severity == "undecided"]
    suite = ElementTree.Element(
        "testsuite",
        name="nearfuture audit",
        tests=str(1 + len(report.findings)),
        failures=str(len(failures) + (report.verdict == "broken")),
        errors=str(len(undecided) + (report.verdict == "undecided")),
        skipped="0",
    )
    whole = _case(suite, report, "verdict", report.source)
    _outcome(whole, report.verdict, verdict(report), "")
    ElementTree.SubElement(whole, "system-out").text = _clean(text(report))
    for finding in report.findings:
        place = finding.culprit.source if finding.culprit else None
        case = _case(suite, report, _name(finding), place or report.source)
        _outcome(case, finding.severity, str(finding), EXPLANATIONS[finding.kind].remedy)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _name(finding: Finding) -> str:
    """Name a finding by what it says and where, so that it keeps its history."""
    where = finding.culprit.where or finding.culprit.operation if finding.culprit else ""
    aspect = str(finding.evidence.get("aspect", ""))
    return " ".join(filter(None, (finding.kind, aspect, f"at {where}" if where else "")))


def _case(
    suite: ElementTree.Element, report: Report, name: str, source: str | None
) -> ElementTree.Element:
    case = ElementTree.SubElement(
        suite, "testcase", classname=_clean(report.model), name=_clean(name)
    )
    if source is not None:
        file, _, line = source.rpartition(":")
        case.set("file", _clean(file))
        if line.isdecimal():
            case.set("line", line)
    return case


def _outcome(case: ElementTree.Element, severity: str, message: str, remedy: str) -> None:
    tag = {"broken": "failure", "undecided": "error"}.get(severity)
    if tag is not None:
        part = ElementTree.SubElement(case, tag, message=_clean(message), type=severity)
        part.text = _clean(remedy)


def _clean(words: str) -> str:
    """Replace what XML cannot contain."""
    return _NOT_XML.sub("\ufffd", words)
