"""The exported files: what they hold, what they do not, and that they are checked."""

import copy
import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from safetensors.torch import load_file

from nearfuture.budget import RecognizerConfig
from nearfuture.error import NearfutureError
from nearfuture.export import ModelCard, export_bundle, verify
from nearfuture.export import bundle as exporting
from nearfuture.export.graphs import recognizer as recognizer_graphs
from nearfuture.export.graphs.offline import OfflineGraph
from nearfuture.export.graphs.weights import SMALLEST
from nearfuture.export.verification import TOLERANCE
from nearfuture.layers import GRU, Bidirectional
from nearfuture.model import Recognizer
from nearfuture.runtime import Bundle, OfflineEngine
from tests import bundles
from tests.bundles import FOLDER as COMMITTED
from tests.errors import refuses
from tests.waveform import assert_close, signals, torch_log_probs


def test_files_of_a_streaming_bundle(bundle_folder: Path) -> None:
    files = {path.name for path in bundle_folder.iterdir()}
    graphs = {"step.onnx", "finish.onnx", "weights.bin"}
    assert files == graphs | {"weights.safetensors", "model.json"}
    manifest = json.loads((bundle_folder / "model.json").read_text(encoding="utf-8"))
    assert manifest["files"].keys() == files - {"model.json"}
    assert (manifest["rate"], manifest["frame_ms"], manifest["centre_ms"]) == (8000, 40.0, 27.5)
    assert (manifest["quantum_samples"], manifest["first_quantum_samples"]) == (320, 120)
    assert {h["frames"]: h["worst_ms"] for h in manifest["heads"]} == {
        0: 55.0,
        4: 215.0,
        8: 375.0,
        19: 815.0,
    }
    assert [item["name"] for item in manifest["heads"][2]["latency"]] == [
        "window",
        "stack",
        "lookahead",
    ]


def test_files_of_a_bidirectional_bundle(twin_folder: Path) -> None:
    files = {path.name for path in twin_folder.iterdir()}
    assert files == {"offline.onnx", "weights.bin", "weights.safetensors", "model.json"}


@pytest.mark.parametrize("name", bundles.ABOUT)
def test_the_committed_bundles_are_what_is_exported(
    name: str, bundle_folder: Path, twin_folder: Path
) -> None:
    """The other tests run what `python -m tests.bundles` once wrote."""
    folder = {"tiny": bundle_folder, "tiny-bidirectional": twin_folder}[name]
    now, then = (
        json.loads((at / "model.json").read_text("utf-8")) for at in (folder, COMMITTED / name)
    )
    assert now.pop("files").keys() == then.pop("files").keys()
    assert now == then
    assert verify(bundles.trained(name), COMMITTED / name) <= TOLERANCE


def test_files_of_an_older_export_are_removed(
    twin: Recognizer, twin_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(model: Recognizer, draft: Path, card: ModelCard, *, trainable: bool) -> None:
        skipped = shutil.ignore_patterns("*.safetensors")
        shutil.copytree(twin_folder, draft, dirs_exist_ok=True, ignore=skipped)

    monkeypatch.setattr(exporting, "_write", write)
    monkeypatch.setattr(exporting, "verify", lambda model, draft: 0.0)
    for name in ("step.onnx", "weights.safetensors"):
        (tmp_path / name).write_bytes(b"of another model")
    export_bundle(twin, tmp_path, ModelCard(name="twin"))
    assert {path.name for path in tmp_path.iterdir()} == {
        "model.json",
        "offline.onnx",
        "weights.bin",
    }


def test_the_graph_explains_its_own_state(bundle_folder: Path) -> None:
    session = ort.InferenceSession(str(bundle_folder / "step.onnx"))
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["nearfuture.schema"]) == 1
    assert json.loads(about["nearfuture.heads"]) == [0, 4, 8, 19]
    assert json.loads(about["nearfuture.quantum_samples"]) == 320
    assert json.loads(about["nearfuture.first_quantum_samples"]) == 120
    leaves = {leaf["name"]: leaf for leaf in json.loads(about["nearfuture.state"])}
    assert leaves["features.frames"]["shape"] == [199, 1]
    assert leaves["features.count"] == {
        "name": "features.count",
        "shape": [],
        "dtype": "int64",
        "initial": 0,
    }
    inputs = [value.name for value in session.get_inputs()]
    assert inputs == ["pcm", "lengths", *leaves]
    outputs = [value.name for value in session.get_outputs()]
    heads = [part for tau in (0, 4, 8, 19) for part in (f"log_probs_{tau}", f"frames_{tau}")]
    assert outputs == [*heads, *(f"{name}.next" for name in leaves)]


def test_each_cell_runs_once_a_quantum(bundle_folder: Path, recognizer: Recognizer) -> None:
    graph = onnx.load(bundle_folder / "step.onnx", load_external_data=False).graph
    operators = [node.op_type for node in graph.node]
    assert operators.count("Tanh") == recognizer.config.recurrence.layers
    assert operators.count("LogSoftmax") == 1  # one output layer for all heads


def test_finish_reads_only_what_waits(bundle_folder: Path) -> None:
    graph = onnx.load(bundle_folder / "finish.onnx", load_external_data=False).graph
    inputs = {value.name for value in graph.input}
    assert {"lookahead.frames", "lookahead.count"} <= inputs
    assert not any("hidden" in name or "features" in name for name in inputs)


