"""From what a user hands over to a subject that can be probed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.subject import Form, Subject, Takes
from nearfuture.audit.target import (
    CallableTarget,
    CannotRun,
    OnnxTarget,
    Target,
    TorchTarget,
    is_torch,
)
from nearfuture.error import NearfutureError

Array = NDArray[Any]

TRIAL_ROWS = 8
"""Copies of the row in the first call; the search for the lookahead compares with it."""

_MOST_ROWS = 32
_MOST_BYTES = 1 << 27
"""Of one call's input: fewer rows run together where they are long."""


@dataclass
class Prepared:
    """Everything the checks need.

    Attributes:
        subject: what is probed.
        example: (N, T, …) with its lengths.
        base: (T, …), the row that is probed, of full length.
        stride: input frames per output frame.
        rows: how many probes run together.
        timeless: one output for the whole sequence.
        any_length: whether it runs on shorter and longer sequences.
        trial: (8, U, E), the answer to copies of the row.
        offset: the input frame that output 0 stands for.
        trips: what the second call said, where the first left something behind; "" otherwise.
        notes: what the user should know about how it was understood.
    """

    subject: Subject
    example: Array
    lengths: list[int] | None
    base: Array
    stride: Fraction
    rows: int
    timeless: bool
    any_length: bool
    trial: Array
    offset: int = 0
    trips: str = ""
    notes: list[str] = field(default_factory=list)

    def own(self, outputs: int) -> Array:
        """(U,): the input frame at which each output's own begins, `offset + ⌊u · stride⌋`."""
        frames = [self.offset + math.floor(u * self.stride) for u in range(outputs)]
        return np.array(frames, np.int64)


