"""JUnit, SARIF and annotations: valid, complete, and at the line where a finding enters."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog

from nearfuture import audit
from nearfuture.audit import Report, render
from nearfuture.audit.source import defined_at, place
from tests.audit.reports import NORM, PLAIN, REPORTS
from tests.errors import refuses

LEAK = REPORTS["leak"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose model is in model.py, where the audit runs."""
    (tmp_path / "model.py").write_text("\n" * 30, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def log_of(report: Report) -> dict:  # type: ignore[type-arg]
    """The SARIF log, valid by its schema."""
    text = render.sarif(report)
    SarifLog.model_validate_json(text)
    return json.loads(text)


@pytest.mark.parametrize("name", REPORTS)
def test_sarif_is_valid_by_its_schema(name: str) -> None:
    report = REPORTS[name]
    (run,) = log_of(report)["runs"]
    assert len(run["results"]) == len(report.findings)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result, finding in zip(run["results"], report.findings, strict=True):
        assert result["ruleId"] == rules[result["ruleIndex"]] == finding.kind
        assert finding.message in result["message"]["text"]


def test_the_schema_refuses_what_is_wrong() -> None:
    log = log_of(LEAK)
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    with pytest.raises(ValueError, match="startLine"):
        SarifLog.model_validate(log)


def test_sarif_names_the_line_where_a_finding_enters() -> None:
    (result,) = log_of(LEAK)["runs"][0]["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "model.py"
    assert location["physicalLocation"]["region"] == {"startLine": 17}
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "encoder.3.norm"
    assert result["level"] == "error"


def test_without_a_line_of_its_own_a_finding_stands_where_the_model_is_defined() -> None:
    finding = replace(LEAK.findings[0], culprit=replace(NORM, source="conformer.py:9"))
    elsewhere = replace(LEAK, findings=(finding,), source="model.py:3")
    (result,) = log_of(elsewhere)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}
    nowhere = replace(elsewhere, findings=(replace(finding, culprit=None),), source=None)
    assert "locations" not in log_of(nowhere)["runs"][0]["results"][0]


def test_a_fingerprint_outlasts_a_line_that_moves_and_no_other_change() -> None:
    def fingerprint(culprit: audit.Culprit) -> str:
        report = replace(LEAK, findings=(replace(LEAK.findings[0], culprit=culprit),))
        return str(log_of(report)["runs"][0]["results"][0]["partialFingerprints"])

    assert fingerprint(NORM) == fingerprint(replace(NORM, source="model.py:18"))
    assert fingerprint(NORM) != fingerprint(replace(NORM, where="encoder.4.norm"))


@pytest.mark.parametrize("name", REPORTS)
def test_junit_counts_what_it_lists(name: str) -> None:
    report = REPORTS[name]
    (suite,) = ElementTree.fromstring(render.junit(report))
    cases = list(suite)
    assert int(suite.attrib["tests"]) == len(cases) == 1 + len(report.findings)
    assert int(suite.attrib["failures"]) == len(suite.findall("*/failure"))
    assert int(suite.attrib["errors"]) == len(suite.findall("*/error"))
    failed = suite.findall("*/failure") + suite.findall("*/error")
    assert bool(failed) is not report.holds


def test_junit_names_the_line_and_the_remedy() -> None:
    (suite,) = ElementTree.fromstring(render.junit(LEAK))
    case = suite[1]
    assert case.attrib["name"] == "normalisation at encoder.3.norm"
    assert (case.attrib["file"], case.attrib["line"]) == ("model.py", "17")
    assert case[0].tag == "failure"
    assert "LayerNorm" in str(case[0].text)


def test_an_annotation_is_one_line_at_its_place() -> None:
    (line,) = render.github_annotations(LEAK)
    assert line.startswith("::error file=model.py,line=17,title=it normalises over time::")
    hostile = replace(LEAK.findings[0], message="50 %\nof it")
    (line,) = render.github_annotations(replace(LEAK, findings=(hostile,)))
    assert "\n" not in line
    assert line.endswith("50 %25%0Aof it")


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.html", "<!DOCTYPE html>"),
        ("a.json", '{"model"'),
        ("a.xml", "<?xml"),
        ("a.SARIF", "{"),
    ],
)
def test_the_name_of_a_file_decides_its_form(folder: Path, name: str, begins: str) -> None:
    render.save(PLAIN, folder / name)
    assert (folder / name).read_text(encoding="utf-8").startswith(begins)


def test_a_form_that_does_not_exist_is_refused() -> None:
    with refuses("invalid", "out", ".sarif", "a.pdf"):
        render.save(PLAIN, "a.pdf")


def test_a_place_is_relative_to_the_current_folder(folder: Path) -> None:
    assert place(folder / "a" / "b.py", 3) == "a/b.py:3"
    assert place(folder.parent / "b.py", 3) == "b.py:3"
    assert place(folder / ".venv" / "lib" / "site-packages" / "net.py", 3) == "net.py:3"


def test_a_report_knows_where_the_model_is_defined() -> None:
    report = audit.model(_twice, np.ones((1, 8, 2)), at_most=0)
    assert report.source == defined_at(_twice)
    assert str(report.source).startswith("test_ci_formats.py:")
    assert defined_at(len) is None


def _twice(x):  # type: ignore[no-untyped-def]
    return 2 * x
