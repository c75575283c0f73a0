"""After RNNs: the same trade with other means, measured on two axes: future and cost.

>>> import numpy as np
>>> from nearfuture import audit
>>> from nearfuture.lab.graphs import open_graph
>>> example = np.ones((1, 12, 4), np.float32)
>>> for name in ("causal-attention-1", "chunked-attention-1", "full-attention-1"):
...     print(name, audit.model(open_graph(name), example).lookahead)
causal-attention-1 0
chunked-attention-1 3
full-attention-1 inf
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args

from nearfuture.budget import (
    AttentionConfig,
    attention_cost,
    deep_speech_2_deployed,
    lookahead_cost,
    recurrent_cost,
)
from nearfuture.lab import recordings
from nearfuture.lab.dependency import Dependency, examine
from nearfuture.lab.endpoint import Between
from nearfuture.lab.graphs import Graph, open_graph
from nearfuture.lab.page import Page

FRAMES = 16
FRAME_MS = 40
WIDTH = 256
"""Values of a frame, for the costs."""
EXPANSION = 4
"""Of the feed-forward network of a Transformer's block (Vaswani et al. 2017)."""
TAU = 3
"""Frames that each row convolution looks ahead."""

Family = Literal[
    "rnn",
    "row-convolution",
    "blstm",
    "causal-attention",
    "sliding-attention",
    "chunked-attention",
    "full-attention",
]
FAMILIES: tuple[Family, ...] = get_args(Family)
Layers = Annotated[int, Between(1, 3)]


def stack_of(family: Family, layers: int) -> list[Graph]:
    """The layers that are measured, from below."""
    numbers = range(1, layers + 1)
    if family == "row-convolution":
        pairs = [(f"gru-{number}", f"row-convolution-{TAU}") for number in numbers]
        return [open_graph(name) for pair in pairs for name in pair]
    if family == "blstm":
        return [open_graph("bidirectional-lstm")] * layers
    name = "gru" if family == "rnn" else family
    return [open_graph(f"{name}-{number}") for number in numbers]


@cache
def measured(family: Family, layers: int) -> Dependency:
    """Who looks at whom in a family, measured once in a process."""
    return examine(stack_of(family, layers), FRAMES)


def flops_per_second(family: Family, layers: int, seconds: float) -> float:
    """Operations for a second of an utterance, of so many layers of 256 values.

    Attention looks at more frames the longer the utterance is, where its mask lets it.

    >>> round(flops_per_second("rnn", 1, 10) / 1e6, 1)
    19.7
    >>> short, long = (flops_per_second("full-attention", 1, seconds) for seconds in (1, 30))
    >>> round(short / 1e6, 1), round(long / 1e6, 1)
    (40.1, 58.6)
    """
    if family.endswith("-attention"):
        config = AttentionConfig(
            block="transformer",
            hidden=WIDTH,
            layers=1,
            chunk=None,
            left_chunks=0,
            expansion=EXPANSION,
            kernel=None,
        )
        keys = round(_keys(open_graph(f"{family}-1"), round(1000 * seconds / FRAME_MS)))
        scores = attention_cost(WIDTH, keys).flops_per_frame
        scores -= attention_cost(WIDTH, 0).flops_per_frame
        per_frame = layers * (config.cost().flops_per_frame + scores)
    else:
        if family == "blstm":
            cost = recurrent_cost(
                "lstm", WIDTH, WIDTH, layers=layers, bidirectional=True, merge="sum"
            )
        else:
            cost = recurrent_cost("gru", WIDTH, WIDTH, layers=layers)
        per_frame = cost.flops_per_frame
        if family == "row-convolution":
            per_frame += layers * lookahead_cost(WIDTH, TAU).flops_per_frame
    return per_frame * 1000 / FRAME_MS


def _keys(graph: Graph, frames: int) -> float:
    """How many frames a frame looks at, on average over an utterance."""
    field, seen = graph.field, 0
    for output in range(frames):
        first = output // field.block * field.block
        begin = max(0, first - field.left)
        end = min(frames, first + field.block + field.right)
        seen += int(end - begin)
    return seen / frames


def plane(layers: Layers = 1) -> Generator[dict[str, Any], None, None]:
    """How long each family waits, measured: a line each, as it is measured; inf is to the end."""
    for family in FAMILIES:
        found = measured(family, layers)
        yield {
            "family": family,
            "wait_ms": found.lookahead * FRAME_MS,
            "agree": bool((found.measured == found.declared).all()),
        }


def costs(layers: Layers = 1, seconds: Annotated[int, Between(1, 30)] = 10) -> dict[str, Any]:
    """What a second of an utterance costs in each family, and how long waiting for its end is."""
    flops = {family: flops_per_second(family, layers, seconds) for family in FAMILIES}
    return {"flops": flops, "end_ms": 1000.0 * seconds}


def matrix(family: Family = "chunked-attention", layers: Layers = 1) -> dict[str, Any]:
    """Who looks at whom in one family: measured, and as its layers declare."""
    found = measured(family, layers)
    return {
        "frames": FRAMES,
        "frame_ms": FRAME_MS,
        "measured": found.measured,
        "declared": found.declared,
        "lookahead": found.lookahead,
        "agree": bool((found.measured == found.declared).all()),
    }


@dataclass(frozen=True)
class System:
    """A published system, and the latencies that its source states, in ms."""

    name: str
    source: str
    ms: tuple[float, ...]


PUBLISHED = {
    "emformer": System("Emformer, 2020", "arXiv 2010.10759, abstract", (80, 960)),
    "fastconformer": System(
        "FastConformer, NeMo, 2023",
        "model card of stt_en_fastconformer_hybrid_large_streaming_multi",
        (0, 80, 480, 1040),
    ),
    "kyutai": System(
        "Kyutai STT, 2025", "README of kyutai-labs/delayed-streams-modeling", (500, 2500)
    ),
}
"""What each figure counts is said in the texts of the page."""


def systems() -> dict[str, dict[str, Any]]:
    """Latency budgets: those that others publish, and two that are computed here."""
    deep_speech = deep_speech_2_deployed().latency(19)
    own = recordings.streaming().budgets
    computed = {
        "deep-speech-2": System(
            "Deep Speech 2, 2015", "arXiv 1512.02595, §3.7", (deep_speech.worst_ms,)
        ),
        "own": System(
            "nearfuture, digits",
            "model.json of the bundle",
            tuple(latency.worst_ms for latency in own.values()),
        ),
    }
    return {
        key: {"name": system.name, "source": system.source, "ms": system.ms}
        for key, system in (computed | PUBLISHED).items()
    }


PAGE = Page(
    name="after-rnns",
    endpoints={"plane": plane, "costs": costs, "matrix": matrix, "systems": systems},
    module=__name__,
    behind=(
        "audit/run.py",
        "layers/attention/self_attention.py",
        "layers/attention/mask.py",
        "budget/cost.py",
        "budget/attention.py",
    ),
)
