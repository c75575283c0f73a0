"""`audit.model`, and its parts alone: `matrix`, `lookahead` and `assert_lookahead`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.adapters import preserved_random_state
from nearfuture.audit.audit import Audit
from nearfuture.audit.call import (
    AuditOptions,
    CallOptions,
    LatencyLimit,
    StreamingSteps,
    take,
)
from nearfuture.audit.checks import streaming_layer_steps
from nearfuture.audit.probing import (
    Probes,
    dependency_matrix,
    extrapolate,
    farthest_dependency,
)
from nearfuture.audit.render.terminal import text
from nearfuture.audit.report import Report
from nearfuture.audit.setup import prepare
from nearfuture.error import NearfutureError


def model(
    fn: Any,
    example: Any = None,
    lengths: Sequence[int] | None = None,
    **options: Unpack[AuditOptions],
) -> Report:
    """Audit a model: which outputs depend on which inputs, how far ahead, and what leaks.

    Output `u` stands for the input frames from `⌊u · stride⌋` on. It depends on input `s` if any of
    its bits change when frame `s` changes. `lookahead = max_u (last s it needs) - ⌊u · stride⌋`.

    Args:
        fn: a torch module or function (it is called with tensors), a function of numpy arrays, an
            ONNX file or `InferenceSession`, or a bundle of this project (a path or a name). A
            module is copied and put in eval mode; the original stays as it is.
        example: an input, (N, T, C) unless `layout` says otherwise; tokens (N, T) are integers. One
            row is probed, its values are varied. Not needed for a bundle.
        lengths: valid frames of each row; then padding is checked.
        options:
            how it is called, as in `CallSpec`: `layout`, `output`, `output_layout`, `takes`,
            `padding`, `keyword`, `extra`, `frame_samples`, `stride`, `observed`, `train`, `seed`,
            `name`;
            how far it may look, as in `LatencyLimit`: `frame_ms`, `at_most`, `at_most_ms`;
            how it is streamed, as in `StreamingSteps`: `step`, `start`, `finish`, `chunks`,
            `first_chunk`. A `StreamingLayer` brings its own steps;
            `matrix`: whether to measure the whole matrix, which is done up to 2000 frames unless
            given. Otherwise the lookahead is found by bisection, in seconds for very long inputs;
            `progress` is called with what begins, in words.

    Raises:
        AuditInterrupted: on Ctrl-C, with the report on what was checked until then.
        NearfutureError: where the model cannot be run, or the options do not fit it.

    >>> import numpy as np
    >>> def one_ahead(x):
    ...     y = x.copy()
    ...     y[:, :-1] += x[:, 1:]
    ...     return y
    >>> report = model(one_ahead, np.ones((1, 6, 2), np.float32), frame_ms=40, at_most=0)
    >>> report.lookahead, report.latency_ms, report.holds
    (1, 80.0, False)
    >>> report.matrix.astype(int).tolist()[0]
    [1, 1, 0, 0, 0, 0]
    """
    call: dict[str, Any] = {**options}
    limit, steps = take(LatencyLimit, call), take(StreamingSteps, call)
    matrix, progress = call.pop("matrix", None), call.pop("progress", None)
    with preserved_random_state(), np.errstate(all="ignore"):
        setup = prepare(fn, example, lengths, cast(CallOptions, call), limit)
        frame_ms = setup.model.adapter.frame_ms or limit.frame_ms
        if limit.at_most_ms is not None and frame_ms is None:
            raise NearfutureError(
                "`at_most_ms` needs `frame_ms`: the duration of one input frame",
                parameter="frame_ms",
            )
        if steps.step is None:
            own = streaming_layer_steps(setup.model.adapter)
            steps = replace(own, chunks=steps.chunks, first_chunk=steps.first_chunk)
        if steps.step is None and (steps.chunks is not None or steps.first_chunk is not None):
            raise NearfutureError(
                "`chunks` and `first_chunk` have no effect without `step`", parameter="chunks"
            )
        return Audit(setup, limit, steps, matrix, progress).report()


def matrix(fn: Any, example: Any, **options: Unpack[CallOptions]) -> NDArray[np.bool_]:
    """Measure the dependency matrix of a model, and nothing else: about twenty calls per 32 frames.

        matrix[u, s]   whether any bit of output `u` changes when input frame `s` changes

    It is the matrix of `model`, which besides checks that calls can be repeated, that rows of a
    batch are independent, and that other lengths and padding change nothing: use it where those are
    known.

    Args:
        fn: as for `model`.
        example: an input.
        options: how it is called, as in `CallSpec`.

    Returns:
        (U, T) of bool.

    Raises:
        NearfutureError: where the model cannot be run.

    >>> import numpy as np
    >>> matrix(lambda x: np.cumsum(x, axis=1), np.ones((1, 3, 2))).astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    with preserved_random_state(), np.errstate(all="ignore"):
        setup = prepare(fn, example, None, options)
        probes = Probes(setup.base, seed=setup.seed)
        return np.asarray(dependency_matrix(setup, probes).matrix, np.bool_)


def lookahead(fn: Any, example: Any, **options: Unpack[CallOptions]) -> float:
    """Measure the lookahead of a model in input frames, and nothing else: about `log T` calls.

    Whole futures are replaced, and the interval in which the result lies is bisected, so it is
    exact for the output that is seen to look farthest; `model` measures every output.

    Args:
        fn: as for `model`.
        example: an input.
        options: how it is called, as in `CallSpec`.

    Returns:
        Input frames; inf for the rest of the sequence, whatever its length.

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
    with preserved_random_state(), np.errstate(all="ignore"):
        setup = prepare(fn, example, None, options)
        return extrapolate(setup, farthest_dependency(setup, setup.base), math.inf)[0]


def assert_lookahead(
    fn: Any, example: Any, *, lengths: Sequence[int] | None = None, **options: Unpack[AuditOptions]
) -> None:
    """Fail a test if a model's lookahead exceeds its limit, or if it leaks in another way.

    Args:
        fn: as for `model`.
        example: an input.
        lengths: valid frames of each row.
        options: as for `model`; `at_most` is the lookahead allowed.

    Raises:
        AssertionError: with the whole report, the culprit first.
        NearfutureError: where the model cannot be run.

    >>> import numpy as np
    >>> assert_lookahead(lambda x: np.cumsum(x, axis=1), np.ones((1, 8, 2)), at_most=0)
    """
    __tracebackhide__ = True
    report = model(fn, example, lengths, **options)
    if not report.holds:
        raise AssertionError(text(report))
