"""From a model and an example to everything that the checks need: one call, then its axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.adapters import (
    Adapter,
    BundleAdapter,
    CannotRun,
    TorchAdapter,
    adapt,
    is_torch,
    tensor_to_numpy,
)
from nearfuture.audit.audited_model import AuditedModel
from nearfuture.audit.axes import find_axes, measure_stride
from nearfuture.audit.call import CallOptions, CallSpec, LatencyLimit
from nearfuture.audit.layout import SWAPPED, first_layer_reads_features_first, usual_layout
from nearfuture.audit.outputs import OtherOutputs, OutputPart, selecting
from nearfuture.audit.report import own_frames
from nearfuture.error import NearfutureError

Array = NDArray[Any]

TRIAL_ROWS = 8
"""Copies of the row in the first call; the search for the lookahead compares with its result."""

_MAX_ROWS = 32
_MAX_BYTES = 1 << 27
"""Limit of one call's input; fewer rows run together where they are long."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A model, the row that is probed, and what the first calls showed.

    Attributes:
        model: what is probed.
        shape: of the example as it was given.
        example: (N, T, …) with its lengths.
        base: (T, …), the row that is probed, of full length.
        stride: input frames per output frame.
        offset: the input frame that output 0 stands for.
        rows: how many probes run together.
        timeless: there is one output for the whole sequence.
        period: lengths that differ by multiples of this many frames can be run; 0: no other can.
        trial: (8, U, E), the result for copies of the row.
        observed: how many input frames are known before any output is wanted.
        second_call_error: what the second call raised, where a first call with the same input
            works; "" otherwise.
        others: outputs besides the one that `trial` is of.
        notes: how the model was understood.
        layout_question: why the layout may be another; "" where there is no doubt.
    """

    model: AuditedModel
    shape: tuple[int, ...]
    example: Array
    lengths: list[int] | None
    base: Array
    stride: Fraction
    offset: int
    rows: int
    timeless: bool
    period: int
    trial: Array
    observed: int
    second_call_error: str
    others: OtherOutputs
    notes: tuple[str, ...]
    layout_question: str = ""

    @property
    def seed(self) -> int:
        """Seed of everything that is drawn."""
        return self.model.spec.seed

    def shorter(self, frames: int) -> int:
        """Return the longest length of at most so many frames that can be run; 0 if none can."""
        if not self.period:
            return 0
        steps = -(-(len(self.base) - frames) // self.period)
        return max(0, len(self.base) - steps * self.period)

    def longer(self, base: Array) -> Array:
        """Return a row of more than twice the length that can be run."""
        more = self.period - len(self.base) % self.period
        return np.concatenate([base, base[::-1], base])[: 2 * len(base) + more]

    def of_length(self, frames: int) -> Array:
        """Return a row of at least so many frames that can be run, as few as possible."""
        steps = math.ceil((frames - len(self.base)) / self.period)
        length = len(self.base) + max(0, steps) * self.period
        both = np.concatenate([self.base, self.base[::-1]])
        return np.concatenate([both] * math.ceil(length / len(both)))[:length]

    def own(self, outputs: int) -> Array:
        """Return (U,): the input frame at which each output's own begins."""
        return own_frames(outputs, self.stride, self.offset)

    def run(self, x: Array, *, seeded: bool = True) -> Array:
        """Return the frames (N, U, E) of rows (N, T, …) without padding."""
        return self.model.run(x, [x.shape[1]] * len(x), seeded=seeded).frames

    def of(self, parts: Sequence[OutputPart]) -> Setup:
        """Return the same for other outputs of the model, which have equally many frames."""
        model, base, spec = selecting(self.model, parts), self.base, self.model.spec
        trial = model.run(np.stack([base] * len(self.trial)), [len(base)] * len(self.trial)).frames
        stride, offset = Fraction(1), spec.observed
        if not spec.observed or trial.shape[1] != len(base) - spec.observed:
            stride, offset = measure_stride(model, base, trial.shape[1], self.period), 0
        return replace(
            self,
            model=model,
            trial=trial,
            stride=stride,
            offset=offset,
            timeless=False,
            observed=spec.observed,
            others=OtherOutputs(),
        )

    def one_row_at_a_time(self) -> Setup:
        """Return the same with one row a call, where the model accepts that."""
        model = replace(self.model, rows=1)
        try:
            trial = model.run(self.base[None], [len(self.base)]).frames
        except CannotRun:
            return self
        return replace(self, model=model, trial=trial, rows=1)


