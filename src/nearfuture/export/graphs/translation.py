"""From a torch module to an ONNX graph that describes its state, without traces of source files."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import onnx
import torch
from torch import Tensor, nn

Axes = dict[int, str]
"""The free axes of one input, by name."""

METADATA_PREFIX = "nearfuture."
"""What our keys in a graph's metadata begin with; each value is JSON."""


def translate(
    module: nn.Module,
    inputs: Mapping[str, tuple[Tensor, Axes]],
    outputs: Sequence[str],
    metadata: Mapping[str, Any],
) -> onnx.ModelProto:
    """Translate a module to a graph with named inputs and outputs.

    Inputs that no operation reads are dropped. Traces of the source files, which the exporter
    writes into every node, are removed.

    Args:
        module: its `forward` takes the inputs in order, by position.
        inputs: an example of each, and its free axes; an example's free axis is at least 2.
        outputs: names, in order.
        metadata: what the graph says about itself.
    """
    examples = tuple(example for example, _ in inputs.values())
    dimensions: dict[str, Any] = {}
    shapes = []
    for _, axes in inputs.values():
        free = {i: dimensions.setdefault(n, torch.export.Dim(n)) for i, n in axes.items()}
        shapes.append(free)
    with _quiet():
        program = torch.onnx.export(
            module.eval(),
            examples,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=_as_arguments(module, shapes),
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    _anonymise(model)
    _drop_repeated_masks(model.graph)
    _drop_unread_inputs(model.graph)
    for key, value in metadata.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = METADATA_PREFIX + key, json.dumps(value, ensure_ascii=False)
    return model


def _as_arguments(module: nn.Module, shapes: list[Any]) -> tuple[Any, ...]:
    """Shapes grouped as `forward` groups its arguments: those of `*state` in a tuple."""
    code = module.forward.__code__
    named = code.co_argcount - 1  # without self
    takes_more = bool(code.co_flags & 0x04)
    return (*shapes[:named], tuple(shapes[named:])) if takes_more else tuple(shapes)


def _anonymise(model: onnx.ModelProto) -> None:
    model.doc_string = ""
    del model.metadata_props[:]
    del model.graph.metadata_props[:]
    del model.graph.value_info[:]
    model.graph.doc_string = ""
    values = (*model.graph.input, *model.graph.output, *model.graph.initializer)
    for part in (*model.graph.node, *values):
        part.doc_string = ""
        del part.metadata_props[:]


def _drop_repeated_masks(graph: onnx.GraphProto) -> None:
    """Each layer masks what it reads, and the one below has masked it: once is enough."""
    masks = {node.output[0]: node for node in graph.node if node.op_type == "Where"}
    for node in masks.values():
        below = masks.get(node.input[1])
        while below is not None and below.input[::2] == node.input[::2]:
            node.input[1] = below.input[1]
            below = masks.get(node.input[1])
    read = {name for node in graph.node for name in node.input} | {o.name for o in graph.output}
    kept = [node for node in graph.node if node.op_type != "Where" or node.output[0] in read]
    del graph.node[:]
    graph.node.extend(kept)


def _drop_unread_inputs(graph: onnx.GraphProto) -> None:
    read = {name for node in graph.node for name in node.input} | {o.name for o in graph.output}
    used = [value for value in graph.input if value.name in read]
    del graph.input[:]
    graph.input.extend(used)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's log and warnings, but not its errors."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)  # optional libraries that are not installed
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*LeafSpec.*", category=FutureWarning)
            warnings.filterwarnings("ignore", message=".*axis name.*will not be used.*")
            yield
    finally:
        logger.setLevel(level)
