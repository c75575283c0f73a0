"""Row convolution: equation (11) cell by cell, its parameters, and the latency it spends.

>>> from nearfuture.budget import deep_speech_2_deployed, lookahead_cost
>>> print(lookahead_cost(2560, 19).parameters)
51200
>>> print(lookahead_cost(2560, 19, mixing=True).parameters)
131072000
>>> latency = deep_speech_2_deployed().latency(19)
>>> for item in latency.items:
...     print(item.name, item.ms)
window 20.0
convolution 1 50.0
convolution 2 100.0
lookahead 760.0
>>> print(latency.worst_ms)
930.0
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np

from nearfuture.budget import (
    ReceptiveField,
    RecognizerConfig,
    algorithmic_latency,
    deep_speech_2_deployed,
    lookahead_cost,
    recurrent_cost,
    small,
)
from nearfuture.lab.endpoint import Between
from nearfuture.lab.graphs import open_graph
from nearfuture.lab.page import Page

FRAMES = 8
STACK = 5
"""Recurrent layers of Deep Speech 2's deployed model."""

Model = Literal["deep-speech-2-deployed", "small"]


def cells(tau: Annotated[int, Between(0, 6)] = 2) -> dict[str, Any]:
    """Run the layer on one sequence, and take each output apart into what each input gives to it.

    The layer is linear, so a term of an output is what the layer makes of a sequence in which only
    one input is left, and its weight is what it makes of a single 1. Rows are channels.
    """
    layer = open_graph(f"row-convolution-{tau}")
    # One decimal, and never 0, which would hide a term.
    x = np.random.default_rng(1).permutation(np.r_[-16:0, 1:17])[: FRAMES * layer.width] / 10
    x = x.reshape(FRAMES, layer.width)
    places = [(s, i) for s in range(FRAMES) for i in range(layer.width)]
    alone = np.zeros((len(places), FRAMES, layer.width), np.float32)
    for row, place in enumerate(places):
        alone[row][place] = 1.0
    weights = layer(alone)
    products = layer(alone * x)
    outputs = layer(x[None])[0]
    terms = [
        [
            [
                {"frame": s, "channel": c, "weight": weight, "product": products[row, t, i]}
                for row, (s, c) in enumerate(places)
                if (weight := weights[row, t, i]) != 0
            ]
            for t in range(FRAMES)
        ]
        for i in range(layer.width)
    ]
    return {"frames": FRAMES, "inputs": x.T, "outputs": outputs.T, "terms": terms}


def sizes(
    width: Annotated[int, Between(64, 2560, 64)] = 2560,
    frames: Annotated[int, Between(0, 40)] = 19,
) -> dict[str, int]:
    """Count the weights of one layer, depthwise and mixing, and of five recurrent layers."""
    depthwise = lookahead_cost(width, frames).parameters
    mixing = lookahead_cost(width, frames, mixing=True).parameters
    return {
        "depthwise": depthwise,
        "mixing": mixing,
        "rnn": recurrent_cost("rnn", width, width, layers=STACK, biases=0).parameters,
        "gru": recurrent_cost("gru", width, width, layers=STACK, biases=0).parameters,
        "times": mixing // depthwise,
    }


def latency(
    model: Model = "deep-speech-2-deployed",
    frames: Annotated[int, Between(0, 40)] = 19,
    layers: Annotated[int, Between(1, 4)] = 1,
    seconds: Annotated[int, Between(1, 30)] = 5,
) -> dict[str, Any]:
    """Itemise what an output waits for, beside a bidirectional model of the same front-end."""
    presets = {"deep-speech-2-deployed": deep_speech_2_deployed, "small": small}
    config: RecognizerConfig = presets[model]().replace(heads=(frames,))
    *below, (name, one) = config.links(frames)
    links = [*below, *((f"{name} {number}", one) for number in range(1, layers + 1))]
    found = algorithmic_latency(links, rate=config.features.rate)
    together = ReceptiveField()
    for _ in range(layers):
        together = together.then(one)
    utterance_ms = 1000.0 * seconds
    return {
        "items": [{"name": item.name, "ms": item.ms} for item in found.items],
        "worst_ms": found.within(utterance_ms),
        "sum_ms": found.worst_ms,
        "lookahead_frames": together.right,
        "lookahead_ms": together.right * config.frame_ms,
        "frame_ms": config.frame_ms,
        "bidirectional_ms": config.twin().latency(None).within(utterance_ms),
    }


PAGE = Page(
    name="row-convolution",
    endpoints={"cells": cells, "sizes": sizes, "latency": latency},
    module=__name__,
    behind=("layers/lookahead.py", "budget/cost.py", "budget/latency.py", "budget/presets.py"),
)
