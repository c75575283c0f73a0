"""What lies after a row's end, and how much of it, changes no valid output."""

from __future__ import annotations

import math

import numpy as np

from nearfuture.audit.adapters import CannotRun
from nearfuture.audit.audited_model import ModelOutput
from nearfuture.audit.checks.result import CheckResult, skipped
from nearfuture.audit.comparison import Comparison
from nearfuture.audit.probing import Probes
from nearfuture.audit.report import Finding
from nearfuture.audit.setup import Setup

_CHECKED = "whether padding changes anything"


def check_padding(setup: Setup) -> CheckResult:
    """Fill the padding of a short row with several values, and leave it out."""
    model, base, frames = setup.model, setup.base, len(setup.base)
    if not model.knows_padding and setup.lengths is None:
        return skipped(
            "padding was not tried: no lengths were given, and the model is not passed any"
        )
    n = padded_length(setup)
    try:
        alone = model.run(base[None, :n], [n])
    except CannotRun:
        alone = None
    zeros = np.zeros_like(base)
    zeros[:n] = base[:n]
    padded = model.run(zeros[None], [n])
    valid = _valid_outputs(setup, n, alone, padded)
    expected = padded.frames[0, :valid]
    if model.knows_padding:
        probes = Probes(base, seed=setup.seed + 3)
        for kind in probes.kinds:
            x = probes.substitute(kind).copy()
            x[:n] = base[:n]
            compared = Comparison(model.run(x[None], [n]).frames[0, :valid], expected)
            if compared.differ:
                return _found(
                    f"a row of {n} frames, padded to {frames}, changes with what is in its "
                    f"padding: {compared.describe()}",
                    n,
                    frames,
                )
    if alone is None:
        return skipped(
            f"a row without its padding was not tried: the model accepts {frames} frames only"
        )
    words = ("alone", "padded")
    compared = Comparison(expected, alone.frames[0, :valid], exact=False, words=words)
    if compared.differ:
        how = "" if model.knows_padding else "; the model needs lengths, a mask, or packing"
        return _found(
            f"a row of {n} frames changes when {frames - n} frames of zeros follow it: "
            f"{compared.describe()}{how}",
            n,
            frames,
        )
    return CheckResult(_CHECKED)


def padded_length(setup: Setup) -> int:
    """Return how many frames of the padded row are valid: the shortest given, or two thirds."""
    frames = len(setup.base)
    shorter = [n for n in setup.lengths or [] if n < frames]
    return min(shorter) if shorter else max(1, math.ceil(frames * 2 / 3))


def _found(message: str, valid: int, padded: int) -> CheckResult:
    evidence = {"valid": valid, "padded": padded}
    return CheckResult(_CHECKED, (Finding(kind="padding", message=message, evidence=evidence),))


def _valid_outputs(setup: Setup, n: int, alone: ModelOutput | None, padded: ModelOutput) -> int:
    """Return how many outputs of a row of n frames are valid."""
    if padded.lengths is not None:
        return int(padded.lengths[0])
    if alone is not None:
        return min(int(alone.frames.shape[1]), int(padded.frames.shape[1]))
    return int((setup.own(padded.frames.shape[1]) < n).sum())
