"""Write a trained recogniser as a bundle that runs without torch, and prove that it is the same."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import torch

from nearfuture.budget import ReceptiveField
from nearfuture.error import NearfutureError
from nearfuture.export.offline import OfflineGraph
from nearfuture.export.quantization import check_precisions, quantize
from nearfuture.export.sounds import Sounds
from nearfuture.export.streaming import FinishGraph, StepGraph
from nearfuture.export.translation import translate
from nearfuture.export.twin import twin_files
from nearfuture.export.verification import verify
from nearfuture.export.weights import WeightFile
from nearfuture.layers import Recurrent
from nearfuture.model import Recognizer
from nearfuture.runtime.manifest import Manifest, StoredFile
from nearfuture.runtime.precision import LOW_PRECISIONS

_FILES = (
    "model.json",
    "step.onnx",
    "finish.onnx",
    "offline.onnx",
    "weights.bin",
    "weights.safetensors",
    *(name for precision in LOW_PRECISIONS for name in twin_files(precision)),
)
"""Everything a bundle may consist of: nothing of an older export is left beside a new one."""

_SCHEMA = 1
"""Of what the graphs say about themselves."""

_EXAMPLE_ROWS = 3
_EXAMPLE_SAMPLES = 5000


def export_bundle(
    model: Recognizer,
    folder: str | Path,
    *,
    name: str,
    description: str,
    training: dict[str, Any],
    trainable: bool = False,
    precisions: Sequence[str] = (),
    sounds: Sounds | None = None,
) -> Path:
    """Export a recogniser and check the result against torch before any file appears.

    Args:
        model: streaming (`step.onnx`, `finish.onnx`) or bidirectional (`offline.onnx`); it is not
            changed.
        folder: created if need be; files of an older export are replaced.
        name: of the model.
        description: what it is for, in a sentence or a few.
        training: where the weights come from, in plain JSON values: data, licences, seed, steps.
        trainable: add `weights.safetensors`, to go on training.
        precisions: twins to add, see `quantize`: of `int8` and `int4`.
        sounds: what they are calibrated on and measured with; `bundled_sounds` unless given.

    Returns:
        The folder.

    Raises:
        UnsupportedPrecision: for a precision that this processor does not offer.
        NearfutureError: if the graphs do not agree with the model, a value is not plain JSON, or a
            twin cannot be made.
    """
    check_precisions(precisions)
    if sounds is not None and not precisions:
        raise NearfutureError("sounds calibrate a low precision: name it in precisions=")
    try:
        json.dumps(training, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise NearfutureError(f"training must be plain JSON values: {error}") from error
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    model = copy.deepcopy(model).cpu().float().eval()
    with tempfile.TemporaryDirectory(prefix=".export-", dir=folder.parent) as draft:
        _write(model, Path(draft), name, description, training, trainable)
        verify(model, Path(draft))
        if precisions:
            quantize(draft, precisions, sounds)
        folder.mkdir(exist_ok=True)
        for name in _FILES:
            (folder / name).unlink(missing_ok=True)
        for path in Path(draft).iterdir():
            os.replace(path, folder / path.name)
    return folder


def _write(
    model: Recognizer,
    folder: Path,
    name: str,
    description: str,
    training: dict[str, Any],
    trainable: bool,
) -> None:
    quantum, first = quantum_samples(model)
    lean = _folded(model)
    graphs = _offline(lean) if model.lookahead is None else _streaming(lean, quantum, first)
    weights = WeightFile("weights.bin")
    for file_name, graph in graphs.items():
        weights.take(graph)
        (folder / file_name).write_bytes(graph.SerializeToString(deterministic=True))
    (folder / weights.name).write_bytes(weights.data)
    for file_name in graphs:
        onnx.checker.check_model(str(folder / file_name), full_check=True)
    if trainable:
        from safetensors.torch import save

        (folder / "weights.safetensors").write_bytes(save(model.state_dict()))
    config = model.config
    window = _window(model)
    manifest = Manifest(
        name=name,
        description=description,
        kind="bidirectional" if model.lookahead is None else "streaming",
        vocabulary=model.vocabulary,
        rate=config.features.rate,
        frame_ms=config.frame_ms,
        centre_ms=(window.right + 1) / 2 * 1000 / config.features.rate,
        quantum_samples=quantum,
        first_quantum_samples=first,
        heads={tau: config.latency(tau) for tau in config.heads},
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        architecture=config,
        training=training,
        files={path.name: _stored(path) for path in sorted(folder.iterdir())},
    )
    content = json.dumps(manifest.to_json(), ensure_ascii=False, indent=2, allow_nan=False)
    (folder / "model.json").write_text(content + "\n", encoding="utf-8")


def _folded(model: Recognizer) -> Recognizer:
    """A copy whose recurrent layers have their batch norms multiplied into their weights."""
    lean = copy.deepcopy(model)
    for parent in list(lean.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, Recurrent):
                setattr(parent, name, child.folded())
    return lean


def _window(model: Recognizer) -> ReceptiveField:
    """The samples a frame stands for: of complete windows, without the context around them."""
    field: ReceptiveField = model.features.field
    for layer in model.encoder:
        if layer.field.padded:
            break
        field = field.then(layer.field)
    return field


def quantum_samples(model: Recognizer) -> tuple[int, int]:
    """Samples of a quantum and of the first one; (0, 0) for a bidirectional model.

    A quantum makes exactly one more frame possible. The first is what is left of the first frame's
    window when whole quanta are taken off, so that every later one ends where a frame appears.

    >>> from nearfuture.budget import tiny
    >>> quantum_samples(Recognizer(tiny()))
    (320, 120)
    """
    if model.lookahead is None:
        return 0, 0
    field = model.at(min(model.config.heads)).field
    return field.stride, int(field.needed(0)) % field.stride or field.stride


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
    _one_slot(step, quantum)
    return {
        "step.onnx": translate(step, chunk | state, outputs, metadata),
        "finish.onnx": translate(FinishGraph(model), state, emitted, metadata),
    }


def _one_slot(step: StepGraph, quantum: int) -> None:
    outputs = step(torch.zeros(1, quantum, 1), torch.tensor([quantum]), *step.start(1))
    slots = outputs[0].shape[1]
    if slots != 1:
        raise NearfutureError(
            f"one quantum of {quantum} samples has {slots} slots for frames instead of 1: the "
            f"cells would run that often"
        )


def _offline(model: Recognizer) -> dict[str, onnx.ModelProto]:
    inputs = {
        "pcm": (torch.zeros(_EXAMPLE_ROWS, _EXAMPLE_SAMPLES, 1), {0: "batch", 1: "samples"}),
        "lengths": (torch.full((_EXAMPLE_ROWS,), _EXAMPLE_SAMPLES), {0: "batch"}),
    }
    graph = translate(OfflineGraph(model), inputs, ["log_probs", "frames"], {"schema": _SCHEMA})
    return {"offline.onnx": graph}


def _stored(path: Path) -> StoredFile:
    content = path.read_bytes()
    return StoredFile(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
