"""The result of an audit as plain data: numbers, findings with evidence, and culprits.

Shapes: `T` input frames, `U` output frames.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Kind = Literal[
    "future",
    "normalisation",
    "length",
    "padding",
    "batch",
    "state",
    "nondeterminism",
    "streaming",
    "latency",
    "label",
    "layout",
]
Severity = Literal["broken", "undecided", "notice"]


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """The operation through which a forbidden dependency enters.

    Attributes:
        where: a submodule's path, such as `encoder.3.norm`, a node of an ONNX graph, or "" where
            only the operation is known.
        what: the class of the submodule, or the node's type.
        operation: the operation inside it, such as `group_norm`.
        source: file and line of the user's code that called it, if known; with the path below the
            current folder.
        frames: input frames that this operation alone looks ahead; inf: the whole sequence.
    """

    where: str
    what: str
    operation: str
    source: str | None = None
    frames: float = math.inf

    @property
    def place(self) -> tuple[str, str, str | None]:
        """The identity of an operation, whatever its lookahead."""
        return self.where, self.operation, self.source

    def __str__(self) -> str:
        same = self.what.lower() == self.operation.lower()
        what = self.operation if same or not self.what else f"{self.what}, in {self.operation}"
        if self.source:
            what += f" at {self.source}"
        return f"{self.where} ({what})" if self.where else what


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A property that does not hold, with the evidence.

    Attributes:
        kind: which property.
        message: one sentence with the measured numbers.
        severity: "broken" fails the audit; "undecided" means that the audit could not decide
            whether the property holds; "notice" is for information.
        culprit: where it enters, if that could be found.
        evidence: the numbers: which output, which input, values before and after.
    """

    kind: Kind
    message: str
    severity: Severity = "broken"
    culprit: Culprit | None = None
    evidence: dict[str, Any] = dataclasses.field(default_factory=dict)

    def at(self, culprits: Sequence[Culprit]) -> Finding:
        """Return the same finding with the first of these culprits, if there is one."""
        return dataclasses.replace(self, culprit=culprits[0]) if culprits else self

    def __str__(self) -> str:
        return f"{self.culprit}: {self.message}" if self.culprit else self.message


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of `audit.model`.

    Attributes:
        model: the model's name.
        shape: shape of the example, (N, T, …) in the layout the model reads.
        layout: the axes of `shape`, by letter.
        unit: what an input frame is called: "frame", or "sample" in a waveform.
        input_frames: T.
        output_frames: U.
        stride: input frames per output frame.
        offset: the input frame that output 0 stands for.
        matrix: (U, T) bool, which output depends on which input; None where only the lookahead was
            measured.
        lookahead: input frames after its own that an output depends on, at most; inf: the rest of
            the sequence, whatever its length; None where it could not be measured.
        lookback: input frames before its own that an output depends on, at most; inf: as far back
            as the example goes.
        lookahead_is_lower_bound: influence sinks below floating-point resolution where the measured
            lookahead ends, so that the true number may be larger.
        lookback_is_lower_bound: the same for the past.
        frame_ms: milliseconds that one input frame stands for, if known.
        observed: how many input frames are known beforehand; to depend on them is no lookahead.
        at_most: the lookahead allowed, in input frames, if a limit was set.
        at_most_ms: the worst-case latency allowed, if a limit was set.
        findings: properties that do not hold, those that fail the audit first.
        lookahead_sources: every operation that looks ahead on its own, farthest first.
        checked: what was checked.
        notes: what could not be checked, and why.
        source: file and line where the model is defined, if known.
        seed: seed of the probes; with the same model and example it gives the same report.
    """

    model: str
    shape: tuple[int, ...]
    layout: str
    unit: str = "frame"
    input_frames: int
    output_frames: int
    stride: Fraction
    offset: int = 0
    matrix: NDArray[np.bool_] | None
    lookahead: float | None
    lookback: float | None
    lookahead_is_lower_bound: bool
    lookback_is_lower_bound: bool
    frame_ms: float | None
    observed: int
    at_most: float | None
    at_most_ms: float | None
    findings: tuple[Finding, ...]
    lookahead_sources: tuple[Culprit, ...]
    checked: tuple[str, ...]
    notes: tuple[str, ...]
    seed: int
    source: str | None = None

    @property
    def latency_ms(self) -> float | None:
        """Worst-case algorithmic latency: `(lookahead + 1) · frame_ms`.

        From the start of an output's own frame until the last frame that it needs is complete;
        None where the duration of a frame or the lookahead is not known.
        """
        if self.frame_ms is None or self.lookahead is None:
            return None
        return float((self.lookahead + 1) * self.frame_ms)

    @property
    def verdict(self) -> Literal["holds", "broken", "undecided"]:
        """The gravest of the findings, or "holds"."""
        severities = {finding.severity for finding in self.findings}
        if "broken" in severities:
            return "broken"
        return "undecided" if "undecided" in severities else "holds"

    @property
    def holds(self) -> bool:
        """Whether every property that was checked holds."""
        return self.verdict == "holds"

    def own_frames(self) -> NDArray[np.int64]:
        """Return (U,): the input frame at which each output's own begins."""
        return own_frames(self.output_frames, self.stride, self.offset)

    def with_findings(self, findings: Sequence[Finding], *, checked: str) -> Report:
        """Return the same report with further findings, and the check that produced them."""
        return dataclasses.replace(
            self,
            findings=gravest_first([*findings, *self.findings]),
            checked=(*self.checked, checked),
        )

    def __str__(self) -> str:
        """List the findings; `audit.render.text` gives the whole report."""
        lines = [f"{self.model}: {self.verdict}", *map(str, self.findings)]
        return "\n".join(lines)


def own_frames(outputs: int, stride: Fraction, offset: int = 0) -> NDArray[np.int64]:
    """Return (U,): the input frame at which each output's own begins, `offset + ⌊u · stride⌋`.

    >>> own_frames(4, Fraction(3, 2)).tolist()
    [0, 1, 3, 4]
    """
    return offset + np.arange(outputs, dtype=np.int64) * stride.numerator // stride.denominator


def gravest_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Sort findings by severity; a question about the layout, on which all rest, is first."""

    def rank(finding: Finding) -> tuple[bool, int]:
        return finding.kind != "layout", get_args(Severity).index(finding.severity)

    return tuple(sorted(findings, key=rank))


def allowed_frames(
    at_most: float | None, at_most_ms: float | None, frame_ms: float | None
) -> float:
    """Return the lookahead that limits allow, in input frames; inf without a limit.

    A limit in milliseconds allows the last frame that is complete in time; rounding never costs a
    whole frame. The result is -1 where not even an output's own frame fits.

    >>> allowed_frames(None, 760.0, 40.0), allowed_frames(None, 38.4, 12.8)
    (18, 2)
    """
    limit = math.inf if at_most is None else at_most
    if at_most_ms is None or frame_ms is None:
        return limit
    return min(limit, math.floor(at_most_ms / frame_ms * (1 + 1e-9)) - 1)
