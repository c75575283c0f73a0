"""What an audit found: numbers, evidence, and who is to blame.

Shapes: `T` input frames, `U` output frames.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
]


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """The place in a model where something enters that should not.

    Attributes:
        where: a submodule's path, such as `encoder.3.norm`, a node of an ONNX graph, or "" where
            only the operation is known.
        what: the class of the submodule, or the node's type.
        operation: the operation inside it, such as `group_norm`.
        source: file and line of the user's own code that called it, if known.
        frames: input frames that this place alone looks ahead; inf: whatever there is.
    """

    where: str
    what: str
    operation: str
    source: str | None = None
    frames: float = math.inf

    def __str__(self) -> str:
        same = self.what.lower() == self.operation.lower()
        what = self.operation if same or not self.what else f"{self.what}, in {self.operation}"
        if self.source:
            what += f" at {self.source}"
        return f"{self.where} ({what})" if self.where else what


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is not as it should be, with the evidence.

    Attributes:
        kind: what kind of thing.
        message: one sentence in plain words, with the numbers seen.
        breaks: whether the model fails the audit for it; otherwise it is worth knowing.
        culprit: where it enters, if that could be found.
        evidence: the numbers: which output, which input, values before and after.
    """

    kind: Kind
    message: str
    breaks: bool = True
    culprit: Culprit | None = None
    evidence: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.culprit}: {self.message}" if self.culprit else self.message


@dataclass(frozen=True, kw_only=True)
class Report:
    """The answer of `audit.model`.

    Attributes:
        target: what was audited, as a name.
        shape: of the example, (N, T, …) in the layout the model reads.
        layout: the axes of `shape`, by letter.
        unit: what an input frame is called: "frame", or "sample" in a recording.
        input_frames: T.
        output_frames: U.
        stride: input frames per output frame.
        offset: the input frame that output 0 stands for.
        matrix: (U, T) bool, who looks at whom; None where only the lookahead was asked for.
        lookahead: input frames beyond its own that an output looks at, at most; inf: the rest of
            the sequence, however long; None where no answer is possible.
        lookback: input frames before its own that an output looks at, at most; inf: as far back
            as the example goes.
        fades_ahead: the influence of the future sinks below the arithmetic where the lookahead
            ends, so that the true number may be larger.
        fades_back: the same for the past.
        frame_ms: milliseconds that one input frame stands for, if known.
        observed: so many input frames are known beforehand; to look at them is no lookahead.
        at_most: the lookahead allowed, in input frames, if a limit was set.
        at_most_ms: the worst-case latency allowed, if a limit was set.
        findings: what was found, worst first.
        looks_ahead: every place in the model that looks ahead on its own, farthest first.
        checked: what was checked, in words.
        notes: what could not be checked, and why.
        seed: of the probes; with the same model and example it gives the same report.
    """

    target: str
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
    fades_ahead: bool
    fades_back: bool
    frame_ms: float | None
    observed: int
    at_most: float | None
    at_most_ms: float | None
    findings: tuple[Finding, ...]
    looks_ahead: tuple[Culprit, ...]
    checked: tuple[str, ...]
    notes: tuple[str, ...]
    seed: int

    @property
    def latency_ms(self) -> float | None:
        """Worst-case algorithmic latency: `(lookahead + 1) · frame_ms`.

        From the start of an output's own frame until the last frame that it needs is complete;
        None where a frame's duration or the lookahead is not known.
        """
        if self.frame_ms is None or self.lookahead is None:
            return None
        return float((self.lookahead + 1) * self.frame_ms)

    @property
    def holds(self) -> bool:
        """Whether nothing that was found breaks what was asked for."""
        return not any(finding.breaks for finding in self.findings)

    def own_frames(self) -> NDArray[np.int64]:
        """(U,): the input frame at which each output's own begins, `offset + ⌊u · stride⌋`."""
        outputs = np.arange(self.output_frames, dtype=np.int64)
        own: NDArray[np.int64] = (
            self.offset + outputs * self.stride.numerator // self.stride.denominator
        )
        return own

    def with_findings(self, findings: Sequence[Finding], *, checked: str) -> Report:
        """The same report with further findings, and what they came from."""
        found = (*findings, *self.findings)
        return dataclasses.replace(
            self,
            findings=tuple(sorted(found, key=lambda finding: not finding.breaks)),
            checked=(*self.checked, checked),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON file; infinity is the string "inf", a matrix a list of runs.

        `matrix[u]` is a list of half-open `[first, end)` ranges of input frames.
        """
        values = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("matrix", "stride", "findings", "looks_ahead")
        }
        plain: dict[str, Any] = _plain(
            {
                "holds": self.holds,
                **values,
                "stride": str(self.stride),
                "latency_ms": self.latency_ms,
                "findings": [dataclasses.asdict(finding) for finding in self.findings],
                "looks_ahead": [dataclasses.asdict(culprit) for culprit in self.looks_ahead],
                "matrix": None if self.matrix is None else [runs(row) for row in self.matrix],
            }
        )
        return plain

    def html(self) -> str:
        """The report as one self-contained page."""
        from nearfuture.audit.page import page

        return page(self)

    def save(self, path: str | Path) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html(), encoding="utf-8")

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the dependency matrix with matplotlib (part of `nearfuture[train]`)."""
        from nearfuture.audit.plot import plot

        return plot(self, axes)

    def __str__(self) -> str:
        from nearfuture.audit.text import text

        return text(self)


def allowed_frames(
    at_most: float | None, at_most_ms: float | None, frame_ms: float | None
) -> float:
    """The lookahead that limits allow, in input frames; inf without a limit.

    A limit in milliseconds allows the last frame that is complete in time, and a whole number of
    frames is not lost to rounding. It is -1 where not even an output's own frame is.

    >>> allowed_frames(None, 760.0, 40.0), allowed_frames(None, 38.4, 12.8)
    (18, 2)
    """
    limit = math.inf if at_most is None else at_most
    if at_most_ms is None or frame_ms is None:
        return limit
    return min(limit, math.floor(at_most_ms / frame_ms * (1 + 1e-9)) - 1)


def runs(row: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where a row is true, as half-open ranges.

    >>> runs(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _plain(value: Any) -> Any:
    """Values that JSON knows."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return "nan" if math.isnan(value) else value
    return value


def dumps(report: Report) -> str:
    """The report as one line of JSON."""
    return json.dumps(report.to_json(), ensure_ascii=False)
