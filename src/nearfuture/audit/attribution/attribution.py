"""Name the operation by which the future, the padding or another row enters a model.

Method: run the model twice, with everything from input frame `s` on replaced in the second run, and
record every operation. An operation looks ahead where its output changes at a frame before the
first frame that changed in its inputs; the distance is how far it looks ahead on its own. A third
run, of another length, shows which axis of each array is time and at which rate it counts.

Example: `y = norm(conv(x))` on 10 frames, a convolution that looks 1 frame ahead and a
normalisation over time, with s = 7.

    operation    input changes from    output changes from    looks ahead
    conv1d       7                     6                      1
    group_norm   6                     0                      the whole sequence

The convolution is named with 1 frame, the normalisation as the first culprit. A head after it
changes from frame 0 as well, but so does its input: it is not named.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from importlib.util import find_spec

import numpy as np

from nearfuture.audit.adapters import CannotRun, OnnxAdapter, TorchAdapter
from nearfuture.audit.attribution.onnx_trace import OnnxTracer
from nearfuture.audit.attribution.operation import (
    Array,
    Operation,
    paired,
    unequal,
    valid_part_changed,
)
from nearfuture.audit.attribution.row_axis import RowAxes
from nearfuture.audit.attribution.time_axis import TimeAxes
from nearfuture.audit.attribution.torch_trace import trace_torch
from nearfuture.audit.checks import PaddedRows
from nearfuture.audit.probing import Probes
from nearfuture.audit.report import Culprit
from nearfuture.audit.setup import Setup

_MOVE_ONLY = {"reshape", "view", "transpose", "permute", "flatten", "unflatten", "contiguous", "t"}
"""Operations that change where values lie in memory, frames or not: none of them mixes any."""

_MAX_PHASES = 8
"""Places within a stride from which the future is replaced."""


class Attribution:
    """Compares traces of a model: a torch module, or an ONNX file.

    Args:
        setup: the model and the row that is probed.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._model = setup.model
        self._onnx: OnnxTracer | None = None
        self._unchanged: tuple[list[Operation], list[Operation] | None] | None = None
        adapter = self._model.adapter
        if isinstance(adapter, OnnxAdapter) and adapter.path is not None and find_spec("onnx"):
            self._onnx = OnnxTracer(adapter, adapter.path)

    @property
    def possible(self) -> bool:
        """Whether the model's operations can be recorded."""
        return self._onnx is not None or isinstance(self._model.adapter, TorchAdapter)

    def lookahead_sources(self, lookahead: float, output: int, middle: int) -> tuple[Culprit, ...]:
        """Return every operation that looks ahead on its own, the farthest first.

        Args:
            lookahead: of the whole model; no operation looks farther.
            output: the output that looks farthest.
            middle: the last input frame of an output in the middle of those that look so far.
        """
        setup, frames = self.setup, len(self.setup.base)
        phases = range(min(math.ceil(setup.stride), _MAX_PHASES))
        late = [min(frames * 3 // 4 + phase, frames - 1) for phase in phases]
        early = [int(setup.own(output + 1)[output]) + 1, frames // 4]
        culprits: list[Culprit] = []
        for start in dict.fromkeys((*late, middle, *early)):
            explained = sum(culprit.frames for culprit in culprits) >= lookahead
            if start < 1 or (culprits and start in early) or (explained and start == middle):
                continue
            # Near the start of the sequence only "to the very start" can be seen.
            culprits = _farthest(culprits + self.future(start), finite_first=True)
        places = [
            dataclasses.replace(culprit, frames=min(culprit.frames, lookahead))
            for culprit in culprits
        ]
        places.sort(key=lambda culprit: -culprit.frames)
        if places and math.isinf(lookahead) and math.isfinite(places[0].frames):
            if not setup.period:  # then time is not recognised everywhere inside
                return ()
            # It sank below floating-point resolution on the way.
            places[0] = dataclasses.replace(places[0], frames=math.inf)
        return tuple(places)

    def future(self, start: int) -> list[Culprit]:
        """Return operations that carry a change of every frame from `start` on to earlier ones."""
        if not self.possible:
            return []
        base, rows = self.setup.base, self._model.rows or 1
        n = len(base)
        probes = Probes(base, seed=self.setup.seed)
        probed = np.repeat(probes.suffixes(probes.kinds[0], np.array([start])), rows, axis=0)
        try:
            if self._unchanged is None:
                self._unchanged = self._of_two_lengths(rows)
            second = self._trace(probed, [n] * rows)
        except CannotRun:
            return []
        first, resized = self._unchanged
        return _ahead(first, second, resized, TimeAxes(n, start))

    def _of_two_lengths(self, rows: int) -> tuple[list[Operation], list[Operation] | None]:
        """Trace copies of the row, and of a shorter one where that can be run."""
        x = np.stack([self.setup.base] * rows)
        n = x.shape[1]
        first = self._trace(x, [n] * rows)
        # Shorter by whole strides: then every time axis shrinks in proportion.
        whole = math.lcm(max(1, math.ceil(self.setup.stride)), self.setup.period or 1)
        shorter = n - math.ceil(n / 2 / whole) * whole
        if not self.setup.period or shorter <= 0:
            return first, None
        return first, self._trace(x[:, :shorter], [shorter] * rows)

    def padding(self, rows: PaddedRows, aspect: str) -> list[Culprit]:
        """Return the operation by which padding enters: the first whose valid outputs change.

        An operation is the culprit where the valid part of an output changes and that of no input
        does. Which part of an array is valid shows in a run of the short row without padding: it is
        the part that both runs have.

        Args:
            rows: a short row beside one of full length.
            aspect: "content" or "amount" of the padding.
        """
        if not self.possible:
            return []
        left = self._model.spec.padding == "left"
        try:
            if aspect == "content":
                kind = Probes(self.setup.base, seed=self.setup.seed).kinds[0]
                padded = self._trace(rows.padded("zeros"), rows.lengths)
                changed = self._trace(rows.padded(kind), rows.lengths)
                alone = self._trace(rows.alone(rows.count), [rows.length] * rows.count)
            else:
                padded, alone = self._amounts(rows)
                changed = alone
        except CannotRun:
            return []
        exact = aspect == "content"
        for operation, (other, part) in paired(padded, changed, alone):
            if other is None or part is None:
                continue
            inputs = zip(operation.inputs, other.inputs, part.inputs, strict=False)
            outputs = zip(operation.outputs, other.outputs, part.outputs, strict=False)
            if any(valid_part_changed(*arrays, left=left, exact=exact) for arrays in inputs):
                continue
            if any(valid_part_changed(*arrays, left=left, exact=exact) for arrays in outputs):
                return [operation.culprit()]
        return []

    def _amounts(self, rows: PaddedRows) -> tuple[list[Operation], list[Operation]]:
        """Trace short rows with padding, and without."""
        n, count = rows.length, rows.count
        try:
            short = np.stack([rows.padded("zeros")[0]] * count)
            return self._trace(short, [n] * count), self._trace(rows.alone(count), [n] * count)
        except CannotRun:  # it needs a row of full length; then row 0 is the part that both have
            padded = self._trace(rows.padded("zeros"), rows.lengths)
            return padded, self._trace(rows.alone(1), [n])

    def batch(self, row: int) -> list[Culprit]:
        """Return operations by which a row begins to change with the other rows.

        Args:
            row: the row that changes: 0 with those after it, any other with those before it.
        """
        if not self.possible or self._model.rows is not None:
            return []
        base = self.setup.base
        probes = Probes(base, seed=self.setup.seed + 2)
        x, at = np.stack([base] * 3), -1 if row else 0
        others = np.stack([probes.substitute(probes.kinds[0])] * 3)
        others[at] = base
        n = [len(base)] * 3
        try:
            runs = self._trace(x, n), self._trace(others, n), self._trace(x[:2], n[:2])
        except CannotRun:
            return []
        axes, culprits = RowAxes(at), []
        for operation, (probed, resized) in paired(runs[0], *runs[1:]):
            if probed is not None and resized is not None:
                entry = axes.entry(operation, probed, resized)
                culprits += [] if entry is None else [entry.culprit()]
        return _farthest(culprits)

    def repetition(self, *, seeded: bool) -> list[Culprit]:
        """Return the first operation whose output differs when a call is made again.

        Args:
            seeded: whether the generators are seeded before each call: then it is a state that
                differs, otherwise chance.
        """
        if not self.possible:
            return []
        adapter = self._model.adapter
        if isinstance(adapter, TorchAdapter):
            self._model = dataclasses.replace(self._model, adapter=adapter.restarted())
        x = np.stack([self.setup.base] * (self._model.rows or 1))
        n = [x.shape[1]] * len(x)
        try:
            first, second = (self._trace(x, n, seeded=seeded) for _ in range(2))
        except CannotRun:
            return []
        for operation, (again,) in paired(first, second):
            if again is not None and any(
                a.shape != b.shape or unequal(a, b).any()
                for a, b in zip(operation.outputs, again.outputs, strict=False)
            ):
                return [operation.culprit()]
        return []

    def _trace(self, x: Array, lengths: Sequence[int], *, seeded: bool = True) -> list[Operation]:
        positional, named = self._model.arguments(x, lengths)
        if self._onnx is not None:
            return self._onnx.trace(positional, named)
        assert isinstance(self._model.adapter, TorchAdapter)
        return trace_torch(
            self._model.adapter, positional, named, seed=self.setup.seed if seeded else None
        )


def _ahead(
    first: Sequence[Operation],
    second: Sequence[Operation],
    other_length: Sequence[Operation] | None,
    axes: TimeAxes,
) -> list[Culprit]:
    """Return the operations of a run whose outputs change before their inputs do."""
    culprits = []
    for operation, (probed, resized) in paired(first, second, other_length or ()):
        if probed is not None:
            frames, source = axes.reach(operation, probed, resized)
            if frames > 0:
                culprits.append(source.culprit(frames))
    if not culprits and first and first[-1].outputs:
        reduction = axes.reduction_of(first[-1].outputs[0])
        culprits = [] if reduction is None else [reduction.culprit()]
    mixing = [culprit for culprit in culprits if culprit.operation.lower() not in _MOVE_ONLY]
    return _farthest(mixing or culprits)


def _farthest(culprits: Iterable[Culprit], *, finite_first: bool = False) -> list[Culprit]:
    """Return each operation once, with the farthest it looks; the farthest first, else in order.

    Args:
        culprits: culprits, operations repeated.
        finite_first: a finite number is worth more than the whole sequence.
    """
    best: dict[tuple[str, str, str | None], Culprit] = {}
    for culprit in culprits:
        known = best.get(culprit.place)
        if known is None:
            best[culprit.place] = culprit
        elif finite_first and math.isinf(known.frames) != math.isinf(culprit.frames):
            best[culprit.place] = culprit if math.isinf(known.frames) else known
        elif known.frames < culprit.frames:
            best[culprit.place] = culprit
    return sorted(best.values(), key=lambda culprit: -culprit.frames)