def prepare(
    fn: Any,
    example: Any,
    lengths: Sequence[int] | None,
    options: CallOptions,
    limit: LatencyLimit | None = None,
) -> Setup:
    """Wrap a model, run it once, and find its axes, its stride and how many rows it accepts.

    Raises:
        NearfutureError: where the model cannot be run or understood.
    """
    spec = CallSpec(**options)
    adapter = adapt(fn, example, spec, limit.at_most_ms if limit else None)
    if isinstance(adapter, BundleAdapter):
        _check_bundle_options(lengths, limit)
        spec = replace(spec, output=None, stride=adapter.stride, layout=spec.layout or "NT")
        example = adapter.example() if example is None else example
    elif example is None:
        raise NearfutureError(
            "an `example` is needed: an array like those the model reads",
            parameter="example",
        )
    setup = _first_calls(fn, adapter, example, lengths, spec)
    layout = setup.model.layout
    if setup.period or layout not in SWAPPED:
        return setup
    # Features may have been read as time: then their number cannot change, but that of frames can.
    try:
        swapped = replace(spec, layout=SWAPPED[layout])
        other = _first_calls(fn, adapter, example, lengths, swapped)
    except NearfutureError:
        return setup
    if not other.period:
        return setup
    only = f"it runs on {len(setup.base)} frames only in layout {layout}"
    if spec.layout is None and first_layer_reads_features_first(adapter, setup.shape):
        note = f"input read as {other.model.layout}, as its first layer does: {only}"
        return replace(other, notes=(note, *other.notes))
    question = f"{only}; did you mean `layout` {other.model.layout}? There other lengths run too"
    if spec.layout is None:
        return replace(setup, layout_question=question)
    return replace(setup, notes=(question, *setup.notes))


