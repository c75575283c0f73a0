"""Whether a tiny influence is one: the same model in double precision knows.

Shapes: `U` output frames, `K` frames that are asked about.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.prepare import Prepared
from nearfuture.audit.probe import Probes
from nearfuture.audit.subject import Subject
from nearfuture.audit.target import CannotRun

Array = NDArray[Any]

ROUNDING = 256
"""A change below so many units of rounding, of the largest output, may be less or more than it
seems: it may go on where it no longer shows, or be the rounding of sums that it takes part in."""

_NEAREST = 8
_SHRINKS = 1e-4


class Doubt:
    """Asks a copy of the model in double precision.

    Args:
        prepared: the model.
        probes: of the sequence in question.
    """

    def __init__(self, prepared: Prepared, probes: Probes) -> None:
        self._probes = probes
        self._single = prepared.subject
        self._double: Subject | None = None
        target = prepared.subject.target.in_double()
        if target is not None and probes.base.dtype.kind == "f":
            form, seed = prepared.subject.form, prepared.subject.seed
            self._double = Subject(target, form, np.dtype(np.float64), seed=seed)
            self._double.rows = prepared.subject.rows

    def goes_on(self, output: int, frames: Array) -> bool | None:
        """Whether an influence that sank below rounding reaches any of the nearest of these frames.

        `0 · NaN` is NaN: windows that end in 0 and masks that multiply let NaN through where no
        finite value passes.

        Returns:
            False: it ended where it seemed to. None: nobody can tell.
        """
        if not len(frames):
            return False
        sizes = self._sizes(self._double, output, frames[:_NEAREST])
        return None if sizes is None else bool((sizes > 0).any())

    def is_rounding(self, output: int, frames: Array, tiny: float) -> bool:
        """Whether an output changes with these frames only as much as rounding does.

        A transform that sums over all frames (an FFT) spreads the rounding of each to all outputs.
        Where even the nearest frames do no more, and less in double precision, that is all it is.
        """
        nearest = frames[:_NEAREST]
        single, double = (
            self._sizes(each, output, nearest) for each in (self._single, self._double)
        )
        if single is None or double is None or not 0 < single.max() < tiny:
            return False
        return bool(double.max() <= _SHRINKS * single.max())

    def _sizes(self, subject: Subject | None, output: int, frames: Array) -> Array | None:
        """(K,): how much an output changes with each frame; None where that cannot be had."""
        if subject is None:
            return None
        probes = Probes(self._probes.base.astype(subject.dtype), seed=self._single.seed)
        rows = np.concatenate([probes.base[None], probes.frames(probes.kinds[0], frames)])
        try:
            y = subject.run(rows, [len(probes.base)] * len(rows)).frames[:, output]
        except CannotRun:
            return None
        if y.dtype != subject.dtype:
            return None  # it computes with other digits somewhere
        return np.asarray(np.abs(y[1:].astype(np.float64) - y[0]).max(axis=-1))


def epsilon(values: Array) -> float:
    """One unit of rounding, relative to 1; 0 for whole numbers."""
    return float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 0.0
