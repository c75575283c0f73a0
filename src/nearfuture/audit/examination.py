"""One audit under way: every question in order, and the report."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit import check
from nearfuture.audit.blame import Blame
from nearfuture.audit.dependency import ahead_of, dependency_matrix
from nearfuture.audit.doubt import epsilon
from nearfuture.audit.prepare import Prepared
from nearfuture.audit.probe import Probes, difference
from nearfuture.audit.report import Culprit, Finding, Report, allowed_frames
from nearfuture.audit.search import Ahead, boundless, farthest_ahead
from nearfuture.audit.target import CannotRun, OnnxTarget

Array = NDArray[Any]

_AS_ROUNDING = 8

_MOST_PHASES = 8
"""Places within a stride at which the search for the culprit begins."""

_MATRIX_FRAMES = 2000
"""Beyond, a matrix takes a while and is drawn only where it is asked for."""


@dataclass(frozen=True, kw_only=True)
class _Sight:
    """Who looks at whom, as far as it was measured.

    Attributes:
        matrix, lookahead, lookback, fades_ahead, fades_back: as in `Report`.
        kind: the probe that showed the farthest look ahead.
        output: the output that looks so far.
        last: (U,) the last input frame that each output looks at.
        middle: the same of an output in the middle of those that look so far.
    """

    matrix: Array | None
    lookahead: float
    lookback: float | None
    fades_ahead: bool
    fades_back: bool
    kind: str
    output: int
    last: Array
    middle: int


class Examination:
    """One audit under way."""

    def __init__(
        self,
        prepared: Prepared,
        *,
        frame_ms: float | None,
        at_most: float | None,
        at_most_ms: float | None,
        observed: int,
        shape: tuple[int, ...],
    ) -> None:
        self.prepared = prepared
        self.frame_ms = frame_ms
        self.at_most = at_most
        self.at_most_ms = at_most_ms
        self.observed = len(prepared.base) if prepared.timeless else observed
        self.shape = shape
        self.subject = prepared.subject
        self._blame = Blame(prepared.subject)
        self.findings: list[Finding] = []
        self.checked: list[str] = ["whether equal calls give equal answers"]
        self.notes = list(prepared.notes)

    @property
    def _limit(self) -> float:
        """The lookahead allowed, in input frames."""
        return allowed_frames(self.at_most, self.at_most_ms, self.frame_ms)

    def report(
        self,
        matrix: bool | None,
        step: Callable[..., Any] | None,
        start: Callable[[], Any] | None,
        finish: Callable[[Any], Any] | None,
    ) -> Report:
        """Everything, in order."""
        found, steady = check.equal_calls(self.prepared)
        self.findings += found
        if not steady:
            return self._report(None, ())
        self._others()
        sight = self._look(matrix)
        if not any(finding.kind == "nondeterminism" for finding in self.findings):
            last = sight.last
            if math.isfinite(sight.lookahead):  # a unit that saturates may hide a part of it
                own = self.prepared.own(len(last))
                last = np.maximum(last, own + math.ceil(sight.lookahead))
            result = check.length(self.prepared, last)
            self._after(result, "whether other lengths change only what looks at their ends")
        culprits = self._looks_ahead(sight)
        self._future(sight, culprits)
        sight = self._promise(sight)
        if step is not None:
            self.findings += check.streaming(self.prepared, step, start, finish)
            self.checked.append("whether chunks give what the whole gives")
        return self._report(sight, culprits)

    def _others(self) -> None:
        """Batch and padding."""
        found, note = check.batch(self.prepared)
        if found:
            self.findings.append(self._blame_batch(found[0]))
            self._one_row_at_a_time()
            self.checked.append("whether rows of a batch are strangers")
        else:
            self._after((found, note), "whether rows of a batch are strangers")
        if any(finding.kind == "nondeterminism" for finding in self.findings):
            self.notes.append(
                "padding and other lengths were not tried: what is drawn would differ"
            )
            return
        found, note = check.padding(self.prepared)
        if found:
            n = int(found[0].evidence["valid"])
            found = [_with(found[0], self._blame_from(n, lengths=n))]
        self._after((found, note), "whether padding changes anything")

    def _after(self, result: tuple[list[Finding], str | None], what: str) -> None:
        found, note = result
        self.findings += found
        if note is None:
            self.checked.append(what)
        else:
            self.notes.append(note)

    def _one_row_at_a_time(self) -> None:
        rows, self.subject.rows = self.subject.rows, 1
        try:
            base = self.prepared.base
            self.prepared.trial = self.subject.run(base[None], [len(base)]).frames
            self.prepared.rows = 1
        except CannotRun:
            self.subject.rows = rows

    def _look(self, draw: bool | None) -> _Sight:
        """Every output, or only the one that looks farthest."""
        base = self.prepared.base
        if not (len(base) <= _MATRIX_FRAMES if draw is None else draw):
            found = farthest_ahead(self.prepared, base, observed=self.observed)
            own = self.prepared.own(self.prepared.trial.shape[1])
            last = np.minimum(own + found.frames, len(base) - 1)
            last[found.output] = found.last
            self.checked.append("the lookahead, by changing whole futures")
            self._say(found.rounded)
            ahead, more = boundless(self.prepared, found, self.observed, self._limit)
            return _Sight(
                matrix=None,
                lookahead=ahead,
                lookback=None,
                fades_ahead=more,
                fades_back=False,
                kind=found.kind,
                output=found.output,
                last=last,
                middle=found.last,
            )
        looks = dependency_matrix(self.prepared, Probes(base, seed=self.subject.seed))
        self.checked.append("every input frame against every output frame")
        self._say(looks.rounded)
        matrix = looks.matrix
        if blind := int((~matrix.any(axis=1)).sum()):
            self.notes.append(
                f"{blind} of {len(matrix)} outputs look at nothing: no input changes them"
            )
        own = self.prepared.own(len(matrix))
        beyond = ahead_of(matrix, own, self.observed)
        worst = int(beyond.argmax())
        end = matrix.shape[1] - 1
        last = np.where(matrix.any(axis=1), end - matrix[:, ::-1].argmax(axis=1), -1)
        farthest = np.flatnonzero(beyond == beyond[worst])
        touches = bool(beyond[worst] and (last[farthest] == last.max()).all())
        found = Ahead(int(beyond[worst]), worst, int(last[worst]), touches, False, looks.witness)
        ahead, more = boundless(self.prepared, found, self.observed, self._limit)
        return _Sight(
            matrix=matrix,
            lookahead=ahead,
            lookback=_lookback(matrix, own),
            fades_ahead=looks.fades_ahead or more,
            fades_back=looks.fades_back,
            kind=looks.witness,
            output=worst,
            last=last,
            middle=int(last[farthest[len(farthest) // 2]]),
        )

    def _say(self, rounded: bool) -> None:
        """What a reader of the numbers should know."""
        if rounded:
            self.notes.append(
                "changes of the size of rounding were not counted: they shrink in double precision"
            )
        if self.prepared.trial.dtype.kind != "f":
            self.notes.append(
                "the outputs are whole numbers: only what makes one of them another shows; audit "
                "the scores that they are decided by"
            )

    def _looks_ahead(self, sight: _Sight) -> tuple[Culprit, ...]:
        """Every place that looks ahead on its own, the farthest first."""
        if not sight.lookahead:
            return ()
        if not self._blame.possible:
            if isinstance(self.subject.target, OnnxTarget):
                self.notes.append("to name the node needs onnx: pip install onnx")
            return ()
        frames = len(self.prepared.base)
        found: dict[tuple[str, str, str | None], Culprit] = {}
        phases = range(min(math.ceil(self.prepared.stride), _MOST_PHASES))
        late = [min(frames * 3 // 4 + phase, frames - 1) for phase in phases]
        early = [int(self.prepared.own(sight.output + 1)[sight.output]) + 1, frames // 4]
        for start in dict.fromkeys((*late, sight.middle, *early)):
            if start < 1 or (found and start in early):
                continue
            for culprit in self._blame_from(start):
                key = (culprit.where, culprit.operation, culprit.source)
                known = found.get(key)
                # Near the start of the sequence only "to the very start" can be seen.
                farther = known is None or known.frames < culprit.frames < math.inf
                if farther or (known is not None and math.isinf(known.frames)):
                    found[key] = culprit
        places = [
            dataclasses.replace(culprit, frames=min(culprit.frames, sight.lookahead))
            for culprit in found.values()
        ]
        places.sort(key=lambda culprit: -culprit.frames)
        if places and math.isinf(sight.lookahead) and math.isfinite(places[0].frames):
            if not self.prepared.any_length:  # then time is not recognised everywhere inside
                places = []
            else:  # it sank below the arithmetic on the way
                places[0] = dataclasses.replace(places[0], frames=math.inf)
        if not places:
            self.notes.append("where the future enters could not be found")
        return tuple(places)

    def _blame_from(self, frame: int, lengths: int | None = None) -> list[Culprit]:
        """Places that carry a change of everything from `frame` on to what comes before."""
        if not self._blame.possible:
            return []
        base = self.prepared.base
        probes = Probes(base, seed=self.subject.seed)
        n = len(base) if lengths is None else lengths
        rows = self.subject.rows or 1
        x = np.stack([base] * rows)
        probed = np.repeat(probes.suffixes(probes.kinds[0], np.array([frame])), rows, axis=0)
        # Shorter by whole strides: then every axis of time shrinks in proportion.
        whole = max(1, math.ceil(self.prepared.stride))
        until = len(base) // 2 if lengths is None else (lengths + len(base)) // 2
        shorter = len(base) - math.ceil((len(base) - until) / whole) * whole
        other = None
        if self.prepared.any_length and shorter > 0:
            other = (x[:, :shorter], [min(n, shorter)] * rows)
        try:
            return self._blame.over_time((x, [n] * rows), (probed, [n] * rows), frame, other)
        except CannotRun:
            return []

    def _blame_batch(self, finding: Finding) -> Finding:
        if not self._blame.possible or self.subject.rows not in (None, 1):
            return finding
        base = self.prepared.base
        probes = Probes(base, seed=self.subject.seed + 2)
        x = np.stack([base] * 3)
        beside = x.copy()
        beside[1:] = probes.substitute(probes.kinds[0])
        n = [len(base)]
        try:
            found = self._blame.over_rows((x, n * 3), (beside, n * 3), (x[:2], n * 2))
        except CannotRun:
            return finding
        return _with(finding, found)

    def _future(self, sight: _Sight, culprits: tuple[Culprit, ...]) -> None:
        ahead, limit = sight.lookahead, self._limit
        output, last = sight.output, int(sight.last[sight.output])
        culprit = culprits[0] if culprits else None
        norm = culprit is not None and _normalises(culprit)
        if ahead <= limit and not (norm and math.isinf(ahead)):
            return
        message = self._seen(sight.kind, output, last)
        if ahead > limit:
            far = last - int(self.prepared.own(output + 1)[output])
            message += f", {far} {self.subject.target.unit}{'s' * (far != 1)} ahead"
            if self.at_most is not None:
                message += f"; at most {self.at_most:g} allowed"
            elif self.at_most_ms is not None:
                message += f"; at most {self.at_most_ms:g} ms allowed"
        self.findings.append(
            Finding(
                kind="normalisation" if norm else "future",
                message=message,
                breaks=ahead > limit,
                culprit=culprit,
                evidence={"output": output, "input": last},
            )
        )

    def _promise(self, sight: _Sight) -> _Sight:
        """Compare with the latency that the model itself declares."""
        promised = self.subject.target.declared_ms
        if promised is None or self.frame_ms is None or math.isinf(promised):
            return sight
        measured = (sight.lookahead + 1) * self.frame_ms
        self.checked.append(f"whether the latency it declares, {promised:g} ms, is kept")
        if measured > promised + 1e-6:
            message = f"it declares a latency of {promised:g} ms, but needs {measured:g} ms"
            self.findings.append(Finding(kind="latency", message=message))
        exact = abs(measured - promised) < 1e-6  # windows end in weights that are almost 0
        return dataclasses.replace(sight, fades_ahead=False) if exact else sight

    def _seen(self, kind: str, output: int, frame: int) -> str:
        """What was seen, as the shortest experiment that shows it."""
        base = self.prepared.base
        what = f"output {output} changes with input {frame}"
        if kind == "nan":
            return f"{what} (it turns to NaN; finite changes sink below the arithmetic on the way)"
        probes = Probes(base, seed=self.subject.seed)
        tried = [probes.frames(each, np.array([frame])) for each in probes.kinds]
        y = self.subject.run(np.concatenate([base[None], *tried]), [len(base)] * (1 + len(tried)))
        before, after = y.frames[0, output], y.frames[1:, output]
        sizes = np.nan_to_num(np.abs(after.astype(np.float64) - before), nan=np.inf).max(axis=-1)
        if not sizes.max():
            return f"{what} and what follows it"
        changed = after[int(sizes.argmax())]
        tiny = sizes.max() < _AS_ROUNDING * epsilon(y.frames) * np.abs(y.frames[0]).max()
        faint = ", a change as small as rounding" if tiny else ""
        return f"{what} ({difference(changed, before)}{faint})"

    def _report(self, sight: _Sight | None, looks_ahead: tuple[Culprit, ...]) -> Report:
        return Report(
            target=self.subject.target.name,
            unit=self.subject.target.unit,
            shape=self.shape,
            layout=self.subject.form.layout,
            input_frames=len(self.prepared.base),
            output_frames=self.prepared.trial.shape[1],
            stride=self.prepared.stride,
            offset=self.prepared.offset,
            matrix=None if sight is None else sight.matrix,
            lookahead=None if sight is None else sight.lookahead,
            lookback=None if sight is None else sight.lookback,
            fades_ahead=sight is not None and sight.fades_ahead,
            fades_back=sight is not None and sight.fades_back,
            frame_ms=self.frame_ms,
            observed=self.observed,
            at_most=self.at_most,
            at_most_ms=self.at_most_ms,
            findings=tuple(sorted(self.findings, key=lambda finding: not finding.breaks)),
            looks_ahead=looks_ahead,
            checked=tuple(self.checked),
            notes=tuple(self.notes),
            seed=self.subject.seed,
        )


def _lookback(matrix: Array, own: Array) -> float:
    """The farthest look back; inf where whoever looks farthest looks at the first frame."""
    looked = matrix.any(axis=1)
    if not looked.any():
        return 0
    first = matrix.argmax(axis=1)
    back = np.where(looked, np.maximum(own - first, 0), 0)
    farthest = looked & (back == back.max())
    if back.max() > 0 and bool((first[farthest] == 0).all()):
        return math.inf
    return int(back.max())


def _with(finding: Finding, culprits: Sequence[Culprit]) -> Finding:
    return dataclasses.replace(finding, culprit=culprits[0]) if culprits else finding


def _normalises(culprit: Culprit) -> bool:
    return any("norm" in word.lower() for word in (culprit.what, culprit.operation))
