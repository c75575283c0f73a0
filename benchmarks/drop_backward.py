"""A bidirectional model without its backward direction, beside one trained to stream.

The backward half of every recurrent layer of the bundled twin is set to zero, so that its state is
zero for ever and the sum of the directions is the forward one alone: the shape of a model that
could stream, with weights that were not trained to. Test strings of connected digits, as in
digits.py, or the recordings of a manifest.

    python benchmarks/drop_backward.py [--manifest FILE] [--streaming BUNDLE]
        [--bidirectional BUNDLE]
"""

import argparse
import dataclasses
import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import onnx
from _report import emit
from digits import RATE, SEED, STRINGS_PER_SPEAKER, measure
from onnx import numpy_helper
from rich.table import Table

from nearfuture.data import Utterance, load_utterances, read_source
from nearfuture.runtime import Bundle, Model, load
from nearfuture.runtime.manifest import StoredFile
from recipes.digits import DigitRecordings

RECURRENT = ("RNN", "GRU", "LSTM")


def forward_alone(source: str, folder: Path) -> Path:
    """A copy of a bidirectional bundle whose backward weights are zero."""
    bundle = Bundle.open(source)
    shutil.copytree(bundle.folder, folder)
    graph = onnx.load(folder / "offline.onnx")
    weights = {tensor.name: tensor for tensor in graph.graph.initializer}
    dropped = 0
    for node in graph.graph.node:
        if node.op_type in RECURRENT:
            for name in node.input[1:4]:  # W, U and b, each of the forward and the backward one
                values = np.array(numpy_helper.to_array(weights[name]))
                values[1] = 0
                weights[name].CopyFrom(numpy_helper.from_array(values, name))
            dropped += 1
    if not dropped:
        raise SystemExit(f"{source} has no recurrent layer to take a direction from")
    onnx.save(graph, folder / "offline.onnx")
    (folder / "weights.bin").unlink()
    content = (folder / "offline.onnx").read_bytes()
    stored = StoredFile(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    manifest = dataclasses.replace(bundle.manifest, files={"offline.onnx": stored})
    (folder / "model.json").write_text(json.dumps(manifest.to_json()), encoding="utf-8")
    return folder


def strings(manifest: Path | None) -> dict[str, list[Utterance]]:
    if manifest is not None:
        return {manifest.parent.name: load_utterances(read_source(manifest).cuts, RATE)[0]}
    recordings = DigitRecordings.load()
    return {"seen": recordings.strings(recordings.seen, "test", STRINGS_PER_SPEAKER, seed=SEED)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--manifest", type=Path)
    parser.add_argument("--streaming", default="digits")
    parser.add_argument("--bidirectional", default="digits-bidirectional")
    options = parser.parse_args()

    ((name, evaluated),) = strings(options.manifest).items()
    models: dict[str, Model] = {"both directions": load(options.bidirectional)}
    with tempfile.TemporaryDirectory() as folder:
        models["its forward direction alone"] = load(
            forward_alone(options.bidirectional, Path(folder) / "model")
        )
        for frames, latency in load(options.streaming).budgets.items():
            streaming = load(options.streaming, budget_ms=latency.worst_ms)
            models[f"trained to stream, τ = {frames}"] = streaming
        table = Table(
            "model",
            "WER %",
            "95 % interval",
            "CER %",
            title=f"{len(evaluated)} strings of connected digits ({name})",
        )
        results = []
        for model_name, model in models.items():
            figures, _ = measure(model, evaluated)
            table.add_row(
                model_name,
                f"{figures['wer']:.2f}",
                f"{figures['wer_low']:.2f}-{figures['wer_high']:.2f}",
                f"{figures['cer']:.2f}",
            )
            results.append({"model": model_name, "strings": len(evaluated), **figures})
    emit(table, results)


if __name__ == "__main__":
    main()