def _first_calls(
    fn: Any, adapter: Adapter, example: Any, lengths: Sequence[int] | None, spec: CallSpec
) -> Setup:
    """Run a model in one layout."""
    x = _as_array(example, fn)
    streaming = all(hasattr(fn, part) for part in ("field", "start", "step", "finish"))
    guessed = spec.takes is None and lengths is not None and not streaming
    if spec.takes is None:
        spec = replace(spec, takes="nothing" if lengths is None and not streaming else "lengths")
    if spec.padding == "left" and spec.takes == "nothing" and lengths is None:
        raise NearfutureError(
            "`padding` has no effect without `lengths` or `takes`", parameter="padding"
        )
    model = AuditedModel(adapter, spec, spec.layout or usual_layout(x, adapter), x.dtype)
    if "N" not in model.layout:
        model = replace(model, rows=1)
    rows = model.canonical(x)
    counts = _checked_lengths(rows, x, lengths, model)
    row = 0 if counts is None else int(np.argmax(counts))
    base = rows[row]
    if counts is not None:
        base = base[: counts[row]] if spec.padding == "right" else base[-counts[row] :]
    notes = _remarks(fn, adapter, spec)
    try:
        model, whole = _first_answer(model, rows, base, notes)
    except CannotRun as error:
        if not guessed:
            raise
        raise _with_remedy(model, base, error) from error
    axes = find_axes(model, base, whole)
    model, notes = axes.model, [*notes, *axes.notes]
    trial = _checked_trial(model.read(whole, model.rows or TRIAL_ROWS).frames, adapter, base)
    layout = model.spec.output_layout
    timeless = layout is not None and "T" not in layout
    offset = 0
    if timeless:
        stride = Fraction(len(base))
    elif spec.stride is not None:
        stride = Fraction(spec.stride)
    elif spec.observed and trial.shape[1] == len(base) - spec.observed:
        stride, offset = Fraction(1), spec.observed
        notes.append(f"output u stands for input frame {offset} + u, the first not observed")
    else:
        if not axes.period and trial.shape[1] != len(base):
            notes.append(
                "if its outputs are one result for the whole sequence, say so with an "
                "`output_layout` without T, such as NHC"
            )
        stride = measure_stride(model, base, trial.shape[1], axes.period)
    most = min(_MAX_ROWS, max(1, _MAX_BYTES // max(1, base.nbytes)))
    even = math.ceil(len(base) / math.ceil(len(base) / most))  # so that no call is filled up
    return Setup(
        model=model,
        shape=tuple(np.shape(example)),
        example=rows,
        lengths=counts,
        base=base,
        stride=stride,
        offset=offset,
        rows=model.rows or max(min(2, most), even),
        timeless=timeless,
        period=axes.period,
        trial=trial,
        observed=len(base) if timeless else spec.observed,
        second_call_error=axes.second_call_error,
        others=axes.others,
        notes=tuple(notes),
    )


def _check_bundle_options(lengths: Any, limit: LatencyLimit | None) -> None:
    if limit is not None and limit.at_most is not None:
        raise NearfutureError(
            "a bundle reads samples, not frames: limit its latency in ms instead of `at_most` "
            f"{limit.at_most:g}",
            parameter="at_most",
        )
    if lengths is not None:
        raise NearfutureError(
            "`lengths` has no effect on a bundle: a stream ends where it ends",
            parameter="lengths",
        )


def _as_array(example: Any, fn: Any) -> Array:
    """Convert an example to numpy; values that numpy made float64 get the type of the weights."""
    if is_torch(example):
        return tensor_to_numpy(example)
    x = np.asarray(example)
    if x.dtype.kind not in "fiub":
        raise NearfutureError(f"an example holds numbers, not {x.dtype}", parameter="example")
    if x.dtype == np.float64 and is_torch(fn):
        import torch

        weights = (p for p in getattr(fn, "parameters", list)() if p.is_floating_point())
        if getattr(next(weights, None), "dtype", None) is torch.float32:
            return x.astype(np.float32)
    return x


def _checked_lengths(
    rows: Array, x: Array, lengths: Sequence[int] | None, model: AuditedModel
) -> list[int] | None:
    """Refuse an example that cannot be probed, and lengths that do not fit it."""
    frames, observed = rows.shape[1], model.spec.observed
    if frames < 2 or not rows.size:
        raise NearfutureError(
            f"the example has {frames} frame(s) in layout {model.layout} (shape {x.shape}): a "
            f"dependency matrix takes at least 2; say which axis is time with `layout`",
            parameter="example",
        )
    if rows.dtype.kind == "f" and not np.isfinite(rows).all():
        raise NearfutureError(
            "the example holds NaN or infinity: probe a model with finite values",
            parameter="example",
        )
    if not 0 <= observed < frames:
        raise NearfutureError(
            f"`observed` counts frames from 0 to less than all {frames} of the example, not "
            f"{observed}; one output for a whole window is an `output_layout` without T",
            code="out_of_range",
            parameter="observed",
        )
    if lengths is None:
        return None
    counts = [int(n) for n in lengths]
    if len(counts) != len(rows) or max(counts) > frames or min(counts) < 1:
        raise NearfutureError(
            f"`lengths` {counts} do not fit an example of {len(rows)} rows and {frames} frames",
            parameter="lengths",
        )
    return counts


def _remarks(fn: Any, adapter: Adapter, spec: CallSpec) -> list[str]:
    """Say how the model was understood where that is not obvious."""
    notes = []
    if adapter.time_first and spec.layout is None:
        notes.append(f"{adapter.name} reads time first (batch_first=False): layout TNC")
    if isinstance(adapter, TorchAdapter) and adapter.function is fn and not spec.train:
        training = [path or type(m).__name__ for path, m in adapter.modules().items() if m.training]
        if training:
            notes.append(
                f"the function calls a module in train mode ({training[0]}), and is audited like "
                f"this; call .eval() on it if that is not intended"
            )
    return notes


def _first_answer(
    model: AuditedModel, example: Array, base: Array, notes: list[str]
) -> tuple[AuditedModel, Any]:
    """Call the model with copies of the row, and find how many rows it accepts."""
    if model.rows is not None:
        return model, model.call(base[None], [len(base)])
    try:
        return model, model.call(np.stack([base] * TRIAL_ROWS), [len(base)] * TRIAL_ROWS)
    except CannotRun as error:
        refused = error
    for rows in dict.fromkeys((len(example), 1)):
        try:
            result = model.call(np.stack([base] * rows), [len(base)] * rows)
        except CannotRun as error:
            refused = error
            continue
        notes.append(f"the model accepts batches of {rows} only, so probing is slower")
        return replace(model, rows=rows), result
    raise refused


def _with_remedy(model: AuditedModel, base: Array, error: CannotRun) -> NearfutureError:
    """Return the model's own error; with the remedy where it runs without lengths."""
    alone = replace(model, spec=replace(model.spec, takes="nothing"))
    try:
        alone.call(base[None], None)
    except CannotRun:
        return error
    return NearfutureError(
        f"{model.adapter.name} does not accept lengths as its second argument: choose `takes` "
        f"(nothing, mask or padding_mask), and name that argument with `keyword` ({error})",
        parameter="takes",
    )


def _checked_trial(frames: Array, adapter: Adapter, base: Array) -> Array:
    if not frames.size:
        raise NearfutureError(
            f"{adapter.name} returns no frame for {len(base)} frames: give a longer example",
            parameter="example",
        )
    if frames.dtype.kind == "f" and np.isnan(frames).any():
        raise NearfutureError(
            f"{adapter.name} returns NaN for the example: where a mask hides every frame from "
            f"some frame, attention gives NaN; is a mask inverted?"
        )
    return frames