def prepare(
    fn: Any,
    example: Any,
    lengths: Sequence[int] | None,
    *,
    layout: str | None,
    output: int | str | None,
    output_layout: str | None,
    takes: Takes | None,
    keyword: str | None,
    extra: Mapping[str, Any] | None,
    block: int,
    stride: Fraction | int | None,
    observed: int,
    train: bool,
    seed: int,
    name: str | None,
) -> Prepared:
    """Wrap a model, run it once, and learn its axes, its rate and how many rows it takes.

    Raises:
        NearfutureError: for what cannot be run or understood.
    """
    if block < 1:
        raise NearfutureError(f"a block is 1 value or more, not {block}")
    if stride is not None and not stride > 0:
        raise NearfutureError(f"a stride is above 0 input frames, not {stride}")
    x = _array(example, fn)
    target = _target(fn, example, name, train=train)
    streaming = all(hasattr(fn, part) for part in ("field", "start", "step", "finish"))
    guessed = takes is None and lengths is not None and not streaming
    if takes is None:
        takes = "lengths" if lengths is not None or streaming else "nothing"
    form = Form(
        layout=layout or _layout(x, target),
        output=output,
        output_layout=output_layout,
        takes=takes,
        keyword=keyword,
        extra=extra,
        block=block,
    )
    subject = Subject(target, form, x.dtype, seed=seed)
    rows = subject.canonical(x)
    if rows.shape[1] < 2 or not rows.size:
        raise NearfutureError(
            f"the example has {rows.shape[1]} frame(s) in layout {form.layout} (shape {x.shape}): "
            f"to see who looks at whom takes at least 2; say which axis is time with layout"
        )
    if rows.dtype.kind == "f" and not np.isfinite(rows).all():
        raise NearfutureError("the example holds NaN or infinity: probe a model with finite values")
    counts = None if lengths is None else [int(n) for n in lengths]
    if counts is not None and (
        len(counts) != len(rows) or max(counts) > rows.shape[1] or min(counts) < 1
    ):
        raise NearfutureError(
            f"lengths {counts} do not fit an example of {len(rows)} rows and {rows.shape[1]} frames"
        )
    if not 0 <= observed < rows.shape[1]:
        raise NearfutureError(
            f"observed counts frames from 0 to less than all {rows.shape[1]} of the example, not "
            f"{observed}; outputs for a whole window are said with an output_layout without T"
        )
    row = 0 if counts is None else int(np.argmax(counts))
    base = rows[row] if counts is None else rows[row, : counts[row]]
    notes = list(_remarks(fn, target, layout, train))
    try:
        whole = _first_answer(subject, rows, base, notes)
    except CannotRun as error:
        raise _hint(subject, base, error, guessed=guessed) from error
    any_length, trips = _learn_axes(subject, base, whole, output_layout, notes)
    first = subject.read(whole, subject.rows or TRIAL_ROWS).frames
    if not first.size:
        raise NearfutureError(
            f"{target.name} answers {len(base)} frames with none: give a longer example"
        )
    if first.dtype.kind == "f" and np.isnan(first).any():
        raise NearfutureError(
            f"{target.name} answers the example with NaN: where a mask hides every frame from some "
            f"frame, attention gives NaN; is a mask inverted?"
        )
    layout_out = subject.form.output_layout
    offset = 0
    timeless = layout_out is not None and "T" not in layout_out
    if timeless:
        rate = Fraction(len(base))
    elif stride is not None:
        rate = Fraction(stride)
    elif observed and first.shape[1] == len(base) - observed:
        rate, offset = Fraction(1), observed
        notes.append(f"output u stands for input frame {observed} + u, the first not observed")
    else:
        if not any_length and first.shape[1] != len(base):
            notes.append(
                "if its outputs are one answer to the whole sequence, say so with an output_layout "
                "without T, such as NHC"
            )
        rate = _stride(subject, base, first.shape[1], any_length)
    most = max(1, _MOST_BYTES // max(1, base.nbytes))
    return Prepared(
        subject=subject,
        example=rows,
        lengths=counts,
        base=base,
        stride=rate,
        rows=subject.rows or min(_MOST_ROWS, most, max(2, len(base))),
        timeless=timeless,
        any_length=any_length,
        trial=first,
        offset=offset,
        trips=trips,
        notes=notes,
    )


def _array(example: Any, fn: Any) -> Array:
    """The example as numpy; numbers that numpy made double become what a torch module takes."""
    if is_torch(example):
        import torch

        value = example.detach().cpu()
        if value.is_floating_point() and value.dtype not in (torch.float32, torch.float64):
            value = value.float()
        return np.asarray(value.numpy())
    x = np.asarray(example)
    if x.dtype.kind not in "fiub":
        raise NearfutureError(f"an example holds numbers, not {x.dtype}")
    if x.dtype == np.float64 and is_torch(fn):
        import torch

        weights = (p for p in getattr(fn, "parameters", list)() if p.is_floating_point())
        if getattr(next(weights, None), "dtype", None) is torch.float32:
            return x.astype(np.float32)
    return x


def _target(fn: Any, example: Any, name: str | None, *, train: bool) -> Target:
    if isinstance(fn, Target):
        return fn
    if isinstance(fn, str | Path):
        path = Path(fn)
        if path.suffix != ".onnx":
            raise NearfutureError(f"{fn} is no .onnx file; a module or function is handed over")
        return OnnxTarget.open(path)
    if type(fn).__name__ == "InferenceSession":
        return OnnxTarget(fn, name or "ONNX session", None)
    if not callable(fn):
        raise NearfutureError(f"a model is called, but {type(fn).__name__} is not callable")
    title = name or getattr(fn, "__qualname__", None) or type(fn).__name__
    if is_torch(fn) or is_torch(example):
        dtype = example.dtype if is_torch(example) else None
        return TorchTarget(fn, title, dtype=dtype, train=train)
    return CallableTarget(fn, title)


def _layout(x: Array, target: Target) -> str:
    if x.ndim == 1:
        return "T"
    if x.ndim == 2:
        return "TC" if target.time_first else "NT"
    if x.ndim == 3:
        return "TNC" if target.time_first else "NTC"
    raise NearfutureError(
        f"an example of {x.ndim} axes {x.shape} needs a layout: a letter for every axis, N for "
        f"rows, T for time, e.g. NCFT"
    )


def _remarks(fn: Any, target: Target, layout: str | None, train: bool) -> list[str]:
    """What a user should know about how the model was understood."""
    notes = []
    if target.time_first and layout is None:
        notes.append(f"{target.name} reads time first (batch_first=False): layout TNC")
    if isinstance(target, TorchTarget) and target.function is fn:
        training = [path or type(m).__name__ for path, m in target.modules.items() if m.training]
        if training and not train:
            notes.append(
                f"the function calls a module in train mode ({training[0]}): audited like this; "
                f"call .eval() on it if that is not meant"
            )
    return notes


def _first_answer(subject: Subject, example: Array, base: Array, notes: list[str]) -> Any:
    """The raw answer to copies of the row; learns how many rows the model takes in one call."""
    if subject.rows is not None:
        return subject.ask(base[None], [len(base)])
    try:
        return subject.ask(np.stack([base] * TRIAL_ROWS), [len(base)] * TRIAL_ROWS)
    except CannotRun as error:
        refused = error
    for rows in dict.fromkeys((len(example), 1)):
        try:
            answer = subject.ask(np.stack([base] * rows), [len(base)] * rows)
        except CannotRun as error:
            refused = error
            continue
        subject.rows = rows
        notes.append(f"the model takes batches of {rows} only, so probing is slower")
        return answer
    raise refused


def _hint(subject: Subject, base: Array, error: CannotRun, *, guessed: bool) -> NearfutureError:
    """The model's own error, with the way out where lengths were handed over unasked."""
    if guessed:
        alone = Subject(
            subject.target, replace(subject.form, takes="nothing"), subject.dtype, seed=subject.seed
        )
        try:
            alone.ask(base[None], None)
        except CannotRun:
            return error
        return NearfutureError(
            f"{subject.target.name} does not take lengths as its second argument: say "
            f"takes='nothing' where it is told none, 'mask' or 'padding_mask' where it is told "
            f"like this, with the argument's name in keyword ({error})"
        )
    return error


def _learn_axes(
    subject: Subject, base: Array, whole: Any, output_layout: str | None, notes: list[str]
) -> tuple[bool, str]:
    """Find the time axis of the output by changing the length.

    Returns:
        Whether the length may be changed, and what the model said where a second call failed that
        succeeds when it is the first.
    """
    frames = len(base)
    half = max(1, frames // 2)
    rows = subject.rows or 1
    trips = ""
    x = np.stack([base[:half]] * rows)
    try:
        shorter = subject.ask(x, [half] * rows)
    except CannotRun as error:
        if subject.target.forgets:
            subject.target.forget()
            trips = str(error)
        try:
            shorter = subject.ask(x, [half] * rows)
        except CannotRun:
            subject.target.remember()
            notes.append(
                f"it runs on {frames} frames only, so other lengths were not tried ({error})"
            )
            return False, ""
    shapes = [subject.part(answer).shape for answer in (whole, shorter)]
    at = subject.output_layout(len(shapes[0])).find("N")
    if at >= 0:  # the two had different numbers of rows
        shapes[0] = (*shapes[0][:at], shapes[1][at], *shapes[0][at + 1 :])
    if output_layout is not None or len(shapes[0]) != len(shapes[1]):
        return True, trips
    moved = [i for i, (a, b) in enumerate(zip(*shapes, strict=True)) if a != b]
    guess = subject.output_layout(len(shapes[0]))
    if not moved:
        if subject.form.takes == "nothing":
            rest = iter("CDEFGH")
            letters = ["N" if letter == "N" and "N" in guess else next(rest) for letter in guess]
            subject.read_as("".join(letters))
            notes.append(
                f"the output has shape {shapes[0]} whatever the length: one output for the whole "
                f"sequence, all of which counts as observed"
            )
    elif len(moved) == 1 and ("T" not in guess or guess.index("T") != moved[0]):
        rows = guess.find("N")
        rest = iter("CDEFGH")
        if rows == moved[0]:
            rows = 0 if moved[0] else 1
        letters = [
            "T"
            if i == moved[0]
            else "N"
            if i == rows and "N" in subject.form.layout
            else next(rest)
            for i in range(len(guess))
        ]
        subject.read_as("".join(letters))
        notes.append(f"output read as {''.join(letters)}: that axis changes with the length")
    return True, trips


def _stride(subject: Subject, base: Array, outputs: int, any_length: bool) -> Fraction:
    """Input frames per output frame, from the lengths at which an output is added."""
    frames = len(base)
    if outputs == frames:
        return Fraction(1)
    if outputs > frames:
        return Fraction(1, round(outputs / frames))
    if not any_length or outputs < 3:
        return Fraction(max(1, round(frames / outputs)))

    def count(n: int) -> int:
        try:
            return int(subject.run(base[None, :n], [n]).frames.shape[1])
        except CannotRun:
            return 0

    ends = []
    for missing in (1, 2):
        ends.append(_last(lambda n, m=missing: count(n) <= outputs - m, 0, frames))  # type: ignore[misc]
    return Fraction(max(1, ends[0] - ends[1]))


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The largest n in [low, high) for which something holds that holds up to some n."""
    while high - low > 1:
        middle = math.floor((low + high) / 2)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
