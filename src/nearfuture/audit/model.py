"""`audit.model`: put every question to a model and write down the answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from nearfuture.audit.bundle import declared, is_bundle
from nearfuture.audit.examination import Examination
from nearfuture.audit.prepare import prepare
from nearfuture.audit.report import Report
from nearfuture.audit.search import boundless, farthest_ahead
from nearfuture.audit.stepping import own_steps
from nearfuture.audit.subject import Takes
from nearfuture.audit.target import TorchTarget, untouched_randomness
from nearfuture.error import NearfutureError


def model(
    fn: Any,
    example: Any = None,
    lengths: Sequence[int] | None = None,
    *,
    frame_ms: float | None = None,
    at_most: float | None = None,
    at_most_ms: float | None = None,
    layout: str | None = None,
    output: int | str | None = None,
    output_layout: str | None = None,
    takes: Takes | None = None,
    keyword: str | None = None,
    extra: Mapping[str, Any] | None = None,
    block: int = 1,
    step: Callable[..., Any] | None = None,
    start: Callable[[], Any] | None = None,
    finish: Callable[[Any], Any] | None = None,
    stride: Fraction | int | None = None,
    observed: int = 0,
    train: bool = False,
    matrix: bool | None = None,
    seed: int = 0,
    name: str | None = None,
) -> Report:
    """Audit a model: who looks at whom, how far ahead, and what leaks.

    Output `u` stands for the input frames from `⌊u · stride⌋` on. It looks at input `s` if any of
    its bits change when frame `s` changes. `lookahead = max_u (last s it looks at) - ⌊u · stride⌋`.

    Args:
        fn: a torch module or function (it is called with tensors), a function of numpy arrays, an
            ONNX file or `InferenceSession`, or a bundle of this project (a path or a name). A
            module is copied and put in eval mode; it is never changed.
        example: an input, (N, T, C) unless `layout` says otherwise; tokens (N, T) are integers. One
            row is probed, its values are varied. Not needed for a bundle.
        lengths: valid frames of each row; then padding is checked.
        frame_ms: milliseconds per input frame; 1000 / rate for samples.
        at_most: lookahead allowed, in input frames.
        at_most_ms: worst-case latency allowed, `(lookahead + 1) · frame_ms`.
        layout: a letter for every axis of the input, `N` rows, `T` time: "NTC", "TNC", "NCT", "NT".
            A module that says `batch_first=False` is taken as "TNC".
        output: which part of the answer: an index or a key; its first array unless given. Of a
            bundle, the lookahead in frames; unless given, the largest that keeps `at_most_ms`.
        output_layout: the output's axes; without `T` it is one output for the whole sequence.
        takes: what the model gets besides the input: "lengths" (int64), "mask" (True: valid) or
            "padding_mask" (True: padding). Unless given: "lengths" where lengths are.
        keyword: name of that argument; positional unless given.
        extra: further arguments by name, the same in every call.
        block: for samples: so many count as one frame.
        step: your own `step(chunk, state) -> (frames, state)`, to compare with `fn` in chunks. A
            `StreamingLayer` brings its own.
        start: gives the state before the first chunk; None unless given.
        finish: gives the frames that were still waiting, from the last state.
        stride: input frames per output frame; measured unless given.
        observed: so many input frames are known before any output is wanted (a window of the past):
            to look at them is no lookahead.
        train: audit a module as it trains instead of as it is used.
        matrix: draw the whole matrix; for up to 2000 frames unless given. Without it the lookahead
            is found by dividing intervals, which takes seconds for very long inputs.
        seed: of everything that is drawn.
        name: of the model, in the report.

    Raises:
        NearfutureError: where the model cannot be run, or the options fit nothing.

    >>> import numpy as np
    >>> def sees_the_next(x):
    ...     y = x.copy()
    ...     y[:, :-1] += x[:, 1:]
    ...     return y
    >>> report = model(sees_the_next, np.ones((1, 6, 2), np.float32), frame_ms=40, at_most=0)
    >>> report.lookahead, report.latency_ms, report.holds
    (1, 80.0, False)
    >>> report.matrix.astype(int).tolist()[0]
    [1, 1, 0, 0, 0, 0]
    """
    if is_bundle(fn):
        if at_most is not None:
            raise NearfutureError(
                "a bundle reads samples, not frames: limit its latency with at_most_ms"
            )
        if lengths is not None:
            raise NearfutureError("a bundle is told no lengths: a stream ends where it ends")
        target, example = declared(fn, output, example, at_most_ms)
        fn, output = target, None
        frame_ms, stride, layout = 1000 / target.rate, target.stride, layout or "NT"
    elif example is None:
        raise NearfutureError("an example is needed: an array like those the model reads")
    _check_limits(frame_ms, at_most, at_most_ms)
    with untouched_randomness(), np.errstate(all="ignore"):
        prepared = prepare(
            fn,
            example,
            lengths,
            layout=layout,
            output=output,
            output_layout=output_layout,
            takes=takes,
            keyword=keyword,
            extra=extra,
            block=block,
            stride=stride,
            observed=observed,
            train=train,
            seed=seed,
            name=name,
        )
        examination = Examination(
            prepared,
            frame_ms=frame_ms,
            at_most=at_most,
            at_most_ms=at_most_ms,
            observed=observed,
            shape=tuple(np.shape(example)),
        )
        if step is None and isinstance(prepared.subject.target, TorchTarget):
            step, start, finish = own_steps(prepared.subject.target)
        return examination.report(matrix, step, start, finish)


def lookahead(
    fn: Any,
    example: Any,
    *,
    layout: str | None = None,
    output: int | str | None = None,
    output_layout: str | None = None,
    takes: Takes | None = None,
    keyword: str | None = None,
    extra: Mapping[str, Any] | None = None,
    block: int = 1,
    stride: Fraction | int | None = None,
    observed: int = 0,
    train: bool = False,
    seed: int = 0,
) -> float:
    """How many input frames ahead a model looks, and nothing else: about `log T` calls.

    Whole futures are changed, and the interval in which the answer lies is divided, so it is exact
    for the output that is seen to look farthest; `model` measures every output.

    Args:
        fn: as for `model`, and all that follows.
        example: an input.
        layout: the input's axes.
        output: which part of the answer.
        output_layout: the output's axes.
        takes: what the model gets besides the input.
        keyword: name of that argument.
        extra: further arguments.
        block: samples of a frame.
        stride: input frames per output frame.
        observed: frames known beforehand.
        train: as it trains.
        seed: of the probes.

    Returns:
        Input frames; inf for the rest of the sequence, however long.

    Raises:
        NearfutureError: where the model cannot be run.

    >>> import numpy as np
    >>> def three_ahead(x):
    ...     return np.pad(x, ((0, 0), (0, 3), (0, 0)))[:, 3:]
    >>> lookahead(three_ahead, np.ones((1, 40, 2)))
    3
    >>> lookahead(lambda x: x - x.mean(axis=1, keepdims=True), np.ones((1, 40, 2)))
    inf
    """
    if is_bundle(fn):
        target, example = declared(fn, output, example, None)
        fn, output = target, None
        stride, layout = target.stride, layout or "NT"
    with untouched_randomness(), np.errstate(all="ignore"):
        prepared = prepare(
            fn,
            example,
            None,
            layout=layout,
            output=output,
            output_layout=output_layout,
            takes=takes,
            keyword=keyword,
            extra=extra,
            block=block,
            stride=stride,
            observed=observed,
            train=train,
            seed=seed,
            name=None,
        )
        if prepared.timeless:
            observed = len(prepared.base)
        found = farthest_ahead(prepared, prepared.base, observed=observed)
        return boundless(prepared, found, observed, math.inf)[0]


def assert_lookahead(
    fn: Any, example: Any, *, at_most: float, lengths: Sequence[int] | None = None, **form: Any
) -> None:
    """Fail a test where a model looks farther ahead than it may, or leaks in any other way.

    Args:
        fn: as for `model`.
        example: an input.
        at_most: lookahead allowed, in input frames.
        lengths: valid frames of each row.
        form: everything else that `model` takes.

    Raises:
        AssertionError: with the whole report, the culprit first.
        NearfutureError: where the model cannot be run.

    >>> import numpy as np
    >>> assert_lookahead(lambda x: np.cumsum(x, axis=1), np.ones((1, 8, 2)), at_most=0)
    """
    __tracebackhide__ = True
    report = model(fn, example, lengths, at_most=at_most, **form)
    if not report.holds:
        raise AssertionError(str(report))


def _check_limits(frame_ms: float | None, at_most: float | None, at_most_ms: float | None) -> None:
    for name, value in (("frame_ms", frame_ms), ("at_most_ms", at_most_ms)):
        if value is not None and not 0 < value < math.inf:
            raise NearfutureError(f"{name} is above 0 and finite, not {value}")
    if at_most is not None and not at_most >= 0:
        raise NearfutureError(f"at_most is a number of frames from 0, not {at_most}")
    if at_most_ms is not None and frame_ms is None:
        raise NearfutureError("at_most_ms needs frame_ms: how long one input frame is")
