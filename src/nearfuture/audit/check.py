"""What must hold besides the future: equal calls, strange rows, padding, length, chunks.

Each check returns findings, and says in a note what it could not try. Values of calls of the same
shape are compared bit for bit; of different shapes, within the rounding that other kernels bring.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.prepare import Prepared
from nearfuture.audit.probe import Probes, difference, differs
from nearfuture.audit.report import Finding, Kind
from nearfuture.audit.target import CannotRun, OnnxTarget

Array = NDArray[Any]

_TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2}
"""Of calls of different shapes, relative to the largest output."""


def equal_calls(prepared: Prepared) -> tuple[list[Finding], bool]:
    """Equal calls must give equal answers, whatever was called between them, and leave no trace.

    Returns:
        What was found, and whether calls can be compared from here on.
    """
    subject, base = prepared.subject, prepared.base
    probes = Probes(base, seed=subject.seed + 1)
    other = probes.substitute(probes.kinds[-1])[None]
    n = [len(base)]
    if prepared.trips:
        message = f"a call leaves something behind that the next one trips over: {prepared.trips}"
        return [Finding(kind="state", message=message)], True
    before = subject.target.state()
    seeded = [subject.run(base[None], n).frames]
    if isinstance(subject.target, OnnxTarget):
        again = subject.run(base[None], n).frames
        if _differ(again, seeded[0]):
            message = (
                f"it draws random numbers: two equal calls differ, {_where(again[0], seeded[0][0])}"
                f"; ONNX Runtime cannot be seeded, so nothing else can be compared"
            )
            return [Finding(kind="nondeterminism", message=message)], False
    subject.run(other, n)
    seeded.append(subject.run(base[None], n).frames)
    free = [subject.run(base[None], n, seeded=False).frames for _ in range(2)]
    after = subject.target.state()
    left = [name for name in before if not np.array_equal(before[name], after[name])]
    traces = f"; calls change {', '.join(left)}" if left else ""
    if _differ(seeded[0], seeded[1]):
        subject.target.forget()
        steady = subject.target.forgets and not _differ(
            *(subject.run(base[None], n).frames for _ in range(2))
        )
        where = _where(seeded[1][0], seeded[0][0])
        message = f"the same input gives another answer after another call: {where}{traces}"
        if not steady:
            message += "; nothing else can be compared"
        kind: Kind = "state" if steady or left else "nondeterminism"
        return [Finding(kind=kind, message=message, evidence={"left behind": left})], steady
    if _differ(free[0], free[1]):
        message = (
            f"it draws random numbers: two equal calls differ, {_where(free[1][0], free[0][0])}; "
            f"with the generators set before each call they agree, and so it was audited"
        )
        return [Finding(kind="nondeterminism", message=message)], True
    if left:
        message = f"calls change {', '.join(left)}, though not the answer to the example"
        finding = Finding(
            kind="state", message=message, breaks=False, evidence={"left behind": left}
        )
        return [finding], True
    return [], True


def batch(prepared: Prepared) -> tuple[list[Finding], str | None]:
    """A row's answer must not change with the rows beside it."""
    subject, base = prepared.subject, prepared.base
    if subject.rows == 1 or (subject.rows is None and "N" not in subject.form.layout):
        return [], "rows of a batch were not tried together: the model takes one at a time"
    probes = Probes(base, seed=subject.seed + 2)
    rows = subject.rows or 1 + len(probes.kinds)
    x = np.stack([base] * rows)
    n = [len(base)] * rows
    alone = subject.run(x, n).frames[0]
    beside = x.copy()
    for row in range(1, rows):
        beside[row] = probes.substitute(probes.kinds[row % len(probes.kinds)])
    got = subject.run(beside, n).frames[0]
    if _differ(got, alone):
        message = f"row 0 changes with the rows beside it: {_where(got, alone)}"
        return [Finding(kind="batch", message=message)], None
    if subject.form.takes != "nothing":
        shorter = [len(base)] + [max(1, len(base) // 2)] * (rows - 1)
        got = subject.run(x, shorter).frames[0][: len(alone)]
        if _far(got, alone):  # packed sequences have other shapes inside now
            where = _where(got, alone, _tolerance(alone))
            return [
                Finding(
                    kind="batch",
                    message=f"row 0 changes with the lengths beside it: {where}",
                )
            ], None
    return [], None


def padding(prepared: Prepared) -> tuple[list[Finding], str | None]:
    """What lies past a row's end, and how much of it, must change no valid output."""
    subject, base = prepared.subject, prepared.base
    told = subject.form.takes != "nothing"
    if not told and prepared.lengths is None:
        return [], ("padding was not tried: no lengths were given, and the model is not told any")
    frames = len(base)
    given = [n for n in prepared.lengths or [] if n < frames]
    n = min(given) if given else max(1, math.ceil(frames * 2 / 3))
    short = base[None, :n]
    try:
        alone_output = subject.run(short, [n])
    except CannotRun:
        alone_output = None
    zeros = np.zeros_like(base)
    zeros[:n] = base[:n]
    padded = subject.run(zeros[None], [n])
    valid = _valid(prepared, n, alone_output, padded)
    reference = padded.frames[0, :valid]
    if told:
        probes = Probes(base, seed=subject.seed + 3)
        for kind in probes.kinds:
            x = probes.substitute(kind).copy()
            x[:n] = base[:n]
            got = subject.run(x[None], [n]).frames[0, :valid]
            if got.shape != reference.shape or _differ(got, reference):
                return [
                    Finding(
                        kind="padding",
                        message=(
                            f"a row of {n} frames, padded to {frames}, changes with what is in its "
                            f"padding: {_where(got, reference)}"
                        ),
                        evidence={"valid": n, "padded": frames},
                    )
                ], None
    if alone_output is None:
        return [], f"a row without its padding was not tried: the model takes {frames} frames only"
    alone = alone_output.frames[0, :valid]
    if _far(reference, alone):
        where = _where(reference, alone, _tolerance(alone), words=("alone", "padded"))
        how = "" if told else ", and the model cannot know: hand it lengths, a mask, or pack them"
        return [
            Finding(
                kind="padding",
                message=(
                    f"a row of {n} frames changes when {frames - n} frames of zeros follow it: "
                    f"{where}{how}"
                ),
                evidence={"valid": n, "padded": frames},
            )
        ], None
    return [], None


def length(prepared: Prepared, last: Array) -> tuple[list[Finding], str | None]:
    """A sequence that ends earlier may change only what looks at or past its end.

    Args:
        prepared: the model.
        last: (U,) the last input frame that each output looks at.
    """
    subject, base = prepared.subject, prepared.base
    if prepared.timeless:
        return [], None
    if not prepared.any_length:
        return [], "other lengths were not tried: the model takes one only"
    frames = len(base)
    whole = subject.run(base[None], [frames]).frames[0]
    for n in sorted({frames - 1, frames * 3 // 4, frames // 2, frames // 4} - {0}, reverse=True):
        try:
            shorter = subject.run(base[None, :n], [n]).frames[0]
        except CannotRun:
            continue
        if shorter.shape[1] != whole.shape[1]:
            return [], "other lengths were not compared: the outputs' width changes with the length"
        free = np.flatnonzero(last[: len(shorter)] < n)
        got, expected = shorter[free], whole[free]
        if _far(got, expected):
            tolerance = _tolerance(expected)
            at = int(free[_first(got, expected, tolerance)])
            seen = f"input {int(last[at])} at most" if last[at] >= 0 else "no input"
            return [
                Finding(
                    kind="length",
                    message=(
                        f"output {at} looks at {seen}, but changes when the "
                        f"sequence has {n} frames instead of {frames}: "
                        f"{_where(got, expected, tolerance, free)}"
                    ),
                    evidence={"frames": frames, "shorter": n, "output": at},
                )
            ], None
    return [], None


def streaming(
    prepared: Prepared,
    step: Callable[..., Any],
    start: Callable[[], Any] | None,
    finish: Callable[[Any], Any] | None,
) -> list[Finding]:
    """An engineer's own `step(chunk, state) -> (frames, state)` must give what `forward` gives."""
    subject, base = prepared.subject, prepared.base
    whole = subject.run(base[None], [len(base)]).frames[0]
    target = subject.target
    rng = np.random.default_rng(subject.seed)
    frames = len(base)
    sizes = [[1] * frames, [frames], _cut(frames, itertools.repeat(2))]
    sizes.append(_cut(frames, itertools.cycle(range(1, 17))))
    sizes += [
        _cut(frames, iter(lambda: int(rng.integers(1, max(2, frames // 3))), 0)) for _ in "ab"
    ]
    for cut in sizes:
        state, at, pieces = (None if start is None else target.invoke(start)), 0, []
        for size in cut:
            chunk = subject.native(base[None, at : at + size])
            at += size
            answer = target.invoke(step, chunk, state)
            if not isinstance(answer, tuple) or len(answer) != 2:
                raise CannotRun(
                    f"step(chunk, state) answers with (frames, state), not {type(answer).__name__}"
                )
            y, state = answer
            pieces.append(subject.frames_of(y))
        if finish is not None:
            pieces.append(subject.frames_of(target.invoke(finish, state)))
        got = np.concatenate([piece for piece in pieces if piece.size] or [whole[:0]])
        shown = f"{cut[:6]}{' …' if len(cut) > 6 else ''}".replace("] …", ", …]")
        if len(got) != len(whole):
            return [
                Finding(
                    kind="streaming",
                    message=(
                        f"in chunks of {shown} frames it gives {len(got)} outputs, whole "
                        f"{len(whole)}"
                    ),
                    evidence={"chunks": cut},
                )
            ]
        if _far(got, whole):
            return [
                Finding(
                    kind="streaming",
                    message=(
                        f"in chunks of {shown} frames it differs from the whole: "
                        f"{_where(got, whole, _tolerance(whole), words=('whole', 'in chunks'))}"
                    ),
                    evidence={"chunks": cut},
                )
            ]
    return []


def _cut(frames: int, sizes: Iterator[int]) -> list[int]:
    """Chunks of these sizes, until there are no frames left."""
    cut: list[int] = []
    while sum(cut) < frames:
        cut.append(min(next(sizes), frames - sum(cut)))
    return cut


def _valid(prepared: Prepared, n: int, alone: Any, padded: Any) -> int:
    """How many outputs of a row of n frames count."""
    if padded.lengths is not None:
        return int(padded.lengths[0])
    if alone is not None:
        return min(int(alone.frames.shape[1]), int(padded.frames.shape[1]))
    own = prepared.own(padded.frames.shape[1])
    return int((own < n).sum())


def _differ(got: Array, expected: Array) -> bool:
    if got.shape != expected.shape:
        return True
    return bool(differs(got, expected).any())


def _tolerance(expected: Array) -> float:
    if expected.dtype.kind != "f" or not expected.size:
        return 0.0
    largest = float(np.abs(np.nan_to_num(expected.astype(np.float64))).max())
    return _TOLERANCE[str(expected.dtype)] * largest


def _far(got: Array, expected: Array) -> bool:
    if got.shape != expected.shape:
        return True
    gap = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    return bool((~(gap <= _tolerance(expected))).any())


def _first(got: Array, expected: Array, tolerance: float = 0.0) -> int:
    """The first frame of (U, E) that differs by more."""
    gap = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    return int((~(gap <= tolerance)).any(axis=-1).argmax())


def _where(
    got: Array,
    expected: Array,
    tolerance: float = 0.0,
    index: Array | None = None,
    words: tuple[str, str] = ("before", "after"),
) -> str:
    """A difference in words."""
    if got.shape != expected.shape:
        return f"{len(expected)} outputs {words[0]}, {len(got)} {words[1]}"
    # Beyond rounding the largest difference says most; bit for bit the first one does.
    gaps = np.nan_to_num(np.abs(got.astype(np.float64) - expected.astype(np.float64)), nan=np.inf)
    at = int(gaps.max(axis=-1).argmax()) if tolerance else _first(got, expected)
    output = at if index is None else int(index[at])
    return f"output {output}, {difference(got[at], expected[at], words)}"
