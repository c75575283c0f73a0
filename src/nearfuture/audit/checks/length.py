"""A sequence that ends earlier changes only the outputs that depend on its end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.adapters import CannotRun
from nearfuture.audit.checks.result import CheckResult, skipped
from nearfuture.audit.comparison import Comparison
from nearfuture.audit.report import Finding
from nearfuture.audit.setup import Setup

_CHECKED = "whether other lengths change only what depends on their ends"


def check_length(setup: Setup, last: NDArray[np.int64]) -> CheckResult:
    """Check that outputs do not depend on the length of the sequence.

    Args:
        setup: the model.
        last: (U,) the last input frame that each output depends on.
    """
    base, frames = setup.base, len(setup.base)
    if setup.timeless:
        return CheckResult(_CHECKED)
    if not setup.period:
        return skipped("other lengths were not tried: the model accepts one only")
    whole = setup.run(base[None])[0]
    tried = (frames - 1, frames * 3 // 4, frames // 2, frames // 4)
    for n in sorted({setup.shorter(n) for n in tried} - {0}, reverse=True):
        try:
            shorter = setup.run(base[None, :n])[0]
        except CannotRun:
            continue
        if shorter.shape[1] != whole.shape[1]:
            return skipped(
                "other lengths were not compared: the outputs' width changes with the length"
            )
        free = np.flatnonzero(last[: len(shorter)] < n)
        compared = Comparison(shorter[free], whole[free], exact=False)
        if compared.differ:
            output = int(free[compared.first])
            depends = f"input {int(last[output])} at most" if last[output] >= 0 else "no input"
            message = (
                f"output {output} depends on {depends}, but changes when the sequence has {n} "
                f"frames instead of {frames}: {compared.describe(free)}"
            )
            evidence = {"frames": frames, "shorter": n, "output": output}
            return CheckResult(
                _CHECKED, (Finding(kind="length", message=message, evidence=evidence),)
            )
    return CheckResult(_CHECKED)
