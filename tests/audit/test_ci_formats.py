"""JUnit, SARIF and annotations: valid, complete, and at the line where a finding enters."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog

from nearfuture import audit
from nearfuture.audit import Report, render
from nearfuture.audit.source import defined_at, place
from nearfuture.testing import _file_name
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


HOSTILE = "::add-mask::a\n::error::b\x1b[2J\x07##[group]\ud800]]></x>\u202e"


def hostile() -> Report:
    """A model that chooses its names, as a graph does."""
    culprit = replace(NORM, where=HOSTILE, what=HOSTILE, operation=HOSTILE, source=None)
    finding = replace(LEAK.findings[0], message=f"{HOSTILE} {'x' * 50} {HOSTILE}", culprit=culprit)
    return replace(LEAK, model=HOSTILE, findings=(finding,), source=None)


def test_names_of_a_model_command_no_terminal_and_no_server(folder: Path) -> None:
    shown = render.text(hostile())
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", shown)
    assert not re.search(r"^\s*::", shown, re.MULTILINE)
    assert "##[" not in shown
    assert "error::b" in shown
    (annotation,) = render.github_annotations(hostile())
    assert len(annotation.splitlines()) == 1


def test_names_of_a_model_break_no_format(folder: Path) -> None:
    for suffix in (".html", ".json", ".xml", ".sarif"):
        render.save(hostile(), folder / f"report{suffix}")
    (suite,) = ElementTree.parse(folder / "report.xml").getroot()
    assert suite[1].attrib["name"].startswith("normalisation at ::add-mask::a")
    log = json.loads((folder / "report.sarif").read_text(encoding="utf-8"))
    assert HOSTILE in log["runs"][0]["results"][0]["message"]["text"]
    assert json.loads((folder / "report.json").read_text(encoding="utf-8"))["model"] == HOSTILE
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "</x>" not in page


@pytest.mark.parametrize("source", ["../model.py:3", "/etc/passwd:3", "model.py", "model.py:x"])
def test_a_place_outside_of_the_project_is_none(folder: Path, source: str) -> None:
    (folder / "inner").mkdir()
    finding = replace(LEAK.findings[0], culprit=replace(NORM, source=source))
    report = replace(LEAK, findings=(finding,), source=None)
    (result,) = log_of(report)["runs"][0]["results"]
    assert "physicalLocation" not in result["locations"][0]


def test_a_test_with_any_name_has_files_of_its_own() -> None:
    names = ["t.py::test[a b]-1", "t.py::test[a_b]-1", f"t.py::test[{'가' * 300}]-1"]
    names += [f"t.py::test[{'가' * 301}]-1", "t.py::test-1"]
    files = [_file_name(name) for name in names]
    assert len(set(files)) == len(names)
    assert all(len(file.encode()) < 240 and "/" not in file for file in files)
    assert files[-1] == "t.py_test-1"


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
