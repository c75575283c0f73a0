"""One audit: every check in order, then the report."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from nearfuture.audit.adapters import CannotRun, OnnxAdapter
from nearfuture.audit.attribution import Attribution
from nearfuture.audit.call import LatencyLimit, StreamingSteps
from nearfuture.audit.checks import (
    CheckResult,
    PaddedRows,
    check_batch,
    check_length,
    check_padding,
    check_repeat,
    check_streaming,
    skipped,
)
from nearfuture.audit.measure import Measurement, measure
from nearfuture.audit.others import check_others
from nearfuture.audit.probing import smallest_experiment
from nearfuture.audit.report import Culprit, Finding, Report, gravest_first
from nearfuture.audit.setup import Setup


class AuditInterrupted(KeyboardInterrupt):
    """An audit that was interrupted, by Ctrl-C.

    Attributes:
        report: what was found until then; its verdict is "undecided", or "broken".
    """

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report


class Audit:
    """Run every check on a model and collect the findings.

    Args:
        setup: the model and the row that is probed.
        limit: how far ahead it may look.
        steps: how it is streamed.
        matrix: whether to measure the whole dependency matrix; None: up to 2000 frames.
        progress: called with what begins, in words.
    """

    def __init__(
        self,
        setup: Setup,
        limit: LatencyLimit,
        steps: StreamingSteps | None = None,
        matrix: bool | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        frame_ms = setup.model.adapter.frame_ms or limit.frame_ms
        self.limit = dataclasses.replace(limit, frame_ms=frame_ms)
        self.steps = steps or StreamingSteps()
        self._matrix = matrix
        self._progress = progress
        self._stage = ""
        self._first_setup = setup
        self._measured: Measurement | None = None
        self._sources: tuple[Culprit, ...] = ()
        self._findings: list[Finding] = []
        self._checked: list[str] = []
        self._notes = list(setup.notes)
        if setup.layout_question:
            message = setup.layout_question
            self._findings.append(Finding(kind="layout", message=message, severity="undecided"))

    def report(self) -> Report:
        """Run the audit.

        Raises:
            AuditInterrupted: on Ctrl-C, with what was found until then.
        """
        try:
            self._run()
        except KeyboardInterrupt as stopped:
            message = f"interrupted while checking {self._stage}: the rest was not checked"
            self._findings.append(Finding(kind="future", message=message, severity="undecided"))
            raise AuditInterrupted(self._report()) from stopped
        return self._report()

    def _run(self) -> None:
        """Run every check in order."""
        self._begin("whether equal calls give equal results")
        result, setup = check_repeat(self._first_setup)
        self._add(result, self._repetition(result))
        if setup is None:
            return
        repeatable = all(finding.kind != "nondeterminism" for finding in result.findings)
        self._begin("rows of a batch")
        setup = self._batch(setup)
        self._begin("padding")
        self._padding(setup, repeatable)
        if self.steps.step is not None:
            self._begin("streaming in chunks")
            self._add(check_streaming(setup, self.steps))
        self._begin("which output depends on which input")
        try:
            measured = measure(setup, self._matrix, self.limit.frames)
        except CannotRun as error:
            message = f"the lookahead could not be measured: {error}"
            self._findings.append(Finding(kind="future", message=message, severity="undecided"))
            self._others(setup, repeatable)
            return
        self._measured = measured
        self._checked.append(measured.checked)
        self._notes += measured.notes
        if repeatable:
            self._begin("other lengths")
            self._add(self._try("other lengths", check_length, setup, measured.certain_last))
        self._begin("which operations look ahead")
        self._sources = self._lookahead_sources(setup, measured)
        self._future(setup, measured, self._sources)
        self._measured = self._declared_latency(setup, measured)
        self._begin("the other outputs")
        self._others(setup, repeatable)

    def _begin(self, stage: str) -> None:
        self._stage = stage
        if self._progress is not None:
            self._progress(stage)

    def _try(self, what: str, check: Callable[..., CheckResult], *arguments: Any) -> CheckResult:
        """Run a check; a model that raises in it is noted, and does not end the audit."""
        try:
            return check(*arguments)
        except CannotRun as error:
            return skipped(f"{what} could not be checked: {error}")

    def _add(self, result: CheckResult, culprits: list[Culprit] | None = None) -> None:
        self._findings += [finding.at(culprits or ()) for finding in result.findings]
        self._checked += [result.checked] if result.checked else []
        self._notes += result.notes

    def _repetition(self, result: CheckResult) -> list[Culprit]:
        """Return where a state or chance enters, if it changes a result."""
        kinds = {each.kind for each in result.findings if each.severity == "broken"}
        if not kinds:
            return []
        return Attribution(self._first_setup).repetition(seeded="state" in kinds)

    def _batch(self, setup: Setup) -> Setup:
        """Check the batch; where its rows mix, everything else is probed one row at a time."""
        result = self._try("rows of a batch", check_batch, setup)
        if not result.findings:
            self._add(result)
            return setup
        self._add(result, Attribution(setup).batch(result.findings[0].evidence["row"]))
        return setup.one_row_at_a_time()

    def _padding(self, setup: Setup, repeatable: bool) -> None:
        if not repeatable:
            self._add(
                skipped("padding and other lengths were not tried: random numbers would differ")
            )
            return
        try:
            results = check_padding(setup)
        except CannotRun as error:
            results = [skipped(f"padding could not be checked: {error}")]
        for result in results:
            culprits = []
            if result.findings:
                aspect = result.findings[0].evidence["aspect"]
                culprits = Attribution(setup).padding(PaddedRows(setup), aspect)
            self._add(result, culprits)

    def _others(self, setup: Setup, repeatable: bool) -> None:
        """Examine the other outputs; a finding that the first output has too is only noted."""
        result = check_others(setup, self.limit, repeatable=repeatable)
        known = {_property(finding) for finding in self._findings}
        new = tuple(each for each in result.findings if _property(each) not in known)
        self._add(dataclasses.replace(result, findings=new))
        shared = {each.evidence["name"] for each in result.findings if _property(each) in known}
        if shared:
            names = ", ".join(map(repr, sorted(shared)))
            self._notes.append(f"a finding of the first output holds for outputs {names} too")

    def _lookahead_sources(self, setup: Setup, measured: Measurement) -> tuple[Culprit, ...]:
        """Return every operation that looks ahead on its own, the farthest first."""
        if not measured.lookahead:
            return ()
        attribution = Attribution(setup)
        if not attribution.possible:
            if isinstance(setup.model.adapter, OnnxAdapter):
                self._notes.append("naming the node needs onnx: pip install onnx")
            return ()
        sources = attribution.lookahead_sources(
            measured.lookahead, measured.output, measured.middle
        )
        if not sources:
            self._notes.append("where the future enters could not be found")
        return sources

    def _future(self, setup: Setup, measured: Measurement, sources: tuple[Culprit, ...]) -> None:
        """Report a lookahead beyond the limit, and a normalisation over time in any case."""
        ahead, limit = measured.lookahead, self.limit
        normalises = bool(sources) and _is_normalisation(sources[0])
        if ahead <= limit.frames and measured.undecided:
            self._undecided(setup, measured, *measured.undecided)
        if ahead <= limit.frames and not (normalises and math.isinf(ahead)):
            return
        output, last = measured.output, int(measured.last[measured.output])
        message = smallest_experiment(setup, measured.kind, output, last)
        if ahead > limit.frames:
            frames = last - int(measured.own[output])
            message += (
                f", {frames} {setup.model.adapter.unit}{'s' * (frames != 1)} ahead{limit.allowed()}"
            )
        finding = Finding(
            kind="normalisation" if normalises else "future",
            message=message,
            severity="broken" if ahead > limit.frames else "notice",
            evidence={"output": output, "input": last},
        )
        self._findings.append(finding.at(sources))

    def _undecided(self, setup: Setup, measured: Measurement, output: int, last: int) -> None:
        """Report a dependency that may be rounding."""
        if last - int(measured.own[output]) > self.limit.frames:
            seen = smallest_experiment(setup, "", output, last)
            message = (
                f"{seen}, as small as rounding; a copy of the model in another precision, which "
                f"would tell, cannot be made"
            )
            evidence = {"output": output, "input": last}
            self._findings.append(
                Finding(kind="future", message=message, severity="undecided", evidence=evidence)
            )

    def _declared_latency(self, setup: Setup, measured: Measurement) -> Measurement:
        """Compare with the latency that the model itself declares."""
        declared, frame_ms = setup.model.adapter.declared_ms, self.limit.frame_ms
        if declared is None or frame_ms is None or math.isinf(declared):
            return measured
        needed = (measured.lookahead + 1) * frame_ms
        self._checked.append(f"whether the declared latency, {declared:g} ms, is kept")
        if needed > declared + 1e-6:
            message = f"it declares a latency of {declared:g} ms, but needs {needed:g} ms"
            self._findings.append(Finding(kind="latency", message=message))
        if abs(needed - declared) < 1e-6:  # windows end in weights that are almost 0
            return dataclasses.replace(measured, lookahead_is_lower_bound=False)
        return measured

    def _report(self) -> Report:
        """Return everything that was found so far."""
        setup, limit, measured = self._first_setup, self.limit, self._measured
        return Report(
            model=setup.model.adapter.name,
            unit=setup.model.adapter.unit,
            shape=setup.shape,
            layout=setup.model.layout,
            input_frames=len(setup.base),
            output_frames=setup.trial.shape[1],
            stride=setup.stride,
            offset=setup.offset,
            matrix=measured.matrix if measured else None,
            lookahead=measured.lookahead if measured else None,
            lookback=measured.lookback if measured else None,
            lookahead_is_lower_bound=measured is not None and measured.lookahead_is_lower_bound,
            lookback_is_lower_bound=measured is not None and measured.lookback_is_lower_bound,
            frame_ms=limit.frame_ms,
            observed=setup.observed,
            at_most=limit.at_most,
            at_most_ms=limit.at_most_ms,
            findings=gravest_first(self._findings),
            lookahead_sources=self._sources,
            checked=tuple(self._checked),
            notes=tuple(self._notes),
            seed=setup.seed,
            source=setup.model.adapter.source,
        )


def _property(finding: Finding) -> tuple[str, ...]:
    """Return what a finding is about, in whichever output."""
    kind = "future" if finding.kind == "normalisation" else finding.kind
    return kind, finding.severity, str(finding.evidence.get("aspect"))


def _is_normalisation(culprit: Culprit) -> bool:
    return any("norm" in word.lower() for word in (culprit.what, culprit.operation))
