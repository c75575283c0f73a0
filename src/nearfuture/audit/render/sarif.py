"""A report as SARIF 2.1.0, which puts each finding at its line in a pull request.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0 Plus Errata 01.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nearfuture import __version__
from nearfuture.audit.render.explanation import EXPLANATIONS
from nearfuture.audit.render.plain import plain
from nearfuture.audit.report import Finding, Kind, Report, Severity

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS: dict[Severity, str] = {"broken": "error", "undecided": "warning", "notice": "note"}


def sarif(report: Report) -> str:
    """Render a report as a SARIF log of one run, whose results are the findings.

    The location of a result is the line where it enters, or else where the model is defined, below
    the folder in which the audit ran.
    """
    kinds = list(dict.fromkeys(finding.kind for finding in report.findings))
    driver = {
        "name": "nearfuture audit",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(kind) for kind in kinds],
    }
    run = {
        "tool": {"driver": driver},
        # One category for each model, so that one audit does not replace the results of another.
        "automationDetails": {"id": f"nearfuture audit/{report.model}/"},
        "invocations": [{"executionSuccessful": True}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(report, each, kinds.index(each.kind)) for each in report.findings],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, ensure_ascii=False, indent=2) + "\n"


def _rule(kind: Kind) -> dict[str, Any]:
    explanation = EXPLANATIONS[kind]
    return {
        "id": kind,
        "shortDescription": {"text": f"The model {explanation.title}."},
        "fullDescription": {"text": explanation.meaning},
        "help": {"text": explanation.remedy},
    }


def _result(report: Report, finding: Finding, rule: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.kind,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{report.model}: {finding}"},
        "partialFingerprints": {"finding/v1": _fingerprint(report, finding)},
        "properties": {"evidence": plain(finding.evidence)},
    }
    culprit = finding.culprit
    location: dict[str, Any] = {}
    if physical := _physical(culprit.source if culprit else None) or _physical(report.source):
        location["physicalLocation"] = physical
    if culprit is not None:
        name = culprit.where or culprit.operation
        location["logicalLocations"] = [{"fullyQualifiedName": name, "kind": "member"}]
    if location:
        result["locations"] = [location]
    return result


def _physical(source: str | None) -> dict[str, Any] | None:
    """Return the location of a file below the current folder; None for any other."""
    if source is None:
        return None
    file, _, line = source.rpartition(":")
    path = Path(file)
    if path.is_absolute() or ".." in path.parts or not path.is_file() or not line.isdecimal():
        return None
    artifact = {"uri": quote(os.fsencode(path.as_posix())), "uriBaseId": "%SRCROOT%"}
    return {"artifactLocation": artifact, "region": {"startLine": int(line)}}


def _fingerprint(report: Report, finding: Finding) -> str:
    """Return what stays equal while lines move: the model, the kind and the place."""
    culprit = finding.culprit
    place = (culprit.where, culprit.operation) if culprit else ()
    parts = (report.model, finding.kind, *place, str(finding.evidence.get("aspect", "")))
    return hashlib.sha256("\n".join(parts).encode(errors="backslashreplace")).hexdigest()[:32]
