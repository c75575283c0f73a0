"""What holds on which processor: does the package run, and are rows independent, bit for bit?

This machine as it is, then others as qemu-user emulates them (Debian: apt-get install qemu-user;
its processors have no AVX-512). Each runs the bundled models alone and in batches, in every
precision: the twins are made once, here. Where a precision is not offered, the engine must refuse
it by name. Log-probabilities are compared with those of the first processor, and so is the text.

    python benchmarks/processors.py [--processors native Haswell Westmere EPYC Penryn]
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
CLIP = ROOT / "src/nearfuture/assets/samples/flite-rms-3602.flac"
BATCHES = (2, 5, 16, 33)
ROWS = 6  # that are computed alone as well
QUANTA = 8
EMULATOR = "qemu-x86_64"
HAS = {
    "Haswell": "AVX2",
    "Westmere": "SSE4.2, no AVX",
    "EPYC": "AVX2, an AMD",
    "Penryn": "SSE4.1",
}
# What a processor of this name has, a program does not see, and qemu would warn about.
_UNSEEN = "pcid x2apic tsc-deadline hle invpcid rtm monitor"


def here(bundle: str, out: Path) -> None:
    """Measure the processor that this runs on, and print one line of JSON."""
    import numpy as np

    from nearfuture.audio import read, resample
    from nearfuture.runtime import Bundle, Engine, OfflineEngine, load, processor
    from nearfuture.runtime.processor import UnsupportedPrecision

    audio = read(CLIP)
    found: dict[str, Any] = {"offered": processor.offered(), "rows": {}, "text": {}}
    outputs_by_precision: dict[str, Any] = {}
    random = np.random.default_rng(0)
    for precision in ("float32", "int8", "int4"):
        try:
            engine = Engine(Bundle.open(bundle), precision=precision)
        except UnsupportedPrecision:
            found["rows"][precision] = "refused"
            continue
        loudness = random.choice([0.0, 1e-3, 0.1, 1.0], (max(BATCHES), 1))
        width = QUANTA * engine.quantum_samples
        pcm = (loudness * random.uniform(-1, 1, (len(loudness), width))).astype(np.float32)
        lengths = random.integers(0, engine.quantum_samples + 1, (QUANTA, len(pcm)))
        alone = [run(engine, pcm[b : b + 1], lengths[:, b : b + 1])[0] for b in range(ROWS)]
        same = [
            all(same_bits(one, other) for one, other in zip(alone, together, strict=False))
            for together in (run(engine, pcm[:rows], lengths[:, :rows]) for rows in BATCHES)
        ]
        found["rows"][precision] = "equal" if all(same) else "differ"
        model = load(bundle, precision=precision)
        parts: list[Any] = []
        stream = model.stream(audio.rate, on_log_probs=parts.append)
        stream.accept(audio.samples)
        found["text"][precision] = stream.finish().committed
        outputs_by_precision[precision] = np.concatenate([part[max(part)] for part in parts])
    offline = OfflineEngine(Bundle.open("digits-bidirectional"))
    clip = resample(audio.samples, audio.rate, 8000)[:12_000]
    rows = np.stack([clip, *random.uniform(-1, 1, (7, len(clip))).astype(np.float32)])
    sizes = np.array([len(clip), *random.integers(4000, len(clip), 7)])
    one, frames = offline.run(rows[:1], sizes[:1])
    n = int(frames[0])
    same = [
        np.array_equal(offline.run(rows[:b], sizes[:b])[0][0, :n], one[0, :n]) for b in (2, 3, 5, 8)
    ]
    found["rows"]["bidirectional float32"] = "equal" if all(same) else "differ"
    outputs_by_precision["bidirectional"] = one[0, :n]
    np.savez(out, **outputs_by_precision)
    print(json.dumps(found))


def run(engine: Any, pcm: Any, lengths: Any) -> list[list[Any]]:
    """Of each of the first rows everything that it ever gets, its tail included."""
    from nearfuture.runtime.engine import row

    quantum, state = engine.quantum_samples, engine.start(len(pcm))
    parts: list[list[Any]] = [[] for _ in range(min(ROWS, len(pcm)))]
    for at in range(QUANTA):
        chunk = pcm[:, at * quantum : (at + 1) * quantum]
        outputs, state = engine.step(chunk, lengths[at], state)
        for b, part in enumerate(parts):
            part += row(outputs, b).values()
    tails = engine.finish(state)
    for b, part in enumerate(parts):
        part += row(tails, b).values()
    return parts


def same_bits(one: list[Any], other: list[Any]) -> bool:
    import numpy as np

    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def prepared(folder: Path) -> Path:
    """The bundled model in int8 and in int4, too, whatever this processor offers."""
    import onnx

    from nearfuture.export import quantize
    from nearfuture.export.quantization.replacement import GRAPHS, write_quantized_graphs
    from nearfuture.runtime import Bundle
    from nearfuture.runtime.bundle import MODELS

    shutil.copytree(MODELS / "digits", folder)
    quantize(folder, ["int8"])
    graphs = {name: onnx.load(folder / name, load_external_data=False) for name in GRAPHS}
    manifest = Bundle.open(folder).manifest
    manifest = replace(
        manifest,
        files=manifest.files | write_quantized_graphs(folder, graphs, "int4", {}),
        precisions=manifest.precisions | {"int4": manifest.precisions["int8"]},
    )
    (folder / "model.json").write_text(json.dumps(manifest.to_json()), encoding="utf-8")
    return folder


def measured(name: str, bundle: Path, out: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--here", str(bundle), str(out)]
    if name != "native":
        unseen = "".join(f",-{flag}" for flag in _UNSEEN.split())
        command = [EMULATOR, "-cpu", name + unseen, *command]
    print(f"measuring {name}", file=sys.stderr)
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    if result.returncode == 0:
        return dict(json.loads(result.stdout.splitlines()[-1]))
    lines = [line for line in result.stderr.splitlines() if "warning: TCG" not in line]
    message = " ".join(lines[-3:]) or f"exit code {result.returncode}"
    return {"fails": message}


def main() -> None:
    from _report import emit
    from rich.table import Table

    parser = argparse.ArgumentParser()
    parser.add_argument("--here", nargs=2, metavar=("BUNDLE", "OUT"), help=argparse.SUPPRESS)
    parser.add_argument("--processors", nargs="+", default=["native", *HAS])
    options = parser.parse_args()
    if options.here:
        here(options.here[0], Path(options.here[1]))
        return
    names = options.processors
    if shutil.which(EMULATOR) is None and set(names) - {"native"}:
        print(
            f"without {EMULATOR} only this machine is measured: install qemu-user (Debian: "
            f"apt-get install qemu-user)",
            file=sys.stderr,
        )
        names = ["native"]
    import numpy as np

    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        bundle = prepared(Path(scratch) / "digits")
        first = None
        for name in names:
            out = Path(scratch) / f"{name}.npz"
            results[name] = measured(name, bundle, out)
            if "fails" in results[name]:
                continue
            outputs_by_precision = dict(np.load(out))
            first = outputs_by_precision if first is None else first
            results[name]["worst_from_first"] = {
                key: float(np.abs(outputs_by_precision[key] - first[key]).max())
                for key in outputs_by_precision
                if key in first
            }
    columns = ("runs", "float32 rows", "bidirectional", "int8 rows", "int4 rows")
    table = Table("processor", *columns, "worst |Δ log p| from the first: float32", "int8")
    for name, found in results.items():
        called = name if name == "native" else f"{name} ({HAS.get(name, 'emulated')})"
        if "fails" in found:
            table.add_row(called, f"no: {found['fails']}")
            continue
        rows, worst = found["rows"], found["worst_from_first"]
        table.add_row(
            called,
            f"yes: {found['text']['float32']}",
            rows["float32"],
            rows["bidirectional float32"],
            rows["int8"],
            rows["int4"],
            f"{worst['float32']:.1g}",
            f"{worst['int8']:.1g}" if "int8" in worst else "",
        )
    emit(table, results)


if __name__ == "__main__":
    main()
