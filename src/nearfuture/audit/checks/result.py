"""What one check found, and what it could not try."""

from __future__ import annotations

from dataclasses import dataclass

from nearfuture.audit.report import Finding


@dataclass(frozen=True)
class CheckResult:
    """The result of one check.

    Attributes:
        checked: the property that was checked; "" where it could not be.
        findings: where it does not hold.
        notes: what was not checked, and why.
    """

    checked: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


def skipped(reason: str) -> CheckResult:
    """Return the result of a check that could not be made."""
    return CheckResult("", notes=(reason,))
