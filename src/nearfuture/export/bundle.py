"""Export a trained recogniser as a bundle that runs without torch, and verify that it is equal."""

from __future__ import annotations

import copy
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from nearfuture.budget import ReceptiveField
from nearfuture.error import NearfutureError
from nearfuture.export.graphs.recognizer import quantum_samples, recognizer_graphs
from nearfuture.export.graphs.weights import WeightFile, stored_file, write_graphs
from nearfuture.export.quantization import CalibrationData, check_precisions, quantize
from nearfuture.export.quantization.replacement import quantized_files
from nearfuture.export.verification import verify
from nearfuture.model import Recognizer
from nearfuture.runtime import LOW_PRECISIONS, Manifest

_FILES = (
    "model.json",
    "step.onnx",
    "finish.onnx",
    "offline.onnx",
    "weights.bin",
    "weights.safetensors",
    *(name for precision in LOW_PRECISIONS for name in quantized_files(precision)),
)
"""Every file that a bundle may have: none of an older export stays beside a new one."""


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """The name, the description and the training of a model, for its bundle.

    Args:
        name: of the model.
        description: what it is for, in a sentence or a few.
        training: where the weights come from, in plain JSON values: data, licences, seed, steps.

    Raises:
        NearfutureError: where `training` has other values.
    """

    name: str
    description: str = ""
    training: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            json.dumps(self.training, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise NearfutureError(
                f"`training` must be plain JSON values: {error}", parameter="training"
            ) from error


def export_bundle(
    model: Recognizer,
    folder: str | Path,
    card: ModelCard,
    *,
    trainable: bool = False,
    precisions: Sequence[str] = (),
    calibration: CalibrationData | None = None,
) -> Path:
    """Export a recogniser and compare the result with torch before any file appears.

    Args:
        model: streaming (`step.onnx`, `finish.onnx`) or bidirectional (`offline.onnx`); it is not
            changed.
        folder: created if need be; files of an older export are replaced.
        card: what the bundle says about the model.
        trainable: add `weights.safetensors`, to continue the training.
        precisions: low precisions to add, see `quantize`: of `int8` and `int4`.
        calibration: recordings that calibrate and measure them; `CalibrationData.bundled` unless
            given.

    Returns:
        The folder.

    Raises:
        UnsupportedPrecision: for a precision that this processor does not offer.
        NearfutureError: if the graphs do not agree with the model, or cannot be quantized.
    """
    check_precisions(precisions)
    if calibration is not None and not precisions:
        raise NearfutureError(
            "`calibration` is for low precisions: name some in `precisions`",
            code="conflict",
            parameter="calibration",
        )
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    model = copy.deepcopy(model).cpu().float().eval()
    with tempfile.TemporaryDirectory(prefix=".export-", dir=folder.parent) as draft:
        _write(model, Path(draft), card, trainable=trainable)
        verify(model, Path(draft))
        if precisions:
            quantize(draft, precisions, calibration)
        folder.mkdir(exist_ok=True)
        for name in _FILES:
            (folder / name).unlink(missing_ok=True)
        for path in Path(draft).iterdir():
            os.replace(path, folder / path.name)
    return folder


def _write(model: Recognizer, folder: Path, card: ModelCard, *, trainable: bool) -> None:
    graphs = recognizer_graphs(model)
    weights = WeightFile("weights.bin")
    for graph in graphs.values():
        weights.take(graph.graph.initializer)
    files = write_graphs(folder, graphs, weights)
    for name in graphs:
        onnx.checker.check_model(str(folder / name), full_check=True)
    if trainable:
        from safetensors.torch import save

        path = folder / "weights.safetensors"
        path.write_bytes(save(model.state_dict()))
        files[path.name] = stored_file(path)
    config = model.config
    quantum, first_quantum = quantum_samples(model)
    manifest = Manifest(
        name=card.name,
        description=card.description,
        kind="bidirectional" if model.lookahead is None else "streaming",
        vocabulary=model.vocabulary,
        rate=config.features.rate,
        frame_ms=config.frame_ms,
        centre_ms=(_window(model).right + 1) / 2 * 1000 / config.features.rate,
        quantum_samples=quantum,
        first_quantum_samples=first_quantum,
        heads={tau: config.latency(tau) for tau in config.heads},
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        architecture=config,
        training=card.training,
        files=dict(sorted(files.items())),
    )
    content = json.dumps(manifest.to_json(), ensure_ascii=False, indent=2, allow_nan=False)
    (folder / "model.json").write_text(content + "\n", encoding="utf-8")


def _window(model: Recognizer) -> ReceptiveField:
    """The samples a frame stands for: of complete windows, without the context around them."""
    window: ReceptiveField = model.features.field
    for layer in model.encoder:
        if layer.field.padded:
            break
        window = window.then(layer.field)
    return window
