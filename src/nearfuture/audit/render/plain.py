"""A report as plain values, for JSON."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.report import Report


def to_json(report: Report) -> dict[str, Any]:
    """Convert a report to values of JSON; infinity becomes the string "inf".

    `matrix[u]` is a list of half-open `[first, end)` ranges of input frames.
    """
    values = {field.name: getattr(report, field.name) for field in dataclasses.fields(report)}
    values |= {
        "verdict": report.verdict,
        "holds": report.holds,
        "latency_ms": report.latency_ms,
        "stride": str(report.stride),
        "findings": [dataclasses.asdict(finding) for finding in report.findings],
        "lookahead_sources": [dataclasses.asdict(each) for each in report.lookahead_sources],
        "matrix": None if report.matrix is None else [runs(row) for row in report.matrix],
    }
    converted: dict[str, Any] = plain(values)
    return converted


def runs(row: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return where a row is true, as half-open ranges.

    >>> runs(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def plain(value: Any) -> Any:
    """Convert a value to what JSON can hold; infinity becomes a string."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # "inf", "-inf" or "nan"
    return value