def test_recurrent_layers_become_the_gru_operator(twin_folder: Path) -> None:
    graph = onnx.load(twin_folder / "offline.onnx", load_external_data=False).graph
    assert [node.op_type for node in graph.node].count("GRU") == 2
    assert "Loop" not in {node.op_type for node in graph.node}


def test_weights_are_stored_once(bundle_folder: Path) -> None:
    contents: set[bytes] = set()
    shared = 0
    for name in ("step.onnx", "finish.onnx"):
        for tensor in onnx.load(bundle_folder / name).graph.initializer:
            array = onnx.numpy_helper.to_array(tensor)
            if array.dtype == np.float32 and array.nbytes >= SMALLEST:
                shared += array.tobytes() in contents
                contents.add(array.tobytes())
        assert (bundle_folder / name).stat().st_size < 100_000
    assert shared >= 2  # the output layer is in both graphs
    total = sum(map(len, contents))
    assert total <= (bundle_folder / "weights.bin").stat().st_size <= total + 64 * len(contents)


@pytest.mark.parametrize("graph", ["step.onnx", "finish.onnx"])
def test_a_graph_says_nothing_about_who_wrote_it(bundle_folder: Path, graph: str) -> None:
    content = (bundle_folder / graph).read_bytes()
    for trace in (b".py", b"site-packages", b"nn.Module", str(Path.cwd()).encode()):
        assert trace not in content


def test_trainable_weights_rebuild_the_model(bundle_folder: Path, recognizer: Recognizer) -> None:
    manifest = json.loads((bundle_folder / "model.json").read_text(encoding="utf-8"))
    rebuilt = Recognizer(RecognizerConfig.from_json(manifest["architecture"])).eval()
    rebuilt.load_state_dict(load_file(bundle_folder / "weights.safetensors"))
    sound = [signals()["speech"]]
    for tau, (expected,) in torch_log_probs(recognizer, sound).items():
        np.testing.assert_array_equal(torch_log_probs(rebuilt, sound)[tau][0], expected)
    assert manifest["parameters"] == sum(p.numel() for p in recognizer.parameters())


@pytest.mark.parametrize("bidirectional", [False, True])
def test_verification_notices_another_model(
    recognizer: Recognizer,
    twin: Recognizer,
    bundle_folder: Path,
    twin_folder: Path,
    bidirectional: bool,
) -> None:
    model, folder = (twin, twin_folder) if bidirectional else (recognizer, bundle_folder)
    assert verify(model, folder) <= TOLERANCE
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.output.module[0].bias[3] += 0.001  # type: ignore[index]
    with pytest.raises(NearfutureError, match=r"differs from torch by"):
        verify(other, folder)
    with torch.no_grad():
        other.output.module[0].bias[3] = torch.nan  # type: ignore[index]
    with pytest.raises(NearfutureError, match="differs from torch by nan"):
        verify(other, folder)


def test_nothing_appears_unless_it_agrees_with_torch(
    twin: Recognizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(model: Recognizer, folder: Path, card: ModelCard, *, trainable: bool) -> None:
        (folder / "model.json").touch()

    def refuse(model: Recognizer, folder: Path) -> float:
        assert (folder / "model.json").is_file()
        raise NearfutureError("it differs")

    monkeypatch.setattr(exporting, "_write", write)
    monkeypatch.setattr(exporting, "verify", refuse)
    with pytest.raises(NearfutureError, match="it differs"):
        export_bundle(twin, tmp_path / "bad", ModelCard(name="bad"))
    assert list(tmp_path.iterdir()) == []


def test_two_frames_a_quantum_are_refused(recognizer: Recognizer) -> None:
    with pytest.raises(NearfutureError, match="slots"):
        recognizer_graphs._streaming(recognizer, 640, 120)


def test_training_is_plain_json() -> None:
    with refuses("invalid", "training"):
        ModelCard(name="x", training={"data": object()})


def test_the_offline_graph_needs_biases(twin: Recognizer) -> None:
    other = copy.deepcopy(twin)
    block = list(other.encoder)[2]
    block.inner.layers[1] = Bidirectional(GRU(32, 32, bias=False), merge="sum")
    with pytest.raises(NearfutureError, match="with biases"):
        OfflineGraph(other)


def test_offline_runs_at_any_length_in_any_batch(twin: Recognizer, twin_folder: Path) -> None:
    engine = OfflineEngine(Bundle.open(twin_folder))
    sound = signals(6.25)["speech"]
    batches = [(n,) for n in (0, 1, 199, 200, 439, 440, 441, 2000, 50_000)]
    batches += [(1, 0), (2000, 440, 0, 1999), (0, 50_000, 1, 439, 44_444)]
    for lengths in batches:
        rows = [sound[-n:] if n else sound[:0] for n in lengths]
        pcm = np.full((len(rows), max(lengths)), np.nan, np.float32)  # padding may be anything
        for b, samples in enumerate(rows):
            pcm[b, : len(samples)] = samples
        log_probs, frames = engine.run(pcm, np.array(lengths, np.int64))
        for b, expected in enumerate(torch_log_probs(twin, rows)[None]):
            assert frames[b] == len(expected)
            assert_close(log_probs[b, : frames[b]], expected, 1e-4, f"row {b} of {lengths}")
            assert not log_probs[b, frames[b] :].any()
