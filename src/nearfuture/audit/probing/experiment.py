"""The smallest experiment that shows a dependency, in words.

Shapes: `U` output frames, `E` values of an output frame.
"""

from __future__ import annotations

import numpy as np

from nearfuture.audit.comparison import difference, epsilon, gaps, largest
from nearfuture.audit.probing.probes import Probes
from nearfuture.audit.setup import Setup

_AS_ROUNDING = 8
"""A change below so many units of rounding is called as small as rounding."""


def smallest_experiment(setup: Setup, kind: str, output: int, frame: int) -> str:
    """Describe the smallest change of an input that changes an output, with its numbers."""
    base, message = setup.base, f"output {output} changes with input {frame}"
    if kind == "nan":
        return f"{message} (it becomes NaN; finite changes sink below rounding on the way)"
    probes = Probes(base, seed=setup.seed)
    changed = [probes.frames(each, np.array([frame])) for each in probes.kinds]
    y = setup.run(np.concatenate([base[None], *changed]))
    before, after = y[0, output], y[1:, output]
    sizes = gaps(after, before)
    if not sizes.max():
        return f"{message} and what follows it"
    tiny = sizes.max() < _AS_ROUNDING * epsilon(y) * largest(y[0])
    faint = ", a change as small as rounding" if tiny and kind else ""
    return f"{message} ({difference(after[int(sizes.argmax())], before)}{faint})"
