"""The outputs besides the first: batch, padding and lookahead of each, by name."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

from nearfuture.audit.adapters import CannotRun
from nearfuture.audit.attribution import Attribution
from nearfuture.audit.call import LatencyLimit
from nearfuture.audit.checks import CheckResult, check_batch, check_padding
from nearfuture.audit.outputs import OutputPart
from nearfuture.audit.probing import extrapolate, farthest_dependency, smallest_experiment
from nearfuture.audit.report import Finding
from nearfuture.audit.setup import Setup


def check_others(setup: Setup, limit: LatencyLimit, *, repeatable: bool) -> CheckResult:
    """Examine every other output that has frames; the report is undecided where that fails.

    Args:
        setup: the model.
        limit: how far ahead it may look.
        repeatable: equal calls give equal results, so that padding can be compared.
    """
    others = setup.others
    findings = []
    if others.unread:
        message = (
            f"outputs were not examined, since they cannot be read: {', '.join(others.unread)}"
        )
        findings.append(Finding(kind="future", message=message, severity="undecided"))
    groups: dict[tuple[int, str, bool], list[OutputPart]] = defaultdict(list)
    for part in others.parts:
        groups[part.frames, str(part.dtype), part.square].append(part)
    for group in groups.values():
        # Together first, which is quicker; one by one to name those with a finding.
        if _examine(setup, group, limit, repeatable):
            for part in group:
                named = _examine(setup, [part], limit, repeatable)
                findings += [_named(finding, part) for finding in named]
    names = ", ".join(repr(part.name) for part in others.parts)
    return CheckResult(
        f"the lookahead of outputs {names}" if names else "", tuple(findings), others.notes
    )


def _examine(
    setup: Setup, parts: Sequence[OutputPart], limit: LatencyLimit, repeatable: bool
) -> list[Finding]:
    try:
        chosen = setup.of(parts)
        results = [check_batch(chosen)]
        if repeatable and not any(part.square for part in parts):
            results += check_padding(chosen)
        findings = [finding for result in results for finding in result.findings]
        return findings + _future(setup, chosen, limit)
    except CannotRun as error:
        message = f"it could not be examined: {error}"
        return [Finding(kind="future", message=message, severity="undecided")]


def _future(setup: Setup, chosen: Setup, limit: LatencyLimit) -> list[Finding]:
    look = farthest_dependency(chosen, chosen.base)
    lookahead, _ = extrapolate(chosen, look, limit.frames)
    if lookahead > limit.frames:
        attribution = Attribution(dataclasses.replace(chosen, model=setup.model))
        culprits = attribution.lookahead_sources(lookahead, look.output, look.last)
        message = (
            f"{smallest_experiment(chosen, look.kind, look.output, look.last)}, {look.frames} "
            f"{setup.model.adapter.unit}{'s' * (look.frames != 1)} ahead{limit.allowed()}"
        )
        return [Finding(kind="future", message=message).at(culprits)]
    if look.undecided and look.undecided[1] - int(chosen.own(look.undecided[0] + 1)[-1]) > (
        limit.frames
    ):
        message = f"{smallest_experiment(chosen, '', *look.undecided)}, as small as rounding"
        return [Finding(kind="future", message=message, severity="undecided")]
    return []


def _named(finding: Finding, part: OutputPart) -> Finding:
    return dataclasses.replace(
        finding,
        message=f"output {part.name!r}: {finding.message}",
        evidence={**finding.evidence, "name": part.name},
    )
