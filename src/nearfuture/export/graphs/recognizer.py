"""The graphs of a whole recogniser: step and finish of a streaming one, or one for all its time."""

from __future__ import annotations

import copy
import math

import onnx
import torch

from nearfuture.error import NearfutureError
from nearfuture.export.graphs.offline import OfflineGraph
from nearfuture.export.graphs.streaming import FinishGraph, StepGraph
from nearfuture.export.graphs.translation import translate
from nearfuture.layers import Recurrent
from nearfuture.model import Recognizer

_SCHEMA = 1
"""The version of the metadata of the graphs."""

_EXAMPLE_ROWS = 3
_EXAMPLE_SAMPLES = 5000


def recognizer_graphs(model: Recognizer) -> dict[str, onnx.ModelProto]:
    """Translate a recogniser to its graphs, by file name, with all weights inside.

    Args:
        model: in eval mode; it is not changed.
    """
    lean = _folded(model)
    return _offline(lean) if model.lookahead is None else _streaming(lean, *quantum_samples(model))


def quantum_samples(model: Recognizer) -> tuple[int, int]:
    """Return the samples of a quantum and of the first one; (0, 0) for a bidirectional model.

    A quantum makes exactly one more frame possible, or one more chunk of frames where attention
    emits them together. The first is the remainder of what the first frame needs after whole
    quanta, so that every later quantum ends where a frame or a chunk appears.

    >>> from nearfuture.budget import small_conformer, tiny
    >>> quantum_samples(Recognizer(tiny()))
    (320, 120)
    >>> quantum_samples(Recognizer(small_conformer()))
    (1280, 120)
    """
    if model.lookahead is None:
        return 0, 0
    field = model.at(min(model.config.heads)).field
    quantum = field.stride * _frames_together(model)
    return quantum, int(field.needed(0)) % quantum or quantum


def _frames_together(model: Recognizer) -> int:
    """The frames that appear at once: those of a chunk of attention, and 1 without any."""
    field = model.encoder.field
    return math.lcm(*(link.block for link in field.chain or (field,)))


def _streaming(model: Recognizer, quantum: int, first: int) -> dict[str, onnx.ModelProto]:
    heads = model.config.heads
    step = StepGraph(model)
    leaves = step.leaves()
    batch = {0: "batch"}
    state = {
        leaf.name: (value, batch)
        for leaf, value in zip(leaves, step.start(_EXAMPLE_ROWS), strict=True)
    }
    emitted = [part for tau in heads for part in (f"log_probs_{tau}", f"frames_{tau}")]
    metadata = {
        "schema": _SCHEMA,
        "heads": heads,
        "quantum_samples": quantum,
        "first_quantum_samples": first,
        "state": [vars(leaf) for leaf in leaves],
    }
    chunk = {
        "pcm": (torch.zeros(_EXAMPLE_ROWS, quantum, 1), batch),
        "lengths": (torch.full((_EXAMPLE_ROWS,), quantum), batch),
    }
    outputs = [*emitted, *(f"{leaf.name}.next" for leaf in leaves)]
    _check_slots(step, quantum, _frames_together(model))
    return {
        "step.onnx": translate(step, chunk | state, outputs, metadata),
        "finish.onnx": translate(FinishGraph(model), state, emitted, metadata),
    }


def _check_slots(step: StepGraph, quantum: int, frames: int) -> None:
    outputs = step(torch.zeros(1, quantum, 1), torch.tensor([quantum]), *step.start(1))
    slots = outputs[0].shape[1]
    if slots != frames:
        raise NearfutureError(
            f"one quantum of {quantum} samples has {slots} slots for frames instead of {frames}: "
            f"the layers would run that often",
            code="internal",
        )


def _offline(model: Recognizer) -> dict[str, onnx.ModelProto]:
    inputs = {
        "pcm": (torch.zeros(_EXAMPLE_ROWS, _EXAMPLE_SAMPLES, 1), {0: "batch", 1: "samples"}),
        "lengths": (torch.full((_EXAMPLE_ROWS,), _EXAMPLE_SAMPLES), {0: "batch"}),
    }
    graph = translate(OfflineGraph(model), inputs, ["log_probs", "frames"], {"schema": _SCHEMA})
    return {"offline.onnx": graph}


def _folded(model: Recognizer) -> Recognizer:
    """A copy whose recurrent layers have their batch norms multiplied into their weights."""
    lean = copy.deepcopy(model)
    for parent in list(lean.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, Recurrent):
                setattr(parent, name, child.folded())
    return lean
