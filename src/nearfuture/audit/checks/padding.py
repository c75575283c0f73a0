"""What lies beyond a row's end, and how much of it, changes no valid output.

These are two questions: a pipeline that always pads with zeros needs only the second to hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.adapters import CannotRun
from nearfuture.audit.audited_model import ModelOutput
from nearfuture.audit.checks.result import CheckResult, skipped
from nearfuture.audit.comparison import Comparison
from nearfuture.audit.probing import Probes
from nearfuture.audit.report import Finding
from nearfuture.audit.setup import Setup

Array = NDArray[Any]

_CONTENT = "whether the content of the padding changes anything"
_AMOUNT = "whether the amount of zero padding changes anything"


def check_padding(setup: Setup) -> list[CheckResult]:
    """Check that a row does not change with the content and the amount of its padding."""
    if not setup.model.knows_padding and setup.lengths is None:
        return [
            skipped("padding was not tried: no lengths were given, and the model is not passed any")
        ]
    rows = PaddedRows(setup)
    try:
        expected = rows.run(rows.padded("zeros"))
    except CannotRun as error:
        return [skipped(f"padding was not tried: {error}")]
    try:
        alone = rows.run_alone()
    except CannotRun as error:
        alone, refused = None, error
    valid = rows.valid(expected, alone)
    results = [_content(rows, expected, valid)] if setup.model.knows_padding else []
    if alone is None:
        return [*results, skipped(f"a row without its padding was not tried: {refused}")]
    return [*results, _amount(rows, expected, alone, valid)]


@dataclass(frozen=True)
class PaddedRows:
    """A short row beside one of full length, as in a batch.

    A model may make its mask as wide as the longest row, which a short row alone does not fit.
    """

    setup: Setup

    @property
    def length(self) -> int:
        """The number of valid frames of the short row: the shortest length, or two thirds."""
        frames = len(self.setup.base)
        shorter = [n for n in self.setup.lengths or [] if n < frames]
        if shorter:
            return min(shorter)
        two_thirds = math.ceil(frames * 2 / 3)
        return self.setup.shorter(two_thirds) or max(1, two_thirds)

    @property
    def count(self) -> int:
        """The number of rows in a call."""
        return self.setup.model.rows or 2

    @property
    def lengths(self) -> list[int]:
        """Valid frames of each row."""
        return [self.length] + [len(self.setup.base)] * (self.count - 1)

    def padded(self, kind: str) -> Array:
        """Return (N, T, …): row 0 is short, and its padding "zeros" or a kind of probe."""
        base, n = self.setup.base, self.length
        if kind == "zeros":
            row = np.zeros_like(base)
        else:
            row = Probes(base, seed=self.setup.seed + 3).substitute(kind).copy()
        if self.setup.model.spec.padding == "right":
            row[:n] = base[:n]
        else:
            row[-n:] = base[:n]
        return np.stack([row] + [base] * (self.count - 1))

    def alone(self, count: int) -> Array:
        """Return (N, t, …): so many copies of the short row without padding."""
        return np.stack([self.setup.base[: self.length]] * count)

    def run(self, x: Array) -> ModelOutput:
        """Return the output of row 0."""
        output = self.setup.model.run(x, self.lengths)
        counts = None if output.lengths is None else output.lengths[:1]
        return ModelOutput(output.frames[0], counts)

    def run_alone(self) -> ModelOutput:
        """Return the output of the short row without padding."""
        output = self.setup.model.run(self.alone(1), [self.length])
        return ModelOutput(output.frames[0], output.lengths)

    def valid(self, padded: ModelOutput, alone: ModelOutput | None) -> slice:
        """Return which outputs of the padded row are valid."""
        outputs = len(padded.frames)
        if padded.lengths is not None:
            count = int(padded.lengths[0])
        elif alone is not None:
            count = min(len(alone.frames), outputs)
        else:
            count = int((self.setup.own(outputs) < self.length).sum())
        if self.setup.model.spec.padding == "right" or self.setup.timeless:
            return slice(0, count)
        return slice(outputs - count, outputs)


def _content(rows: PaddedRows, expected: ModelOutput, valid: slice) -> CheckResult:
    setup = rows.setup
    for kind in Probes(setup.base, seed=setup.seed).kinds:
        got = rows.run(rows.padded(kind))
        compared = Comparison(got.frames[valid], expected.frames[valid])
        if compared.differ:
            message = (
                f"a row of {rows.length} frames, padded to {len(setup.base)}, changes with the "
                f"content of its padding: {compared.describe()}"
            )
            return _found(_CONTENT, message, rows, "content")
    return CheckResult(_CONTENT)


def _amount(rows: PaddedRows, padded: ModelOutput, alone: ModelOutput, valid: slice) -> CheckResult:
    setup, expected = rows.setup, alone.frames[: valid.stop - valid.start]
    words = ("alone", "padded")
    compared = Comparison(padded.frames[valid], expected, exact=False, words=words)
    if not compared.differ:
        return CheckResult(_AMOUNT)
    how = "" if setup.model.knows_padding else "; the model needs lengths, a mask, or packing"
    where = "follow" if setup.model.spec.padding == "right" else "precede"
    message = (
        f"a row of {rows.length} frames changes when {len(setup.base) - rows.length} frames of "
        f"zeros {where} it: {compared.describe()}{how}"
    )
    return _found(_AMOUNT, message, rows, "amount")


def _found(checked: str, message: str, rows: PaddedRows, aspect: str) -> CheckResult:
    evidence = {"aspect": aspect, "valid": rows.length, "padded": len(rows.setup.base)}
    return CheckResult(checked, (Finding(kind="padding", message=message, evidence=evidence),))
