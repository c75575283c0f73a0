"""Equal calls give equal results, whatever was called between them, and leave no state behind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nearfuture.audit.adapters import OnnxAdapter
from nearfuture.audit.checks.result import CheckResult
from nearfuture.audit.comparison import Comparison
from nearfuture.audit.probing import Probes
from nearfuture.audit.report import Finding
from nearfuture.audit.setup import Setup

_CHECKED = "whether equal calls give equal results"


def check_repeat(setup: Setup) -> tuple[CheckResult, Setup | None]:
    """Check that two calls with the same input give the same output.

    Returns:
        What was found, and the setup in which calls can be compared from here on: one that resets
        the model before every call where it keeps a state; None where nothing can be compared.
    """
    if setup.second_call_error:
        message = (
            f"a call leaves a state behind that the next call fails on: {setup.second_call_error}"
        )
        return _found(Finding(kind="state", message=message)), setup
    model, base = setup.model, setup.base[None]
    probes = Probes(setup.base, seed=setup.seed + 1)
    before = model.adapter.state()
    first = setup.run(base)
    if isinstance(model.adapter, OnnxAdapter):
        compared = Comparison(setup.run(base)[0], first[0])
        if compared.differ:
            message = (
                f"it draws random numbers: two equal calls differ, {compared.describe()}; ONNX "
                f"Runtime cannot be seeded, so nothing else can be compared"
            )
            return _found(Finding(kind="nondeterminism", message=message)), None
    setup.run(probes.substitute(probes.kinds[-1])[None])
    second = setup.run(base)
    unseeded = [setup.run(base, seeded=False)[0] for _ in range(2)]
    after = model.adapter.state()
    changed = [name for name in before if not np.array_equal(before[name], after[name])]
    compared = Comparison(second[0], first[0])
    if compared.differ:
        return _kept_state(setup, compared, changed)
    compared = Comparison(unseeded[1], unseeded[0])
    if compared.differ:
        message = (
            f"it draws random numbers: two equal calls differ, {compared.describe()}; with the "
            f"generators seeded before each call they agree, and so it was audited"
        )
        return _found(Finding(kind="nondeterminism", message=message)), setup
    if changed:
        message = f"calls change {', '.join(changed)}, though not the result of the example"
        evidence = {"changed": changed}
        return _found(
            Finding(kind="state", message=message, severity="notice", evidence=evidence)
        ), setup
    return CheckResult(_CHECKED), setup


def _kept_state(
    setup: Setup, compared: Comparison, changed: list[str]
) -> tuple[CheckResult, Setup | None]:
    """Return the finding, and a setup that resets the model before every call, if that helps."""
    message = f"the same input gives another result after another call: {compared.describe()}"
    if changed:
        message += f"; calls change {', '.join(changed)}"
    steady = None
    if adapter := setup.model.adapter.reset_each_call():
        reset = replace(setup, model=replace(setup.model, adapter=adapter))
        first, second = (reset.run(setup.base[None])[0] for _ in range(2))
        steady = None if Comparison(second, first).differ else reset
    if steady is None:
        message += "; nothing else can be compared"
    return _found(
        Finding(
            kind="state" if steady or changed else "nondeterminism",
            message=message,
            evidence={"changed": changed},
        )
    ), steady


def _found(finding: Finding) -> CheckResult:
    return CheckResult(_CHECKED, (finding,))
