"""Twins of a bundle's graphs in low precision: smaller, faster, their error said beside them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import onnx

from nearfuture.error import NearfutureError
from nearfuture.export.bounds import within_one
from nearfuture.export.calibration import largest_activations
from nearfuture.export.comparison import compare
from nearfuture.export.products import products, weight_key
from nearfuture.export.sounds import Sounds, bundled_sounds
from nearfuture.export.twin import GRAPHS, replaceable, twin_files, write_twin
from nearfuture.runtime import Bundle, Manifest
from nearfuture.runtime.bundle import MANIFEST
from nearfuture.runtime.precision import LOW_PRECISIONS, Precision
from nearfuture.runtime.processor import refuse_unsupported

_UNMEASURED = Precision(worst=0, mean=0, changed_percent=0, frames=0, audio="")


def check_precisions(precisions: Sequence[str]) -> None:
    """Raise for a precision that there is no way to make, here or anywhere.

    Raises:
        UnsupportedPrecision: for one that this processor does not offer.
        NearfutureError: for one that there is not.
    """
    for one in precisions:
        if one not in LOW_PRECISIONS:
            known = " or ".join(LOW_PRECISIONS)
            raise NearfutureError(f"there is no precision {one!r}: choose {known}")
        refuse_unsupported(one)


def quantize(
    folder: str | Path, precisions: Sequence[str] = ("int8",), sounds: Sounds | None = None
) -> dict[str, Precision]:
    """Add twins in low precision to the bundle in a folder, and measure their error.

    Only the large matrix products change, and in int8 large convolutions over frequency; features,
    lookahead and the softmax stay in float32. The scales of int8 are constants: states of gated
    cells lie in [-1, 1], everything else is calibrated. The bundle is usable, without the twins,
    whenever this is interrupted.

    Args:
        folder: of a streaming bundle; a twin that is there already is replaced.
        precisions: of `int8` (many streams) and `int4`, weights only (a few streams).
        sounds: to calibrate and to measure with; `bundled_sounds` unless given.

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
        raise NearfutureError(f"{folder} is no folder: twins are added to an unpacked bundle")
    bundle = Bundle.open(folder)
    manifest = bundle.manifest
    if manifest.kind != "streaming":
        raise NearfutureError(
            f"{manifest.name} is bidirectional: ONNX Runtime runs it as one operator, which has no "
            f"low precision; quantise a streaming model"
        )
    sounds = bundled_sounds(manifest.rate) if sounds is None else sounds
    graphs = {name: onnx.load(bundle.graph(name), load_external_data=False) for name in GRAPHS}
    if not any(products(model.graph) for model in graphs.values()):
        raise NearfutureError(
            f"{manifest.name} has no matrix product large enough to gain from a low precision: run "
            f"it in float32"
        )
    largest = _largest(bundle, graphs, sounds) if "int8" in precisions else {}
    manifest = _without(manifest, precisions)
    _write_manifest(folder, manifest)  # nothing points at what is about to change
    for precision in precisions:
        try:
            files = write_twin(folder, graphs, precision, largest)
            manifest = replace(
                manifest,
                files=manifest.files | files,
                precisions=manifest.precisions | {precision: _UNMEASURED},
            )
            error = compare(Bundle(manifest, folder), precision, sounds)
        except BaseException:
            for name in twin_files(precision):
                (folder / name).unlink(missing_ok=True)
            raise
        manifest = replace(manifest, precisions=manifest.precisions | {precision: error})
        _write_manifest(folder, manifest)
    return {name: manifest.precisions[name] for name in precisions}


def _largest(
    bundle: Bundle, graphs: dict[str, onnx.ModelProto], sounds: Sounds
) -> dict[str, float]:
    """The largest activation of every weight, whichever graph multiplies with it."""
    read: dict[tuple[str, str], str] = {}
    bounded: set[str] = set()
    gated = bundle.manifest.architecture.recurrence.cell in ("gru", "lstm")
    for name, model in graphs.items():
        inside = within_one(model.graph) if gated else set()
        for product in replaceable(model.graph, "int8"):
            key = weight_key(model.graph, product.weight)
            read[name, product.x] = key
            if product.x in inside:
                bounded.add(key)
    values = {name: [x for at, x in read if at == name] for name in graphs}
    largest = dict.fromkeys(read.values(), 0.0)
    for place, magnitude in largest_activations(bundle, values, sounds.calibrating).items():
        largest[read[place]] = max(largest[read[place]], magnitude)
    return largest | dict.fromkeys(bounded, 1.0)


def _without(manifest: Manifest, precisions: Sequence[str]) -> Manifest:
    gone = {name for precision in precisions for name in twin_files(precision)}
    return replace(
        manifest,
        files={name: file for name, file in manifest.files.items() if name not in gone},
        precisions={
            name: error for name, error in manifest.precisions.items() if name not in precisions
        },
    )


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    manifest = replace(manifest, files=dict(sorted(manifest.files.items())))
    content = json.dumps(manifest.to_json(), ensure_ascii=False, indent=2, allow_nan=False)
    draft = folder / f".{MANIFEST}"
    draft.write_text(content + "\n", encoding="utf-8")
    os.replace(draft, folder / MANIFEST)
