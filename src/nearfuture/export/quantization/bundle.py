"""Quantize a bundle: add smaller and faster graphs in low precision, and measure their error."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import onnx

from nearfuture.error import NearfutureError
from nearfuture.export.quantization.activations import activation_ranges
from nearfuture.export.quantization.calibration_data import CalibrationData
from nearfuture.export.quantization.error import measure_error
from nearfuture.export.quantization.products import products
from nearfuture.export.quantization.replacement import (
    GRAPHS,
    quantized_files,
    write_quantized_graphs,
)
from nearfuture.runtime import LOW_PRECISIONS, Bundle, Manifest, Precision
from nearfuture.runtime.bundle import MANIFEST
from nearfuture.runtime.processor import refuse_unsupported

_UNMEASURED = Precision(worst=0, mean=0, changed_percent=0, frames=0, audio="")


def check_precisions(precisions: Collection[str]) -> None:
    """Check that graphs can be made in these precisions.

    Raises:
        UnsupportedPrecision: for one that this processor does not offer.
        NearfutureError: for an unknown one.
    """
    for precision in precisions:
        if precision not in LOW_PRECISIONS:
            raise NearfutureError(
                f"`precision` is {' or '.join(LOW_PRECISIONS)}, not {precision!r}",
                code="not_found",
                parameter="precision",
            )
        refuse_unsupported(precision)


def quantize(
    folder: str | Path,
    precisions: Sequence[str] = ("int8",),
    data: CalibrationData | None = None,
) -> dict[str, Precision]:
    """Add graphs in low precision to the bundle in a folder, and measure their error.

    Only the large matrix products change, and in int8 large convolutions over frequency; features,
    lookahead and the softmax stay in float32. The scales of int8 are constants: states of gated
    cells lie in [-1, 1], everything else is calibrated. The bundle is usable, without the low
    precisions, whenever this is interrupted.

    Args:
        folder: of a streaming bundle; a precision that it has already is replaced.
        precisions: of `int8` (many streams) and `int4`, weights only (a few streams).
        data: recordings to calibrate and to measure with; `CalibrationData.bundled` unless given.

    Returns:
        The error of each.

    Raises:
        UnsupportedPrecision: for one whose rows are not bit-independent on this processor; nothing
            is changed where it is known beforehand.
        NearfutureError: for a bundle that is bidirectional, a zip file, or too small to gain
            anything.
    """
    check_precisions(precisions)
    folder = Path(folder)
    if not folder.is_dir():
        raise NearfutureError(
            f"{folder} is no folder: unpack the bundle to add a low precision", parameter="folder"
        )
    bundle = Bundle.open(folder)
    manifest = bundle.manifest
    if manifest.kind != "streaming":
        raise NearfutureError(
            f"{manifest.name} is bidirectional: ONNX Runtime runs it as one operator, which has no "
            f"low precision; quantize a streaming model",
            code="unsupported",
        )
    graphs = {name: onnx.load(bundle.graph(name), load_external_data=False) for name in GRAPHS}
    if not any(products(model.graph) for model in graphs.values()):
        raise NearfutureError(
            f"{manifest.name} has no matrix product large enough to gain from a low precision: run "
            f"it in float32",
            code="unsupported",
        )
    data = data or CalibrationData.bundled(manifest.rate)
    ranges = activation_ranges(bundle, graphs, data.calibration) if "int8" in precisions else {}
    manifest = _without(manifest, precisions)
    _write_manifest(folder, manifest)  # nothing refers to files that are about to change
    for precision in precisions:
        try:
            files = write_quantized_graphs(folder, graphs, precision, ranges)
            manifest = replace(
                manifest,
                files=manifest.files | files,
                precisions=manifest.precisions | {precision: _UNMEASURED},
            )
            error = measure_error(Bundle(manifest, folder), precision, data)
        except BaseException:
            for name in quantized_files(precision):
                (folder / name).unlink(missing_ok=True)
            raise
        manifest = replace(manifest, precisions=manifest.precisions | {precision: error})
        _write_manifest(folder, manifest)
    return {name: manifest.precisions[name] for name in precisions}


def _without(manifest: Manifest, precisions: Collection[str]) -> Manifest:
    """The manifest of the bundle before it had these precisions."""
    old = {name for precision in precisions for name in quantized_files(precision)}
    kept = {name: error for name, error in manifest.precisions.items() if name not in precisions}
    files = {name: file for name, file in manifest.files.items() if name not in old}
    return replace(manifest, files=files, precisions=kept)


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    manifest = replace(manifest, files=dict(sorted(manifest.files.items())))
    content = json.dumps(manifest.to_json(), ensure_ascii=False, indent=2, allow_nan=False)
    draft = folder / f".{MANIFEST}"
    draft.write_text(content + "\n", encoding="utf-8")
    os.replace(draft, folder / MANIFEST)
