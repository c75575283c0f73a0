"""`audit.labels`: whether a model can read its own targets, before the first training step.

Shapes: `N` rows, `T` input frames, `U` output frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.examination import Examination
from nearfuture.audit.prepare import Prepared, prepare
from nearfuture.audit.report import Finding, Report
from nearfuture.audit.subject import Takes
from nearfuture.audit.target import integers_of, untouched_randomness
from nearfuture.error import NearfutureError

Array = NDArray[Any]

_IGNORED = -100
"""What torch's losses leave out unless told otherwise."""

_FEW = 8
"""Fewer targets than this can agree with anything by chance."""


def labels(
    model: Any,
    inputs: Any,
    targets: Any,
    lengths: Sequence[int] | None = None,
    *,
    where: Any = None,
    frame_ms: float | None = None,
    layout: str | None = None,
    output: int | str | None = None,
    output_layout: str | None = None,
    takes: Takes | None = None,
    keyword: str | None = None,
    train: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> Report:
    """Show label leakage: an output that looks at an input from which its own target can be read.

    Three ways in which targets are in the inputs are looked for, and each is a leak only if the
    model looks there (`matrix`): a target equals the input `k` frames on, for any `k` (the next
    word of a language model; `k = 0`: a target that was not shifted); a target equals one feature
    of a frame (forecasts); a target is a function of the number of frames left, which a model that
    looks at the end can count.

    Args:
        model: as for `audit.model`.
        inputs: (N, T) tokens or (N, T, C), a batch as in training.
        targets: (N, U) or (N, U, …), aligned with the outputs as the loss will see them.
        lengths: valid frames of each row.
        where: (N, U) bool, where the loss counts; everywhere within the lengths unless given. For
            a masked language model: where the input was erased. Targets of -100 or NaN never count.
        frame_ms: milliseconds per input frame.
        layout: the input's axes.
        output: which part of the answer.
        output_layout: the output's axes.
        takes: what the model gets besides the input.
        keyword: name of that argument.
        train: as it trains.
        seed: of the probes.
        name: of the model.

    Returns:
        A report whose findings of kind "label" name input, target and offset.

    Raises:
        NearfutureError: where the model cannot be run, or the targets do not fit its outputs.

    >>> import numpy as np
    >>> words = np.random.default_rng(0).integers(0, 50, (4, 12))
    >>> def both_ways(x):  # sees the whole sentence
    ...     return (x.sum(axis=1, keepdims=True) - np.cumsum(x, axis=1))[..., None]
    >>> report = labels(both_ways, words[:, :-1], words[:, 1:])
    >>> report.findings[0].message[:59]
    'the target of output t is input t + 1, and the model looks '
    """
    with untouched_randomness(), np.errstate(all="ignore"):
        prepared = prepare(
            model,
            inputs,
            lengths,
            layout=layout,
            output=output,
            output_layout=output_layout,
            takes=takes,
            keyword=keyword,
            extra=None,
            block=1,
            stride=None,
            observed=0,
            train=train,
            seed=seed,
            name=name,
        )
        examination = Examination(
            prepared,
            frame_ms=frame_ms,
            at_most=None,
            at_most_ms=None,
            observed=0,
            shape=tuple(np.shape(inputs)),
        )
        report = examination.report(True, None, None, None)
    if report.matrix is None:
        return report
    y, counted = _targets(prepared, report, targets, where)
    found = _copies(prepared, report.matrix, y, counted)
    found += _countable(prepared, report.matrix, y, counted)
    if report.looks_ahead:
        ahead = report.looks_ahead[0]
        found = [
            replace(each, culprit=ahead) if each.evidence.get("offset", 1) > 0 else each
            for each in found
        ]
    return report.with_findings(found, checked="whether targets are in what the model looks at")


def _targets(prepared: Prepared, report: Report, targets: Any, where: Any) -> tuple[Array, Array]:
    """(N, U, F) targets and (N, U) whether they count: within the lengths, and not ignored."""
    y = _numbers(targets)
    rows = len(prepared.example)
    if y.ndim < 2 or y.shape[0] != rows:
        raise NearfutureError(
            f"targets are (N, U) or (N, U, …) for {rows} rows of input, not {y.shape}"
        )
    outputs = min(report.output_frames, y.shape[1])
    if abs(report.output_frames - y.shape[1]) > 1:
        raise NearfutureError(
            f"the model gives {report.output_frames} outputs, but there are {y.shape[1]} targets a "
            f"row: audit.labels compares them one by one"
        )
    y = y[:, :outputs].reshape(rows, outputs, -1)
    real = ~((y == _IGNORED) | (y != y)).any(axis=-1)
    if where is None:
        counts = prepared.lengths or [len(prepared.base)] * rows
        own = prepared.own(outputs)
        return y, np.array([own < n for n in counts]) & real
    counted = _numbers(where).astype(bool)[:, :outputs]
    if counted.shape != y.shape[:2]:
        raise NearfutureError(f"where is (N, U) like the targets, not {counted.shape}")
    return y, counted & real


def _numbers(values: Any) -> Array:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _copies(prepared: Prepared, matrix: Array, y: Array, counted: Array) -> list[Finding]:
    """Targets that are an input, so many frames on, that the output looks at."""
    x = prepared.example.reshape(*prepared.example.shape[:2], -1)
    own = prepared.own(y.shape[1])
    tokens = integers_of(x.dtype)
    findings = []
    for offset in sorted(range(-x.shape[1] + 1, x.shape[1]), key=lambda k: (abs(k), k)):
        at = own + offset
        inside = (at >= 0) & (at < x.shape[1])
        use = counted & inside[None]
        looks = inside & matrix[np.arange(len(at)), np.clip(at, 0, x.shape[1] - 1)]
        if use.sum() < _FEW or not looks.any():
            continue
        source = x[:, np.clip(at, 0, x.shape[1] - 1)]
        for feature, target in np.ndindex(x.shape[2], y.shape[2]):
            a, b = source[..., feature][use], y[..., target][use]
            if np.unique(b).size < 2:
                continue
            equal = a == b if tokens else np.isclose(a, b, rtol=1e-5, atol=1e-8)
            if equal.all():
                findings.append(_copy(offset, feature, target, looks, use, x.shape[2]))
                break
        if findings:
            break
    return findings


def _copy(
    offset: int, feature: int, target: int, looks: Array, use: Array, features: int
) -> Finding:
    step = f" + {offset}" if offset > 0 else f" - {-offset}" if offset else ""
    what = f"input t{step}" + (f", feature {feature}" if features > 1 else "")
    share = f"{int(looks.sum())} of {len(looks)} outputs look at it"
    fix = (
        "shift the targets, or the model learns to copy"
        if offset == 0
        else "mask the future, erase what is to be guessed, or the model learns to copy"
        if offset > 0
        else "a target of the past is known already"
    )
    return Finding(
        kind="label",
        message=(
            f"the target of output t is {what}, and the model looks there ({share}; seen in "
            f"{int(use.sum())} targets): {fix}"
        ),
        evidence={"offset": offset, "feature": feature, "target": target},
    )


def _countable(prepared: Prepared, matrix: Array, y: Array, counted: Array) -> list[Finding]:
    """Targets that follow from how many frames are left, where outputs look at the end."""
    rows, outputs, _ = y.shape
    counts = np.array(prepared.lengths or [len(prepared.base)] * rows)
    own = prepared.own(outputs)
    left = np.broadcast_to(counts[:, None] - own[None], (rows, outputs))
    passed = np.broadcast_to(own[None], (rows, outputs))
    if not _follows(left[counted], y[counted]):
        return []
    if len(np.unique(counts)) > 1 and _follows(passed[counted], y[counted]):
        return []  # it follows from the place too, which any model may count
    if len(np.unique(counts)) == 1:
        return []  # of rows of one length, nobody can tell the end from the beginning
    end = matrix[:, -1]
    looks = end & (own < matrix.shape[1] - 1)
    if not looks.any():
        return []
    return [
        Finding(
            kind="label",
            message=(
                f"the target follows from the number of frames left, which the model can count: "
                f"{int(looks.sum())} of {outputs} outputs look at the last frame from before it; "
                f"at run time the end is not known yet"
            ),
            evidence={"outputs": int(looks.sum())},
        )
    ]


def _follows(key: Array, value: Array) -> bool:
    """Whether equal keys always have equal values, and there is something to see."""
    flat = value.reshape(len(value), -1)
    if len(flat) < _FEW or len(np.unique(flat, axis=0)) < 2:
        return False
    seen: dict[int, Array] = {}
    repeated = 0
    for k, v in zip(key.tolist(), flat, strict=True):
        if k in seen:
            repeated += 1
            if not np.array_equal(seen[k], v):
                return False
        seen[k] = v
    return repeated >= _FEW
