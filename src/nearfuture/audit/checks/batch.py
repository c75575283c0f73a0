"""The output of one row does not change with the other rows of a batch."""

from __future__ import annotations

import numpy as np

from nearfuture.audit.checks.result import CheckResult, skipped
from nearfuture.audit.comparison import Comparison
from nearfuture.audit.probing import Probes
from nearfuture.audit.report import Finding
from nearfuture.audit.setup import Setup

_CHECKED = "whether rows of a batch are independent"


def check_batch(setup: Setup) -> CheckResult:
    """Check that a row does not change with the content and lengths of the rows beside it."""
    model, base = setup.model, setup.base
    if model.rows == 1:
        return skipped("rows of a batch were not tried together: the model takes one at a time")
    probes = Probes(base, seed=setup.seed + 2)
    rows = model.rows or 1 + len(probes.kinds)
    x = np.stack([base] * rows)
    alone = setup.run(x)
    # Row 0 sees the rows after it, another one those before it; one alone is kept, for what enters
    # may come from row 0.
    for kept in (0, rows // 2):
        others = x.copy()
        for row in set(range(rows)) - {kept}:
            others[row] = probes.substitute(probes.kinds[row % len(probes.kinds)])
        compared = Comparison(setup.run(others)[kept], alone[kept])
        if compared.differ:
            beside = "rows beside it" if kept == 0 else "rows before it"
            return _found(f"row {kept} changes with the {beside}: {compared.describe()}", kept)
    if model.knows_padding:
        shorter = [len(base)] + [max(1, len(base) // 2)] * (rows - 1)
        # Packed sequences have other shapes inside now.
        got = model.run(x, shorter).frames[0][: alone.shape[1]]
        compared = Comparison(got, alone[0], exact=False)
        if compared.differ:
            return _found(f"row 0 changes with the lengths beside it: {compared.describe()}", 0)
    return CheckResult(_CHECKED)


def _found(message: str, row: int) -> CheckResult:
    finding = Finding(kind="batch", message=message, evidence={"row": row})
    return CheckResult(_CHECKED, (finding,))
