"""`audit.labels`: whether a model can read its own targets, before the first training step.

Shapes: `N` rows, `T` input frames, `U` output frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.adapters import preserved_random_state
from nearfuture.audit.audit import Audit
from nearfuture.audit.call import CallOptions, LatencyLimit
from nearfuture.audit.report import Finding, Report
from nearfuture.audit.setup import Setup, prepare
from nearfuture.error import NearfutureError

Array = NDArray[Any]

_IGNORED = -100
"""The target that torch's losses ignore by default."""

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
    **options: Unpack[CallOptions],
) -> Report:
    """Find label leakage: an output that depends on an input from which its target can be read.

    Three ways in which inputs may contain targets are tested, and each is a leak only if the output
    depends on that input (`matrix`): a target equals the input `k` frames on, for any `k` (the next
    word of a language model; `k = 0`: a target that was not shifted); a target equals one feature
    of a frame (forecasts); a target is a function of the number of frames that remain, which a
    model that depends on the end can count.

    Args:
        model: as for `audit.model`.
        inputs: (N, T) tokens or (N, T, C), a batch as in training.
        targets: (N, U) or (N, U, …), aligned with the outputs as in the loss.
        lengths: valid frames of each row.
        where: (N, U) bool, where the loss counts; by default everywhere within the lengths. For
            a masked language model: where the input was erased. Targets of -100 or NaN never count.
        frame_ms: milliseconds per input frame.
        options: how the model is called, as for `audit.model`.

    Returns:
        A report whose findings of kind "label" name input, target and offset.

    Raises:
        NearfutureError: where the model cannot be run, or the targets do not fit its outputs.

    >>> import numpy as np
    >>> words = np.random.default_rng(0).integers(0, 50, (4, 12))
    >>> def both_ways(x):  # depends on the whole sentence
    ...     return (x.sum(axis=1, keepdims=True) - np.cumsum(x, axis=1))[..., None]
    >>> report = labels(both_ways, words[:, :-1], words[:, 1:])
    >>> report.findings[0].message[:58]
    'the target of output t is input t + 1, on which 10 of 11 o'
    """
    with preserved_random_state(), np.errstate(all="ignore"):
        setup = prepare(model, inputs, lengths, options)
        report = Audit(setup, LatencyLimit(frame_ms=frame_ms), matrix=True).report()
    if report.matrix is None:
        return report
    y, counted = _targets(setup, report, targets, where)
    leaks = _copies(setup, report.matrix, y, counted)
    leaks += _countable(setup, report.matrix, y, counted)
    leaks = [
        each.at(report.lookahead_sources) if each.evidence.get("offset", 1) > 0 else each
        for each in leaks
    ]
    return report.with_findings(leaks, checked="whether targets can be read from the inputs used")


def _targets(setup: Setup, report: Report, targets: Any, where: Any) -> tuple[Array, Array]:
    """Return (N, U, F) targets and (N, U) whether they count: inside the lengths, not ignored."""
    y = _numbers(targets)
    rows = len(setup.example)
    if y.ndim < 2 or y.shape[0] != rows:
        raise NearfutureError(
            f"`targets` are (N, U) or (N, U, …) for {rows} rows of input, not {y.shape}",
            parameter="targets",
        )
    outputs = min(report.output_frames, y.shape[1])
    if abs(report.output_frames - y.shape[1]) > 1:
        raise NearfutureError(
            f"the model gives {report.output_frames} outputs, but there are {y.shape[1]} targets a "
            f"row: audit.labels compares them one by one",
            parameter="targets",
        )
    y = y[:, :outputs].reshape(rows, outputs, -1)
    real = ~((y == _IGNORED) | (y != y)).any(axis=-1)
    if where is None:
        counts = setup.lengths or [len(setup.base)] * rows
        own = setup.own(outputs)
        return y, np.array([own < n for n in counts]) & real
    counted = _numbers(where).astype(bool)[:, :outputs]
    if counted.shape != y.shape[:2]:
        raise NearfutureError(
            f"`where` is (N, U) like the targets, not {counted.shape}", parameter="where"
        )
    return y, counted & real


def _numbers(values: Any) -> Array:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _copies(setup: Setup, matrix: Array, y: Array, counted: Array) -> list[Finding]:
    """Return targets that equal an input, so many frames on, which the output depends on."""
    x = setup.example.reshape(*setup.example.shape[:2], -1)
    own = setup.own(y.shape[1])
    tokens = x.dtype.kind in "iu"
    findings = []
    for offset in sorted(range(-x.shape[1] + 1, x.shape[1]), key=lambda k: (abs(k), k)):
        at = own + offset
        inside = (at >= 0) & (at < x.shape[1])
        use = counted & inside[None]
        depends = inside & matrix[np.arange(len(at)), np.clip(at, 0, x.shape[1] - 1)]
        if use.sum() < _FEW or not depends.any():
            continue
        source = x[:, np.clip(at, 0, x.shape[1] - 1)]
        for feature, target in np.ndindex(x.shape[2], y.shape[2]):
            a, b = source[..., feature][use], y[..., target][use]
            if np.unique(b).size < 2:
                continue
            equal = a == b if tokens else np.isclose(a, b, rtol=1e-5, atol=1e-8)
            if equal.all():
                findings.append(_copy(offset, feature, target, depends, use, x.shape[2]))
                break
        if findings:
            break
    return findings


def _copy(
    offset: int, feature: int, target: int, depends: Array, use: Array, features: int
) -> Finding:
    step = f" + {offset}" if offset > 0 else f" - {-offset}" if offset else ""
    what = f"input t{step}" + (f", feature {feature}" if features > 1 else "")
    if offset == 0:
        remedy = "shift the targets, or the model learns to copy"
    elif offset > 0:
        remedy = "mask the future, erase what is to be predicted, or the model learns to copy"
    else:
        remedy = "a target of the past is known already"
    return Finding(
        kind="label",
        message=(
            f"the target of output t is {what}, on which {int(depends.sum())} of {len(depends)} "
            f"outputs depend (seen in {int(use.sum())} targets): {remedy}"
        ),
        evidence={"offset": offset, "feature": feature, "target": target},
    )


def _countable(setup: Setup, matrix: Array, y: Array, counted: Array) -> list[Finding]:
    """Return targets that follow from how many frames remain, where outputs depend on the end."""
    rows, outputs, _ = y.shape
    counts = np.array(setup.lengths or [len(setup.base)] * rows)
    own = setup.own(outputs)
    remaining = np.broadcast_to(counts[:, None] - own[None], (rows, outputs))
    passed = np.broadcast_to(own[None], (rows, outputs))
    if not _follows(remaining[counted], y[counted]):
        return []
    if len(np.unique(counts)) > 1 and _follows(passed[counted], y[counted]):
        return []  # it follows from the position too, which any model may count
    if len(np.unique(counts)) == 1:
        return []  # in rows of one length, the end is as far as the beginning
    end = matrix[:, -1]
    depends = end & (own < matrix.shape[1] - 1)
    if not depends.any():
        return []
    return [
        Finding(
            kind="label",
            message=(
                f"the target follows from the number of frames that remain, which the model can "
                f"count: {int(depends.sum())} of {outputs} outputs depend on the last frame from "
                f"before it; at run time the end is not known yet"
            ),
            evidence={"outputs": int(depends.sum())},
        )
    ]


def _follows(key: Array, value: Array) -> bool:
    """Whether equal keys always have equal values, often enough to be no chance."""
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
