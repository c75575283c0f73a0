"""The plugin for pytest: a fixture that audits a model, and fails the test that breaks its limit.

Installed with the package and loaded by pytest itself. It imports nothing but pytest until a test
asks for the fixture, and torch only if the model is one of torch.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from typing import Unpack

    from nearfuture.audit import Report
    from nearfuture.audit.call import AuditOptions

__all__ = ["AuditFixture", "nearfuture_audit", "pytest_addoption"]


_LONGEST_NAME = 200
"""Bytes; file systems take 255 with the suffix, and parameters of tests may be long."""


class AuditFixture(Protocol):
    """The type of the fixture `nearfuture_audit`."""

    def __call__(
        self,
        fn: Any,
        example: Any = None,
        lengths: Sequence[int] | None = None,
        **options: Unpack[AuditOptions],
    ) -> Report:
        """Audit a model; see `nearfuture.audit.model`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--nearfuture-reports FOLDER`."""
    parser.getgroup("nearfuture").addoption(
        "--nearfuture-reports",
        type=Path,
        metavar="FOLDER",
        help="write each report of the fixture nearfuture_audit to this folder: a page, JSON, "
        "JUnit and SARIF",
    )


@pytest.fixture
def nearfuture_audit(request: pytest.FixtureRequest) -> AuditFixture:
    """Return a function that audits a model, and fails the test unless everything holds.

    Its arguments are those of `nearfuture.audit.model`, and it returns the report. The lookahead is
    recorded as a property of the test, which `--junit-xml` writes; `--nearfuture-reports FOLDER`
    writes the whole report.

    Example:
        def test_the_encoder_looks_two_frames_ahead(nearfuture_audit):
            nearfuture_audit(encoder, torch.randn(2, 200, 80), lengths=[200, 150], at_most=2)
    """
    reports: list[Report] = []

    def check(
        fn: Any,
        example: Any = None,
        lengths: Sequence[int] | None = None,
        **options: Unpack[AuditOptions],
    ) -> Report:
        __tracebackhide__ = True
        from nearfuture import audit

        report = audit.model(fn, example, lengths, **options)
        reports.append(report)
        item = request.node
        item.user_properties.append(("lookahead", _number(report.lookahead)))
        folder = request.config.getoption("--nearfuture-reports")
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            name = _file_name(f"{item.nodeid}-{len(reports)}")
            for suffix in (".html", ".json", ".xml", ".sarif"):
                audit.render.save(report, folder / f"{name}{suffix}")
        if not report.holds:
            pytest.fail(audit.render.text(report), pytrace=False)
        return report

    return check


def _file_name(node: str) -> str:
    """Return a name for the files of a test: one of its own, that every file system takes."""
    name = re.sub(r"[^\w.-]+", "_", node)
    plain = re.fullmatch(r"[\w./:-]*", node) is not None
    if plain and len(name.encode()) <= _LONGEST_NAME:
        return name
    short = name.encode()[:_LONGEST_NAME].decode(errors="ignore")
    return f"{short}-{hashlib.sha256(node.encode(errors='replace')).hexdigest()[:8]}"


def _number(lookahead: float | None) -> str:
    return "unknown" if lookahead is None else f"{lookahead:g}"
