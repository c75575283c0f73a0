"""Tell rounding from influence, with a copy of the model in another precision.

A change of an output that is as small as rounding has two possible causes, which look the same:

* rounding alone. An operation that sums over all frames (an FFT, a scan by matrix products) rounds
  each output differently when any input changes. In double precision the change shrinks by 2^-29.
* an influence that has become small on its way, such as that of the first frame on a recurrent
  state 200 steps later. In double precision it keeps its size, and continues to frames from which
  float32 shows nothing.

So the same probe is put to two copies that differ in precision, and the two changes are compared: a
model that answers in float64 is compared with a copy in float32, any other with one in float64.
Where there is no second copy, an influence as small as rounding is undecided.

Example: a causal convolution by FFT, y = irfft(rfft(x) · rfft(k)). Output 0 changes by 3e-8 when
frame 5 is replaced in float32, and by 6e-17 in float64: the ratio 2e-9 is below 1e-4, so this is
rounding, and the lookahead is 0. If the kernel had a tap of 1e-8 five frames ahead, both changes
would be about 1e-8: an influence, and a lookahead of 5.

Shapes: `U` output frames, `K` input frames in question.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.adapters import CannotRun, Precision
from nearfuture.audit.audited_model import AuditedModel
from nearfuture.audit.probing.probes import Probes
from nearfuture.audit.setup import Setup

Array = NDArray[Any]

ROUNDING = 256
"""A change below so many units of rounding, of the largest output, may be rounding alone."""

_NEAREST = 8
_SHRINKS = 1e-4


class RoundingCheck:
    """Compare a model with its copy in another precision.

    Args:
        setup: the model.
        probes: probes of the sequence in question.
    """

    def __init__(self, setup: Setup, probes: Probes) -> None:
        self._probes = probes
        self._model = setup.model
        self._answers_in_float64 = setup.trial.dtype == np.float64
        self._other: AuditedModel | None = None
        precision: Precision = "float32" if self._answers_in_float64 else "float64"
        if adapter := setup.model.adapter.in_precision(precision):
            is_float = probes.base.dtype.kind == "f"
            dtype = np.dtype(precision) if is_float else probes.base.dtype
            self._other = replace(setup.model, adapter=adapter, dtype=dtype)

    def continues(self, output: int, frames: Array) -> bool | None:
        """Whether an influence that sank below rounding reaches any of the nearest of these frames.

        `0 · NaN` is NaN: windows that end in 0 and masks that multiply let NaN through where no
        finite value passes.

        Returns:
            False: it ends where it seemed to end. None: there is no copy in double precision.
        """
        if not len(frames):
            return False
        if self._answers_in_float64:
            return None
        sizes = self._other_sizes(output, frames[:_NEAREST])
        return None if sizes is None else bool((sizes > 0).any())

    def is_rounding(self, output: int, frames: Array, tiny: float) -> bool | None:
        """Whether an output changes with these frames only as much as rounding does.

        Args:
            output: the output.
            frames: (K,) input frames, the nearest first.
            tiny: a change below this may be rounding.

        Returns:
            None: it may be rounding, and there is no copy in another precision.
        """
        nearest = frames[:_NEAREST]
        own = self._sizes(self._model, output, nearest)
        if own is None or not 0 < own.max() < tiny:
            return False
        other = self._other_sizes(output, nearest)
        if other is None:
            return None
        single, double = (other, own) if self._answers_in_float64 else (own, other)
        return bool(double.max() <= _SHRINKS * single.max())

    def _other_sizes(self, output: int, frames: Array) -> Array | None:
        return None if self._other is None else self._sizes(self._other, output, frames)

    def _sizes(self, model: AuditedModel, output: int, frames: Array) -> Array | None:
        """Return (K,): how much an output changes with each frame; None where that is unknown."""
        probes = Probes(self._probes.base.astype(model.dtype), seed=model.spec.seed)
        rows = np.concatenate([probes.base[None], probes.frames(probes.kinds[0], frames)])
        try:
            y = model.run(rows, [len(probes.base)] * len(rows)).frames[:, output]
        except CannotRun:
            return None
        if model is self._other and (y.dtype == np.float64) == self._answers_in_float64:
            return None  # it computes in the same precision in spite of everything
        return np.asarray(np.abs(y[1:].astype(np.float64) - y[0]).max(axis=-1))
