"""Reports made by hand, one for each thing that a page or a terminal must be able to show."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.render.explanation import EXPLANATIONS
from nearfuture.audit.report import Culprit, Finding, Kind, Report, Severity


def window(T: int, U: int, stride: float, left: float, right: float) -> NDArray[np.bool_]:
    """Output u looks at `left` frames before `u · stride` and `right` after."""
    own = np.floor(np.arange(U) * stride)[:, None]
    frames = np.arange(T)
    inside: NDArray[np.bool_] = (frames >= own - left) & (frames <= own + right)
    return inside


PLAIN = Report(
    model="streaming.py:encoder",
    shape=(1, 200, 80),
    layout="NTC",
    input_frames=200,
    output_frames=200,
    stride=Fraction(1),
    matrix=window(200, 200, 1, math.inf, 0),
    lookahead=0,
    lookback=math.inf,
    lookahead_is_lower_bound=False,
    lookback_is_lower_bound=False,
    frame_ms=40.0,
    observed=0,
    at_most=0,
    at_most_ms=None,
    findings=(),
    lookahead_sources=(),
    checked=(
        "every input frame against every output frame",
        "whether the content of the padding changes anything",
        "whether rows of a batch are independent",
        "whether equal calls give equal results",
    ),
    notes=(),
    seed=0,
)

NORM = Culprit(
    where="encoder.3.norm", what="GroupNorm", operation="group_norm", source="model.py:17"
)
CONV = Culprit(
    where="encoder.0.conv", what="Conv1d", operation="conv1d", source="model.py:12", frames=2
)
LEAK = Finding(
    kind="normalisation",
    message="output 0 changes with input 199",
    culprit=NORM,
    evidence={"output": 0, "input": 199, "before": 0.1172834, "after": -1.5e-7},
)


def every_kind() -> tuple[Finding, ...]:
    """A finding of each kind, with names longer than any line."""
    path = "model.encoder.blocks.11.attention.relative_position_bias.projection.layers.3.norm"
    where = Culprit(
        where=path,
        what="RelativePositionMultiHeadSelfAttentionWithExtras",
        operation="scaled_dot_product_attention",
        source="/a/rather/long/path/to/a/project/package/modules/attention/relative.py:1234",
        frames=7,
    )
    return tuple(
        Finding(
            kind=kind,
            message=f"it {EXPLANATIONS[kind].title}: output 12 changes with input 87 by 0.25",
            severity=get_args(Severity)[i % 3 // 2 * 2],
            culprit=where if i % 2 == 0 else None,
            evidence={"output": 12, "input": 87, "before": [0.25, 1e-9], "after": 0.5} if i else {},
        )
        for i, kind in enumerate(get_args(Kind))
    )


def chunked() -> NDArray[np.bool_]:
    """Attention in chunks of 16 that also see the chunk before."""
    chunk = np.arange(160) // 16
    blocks: NDArray[np.bool_] = (chunk[None] <= chunk[:, None]) & (
        chunk[None] >= chunk[:, None] - 1
    )
    return blocks


REPORTS = {
    "causal": PLAIN,
    "leak": replace(
        PLAIN,
        matrix=np.ones((200, 200), bool),
        lookahead=math.inf,
        findings=(LEAK,),
        lookahead_sources=(NORM, CONV),
        notes=("streaming: no step function was given",),
    ),
    "stride": replace(
        PLAIN,
        output_frames=50,
        stride=Fraction(4),
        frame_ms=10.0,
        matrix=window(200, 50, 4, 30, 19),
        lookahead=19,
        lookback=30,
        lookahead_is_lower_bound=True,
        at_most=19,
        lookahead_sources=(replace(CONV, frames=3),),
    ),
    "bidirectional": replace(
        PLAIN,
        shape=(2, 60, 80),
        input_frames=60,
        output_frames=60,
        matrix=np.ones((60, 60), bool),
        lookahead=math.inf,
        at_most=None,
        frame_ms=None,
        lookahead_sources=(Culprit(where="rnn", what="GRU", operation="gru"),),
    ),
    "chunked": replace(
        PLAIN,
        input_frames=160,
        output_frames=160,
        shape=(1, 160, 80),
        matrix=chunked(),
        lookahead=15,
        lookback=31,
        at_most=8,
        at_most_ms=500.0,
        findings=(
            Finding(
                kind="future",
                message="output 0 changes with input 15, 15 frames ahead, where 8 are allowed",
                culprit=Culprit(where="attention", what="", operation="softmax", frames=15),
                evidence={"output": 0, "input": 15},
            ),
        ),
    ),
    "every kind": replace(
        PLAIN,
        model="a.very.long.package.name.with.many.parts.modules.streaming:Encoder.for_telephones",
        findings=every_kind(),
        lookahead_sources=tuple(finding.culprit for finding in every_kind() if finding.culprit),
        matrix=window(200, 200, 1, 40, 7),
        lookahead=7,
        lookback=40,
        at_most=None,
        at_most_ms=100.0,
        notes=("streaming: no step function was given", "labels: no targets were given"),
    ),
    "forecast": replace(
        PLAIN,
        input_frames=30,
        output_frames=30,
        shape=(1, 30, 3),
        observed=12,
        matrix=window(30, 30, 1, math.inf, 0) | (np.arange(30) < 12),
        at_most=0,
    ),
    "one frame": replace(
        PLAIN,
        shape=(1, 1, 80),
        input_frames=1,
        output_frames=1,
        matrix=np.ones((1, 1), bool),
        lookback=0,
    ),
    "samples": replace(
        PLAIN,
        model="digits, lookahead 4",
        shape=(1, 240),
        layout="NT",
        unit="sample",
        input_frames=240,
        output_frames=6,
        stride=Fraction(40),
        offset=1,
        matrix=window(240, 6, 40, math.inf, 60),
        lookahead=59,
        frame_ms=0.125,
        at_most=None,
        at_most_ms=6.0,
        findings=(Finding(kind="latency", message="it declares 6 ms, but needs 7.5 ms"),),
    ),
    "one output": replace(
        PLAIN, output_frames=1, stride=Fraction(200), matrix=np.ones((1, 200), bool), lookahead=199
    ),
    "upsampling": replace(
        PLAIN,
        shape=(1, 7, 2),
        input_frames=7,
        output_frames=14,
        stride=Fraction(1, 2),
        matrix=window(7, 14, 0.5, 2, 1),
        lookahead=1,
        lookback=2,
        at_most=None,
        at_most_ms=80.0,
    ),
    "long": replace(
        PLAIN,
        shape=(1, 2000, 80),
        input_frames=2000,
        output_frames=2000,
        matrix=window(2000, 2000, 1, 300, 0)
        | (np.indices((2000, 2000)) == [[[200]], [[1900]]]).all(0),
        lookahead=1700,
        lookback=300,
        findings=(replace(LEAK, kind="future", message="output 200 changes with input 1900"),),
    ),
    "lookahead only": replace(PLAIN, matrix=None, lookahead=3, at_most=3, lookback=None),
    "not known": replace(
        PLAIN, matrix=None, lookahead=None, lookback=None, frame_ms=None, at_most=None
    ),
    "nothing came out": replace(
        PLAIN, output_frames=0, matrix=np.ones((0, 200), bool), lookahead=None, lookback=None
    ),
}
