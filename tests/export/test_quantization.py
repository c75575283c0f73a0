"""Low precision: close to float32, the error as stated, and rows independent bit for bit."""

import dataclasses
import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from nearfuture.error import NearfutureError
from nearfuture.export import CalibrationData, ModelCard, export_bundle, quantize
from nearfuture.export import bundle as exporting
from nearfuture.export.quantization import bundle as quantization
from nearfuture.export.quantization.activations import (
    activation_ranges,
    largest_values,
    unit_values,
)
from nearfuture.export.quantization.error import measure_error
from nearfuture.export.quantization.frequency_convolution import frequency_convolutions
from nearfuture.export.quantization.products import products
from nearfuture.export.quantization.replacement import (
    GRAPHS,
    quantized_files,
    write_quantized_graphs,
)
from nearfuture.model import Recognizer
from nearfuture.runtime import Bundle, Engine, load
from nearfuture.runtime.bundle import MODELS
from nearfuture.runtime.precision import FLOAT32
from nearfuture.runtime.processor import UnsupportedPrecision
from tests import bundles
from tests.errors import refuses
from tests.prepared import prepared
from tests.processor import OFFERED, offers
from tests.runtime.states import assert_rows_are_strangers
from tests.waveform import assert_same_bits, hear, signals

SPEECH = signals(1.5)["speech"]


def from_elsewhere(folder: Path) -> Path:
    """The same bundle with graphs in int4 even where this processor does not offer it."""
    manifest = Bundle.open(folder).manifest
    if "int4" not in manifest.precisions:
        graphs = {name: onnx.load(folder / name, load_external_data=False) for name in GRAPHS}
        manifest = dataclasses.replace(
            manifest,
            files=manifest.files | write_quantized_graphs(folder, graphs, "int4", {}),
            precisions=manifest.precisions | {"int4": manifest.precisions["int8"]},
        )
        (folder / "model.json").write_text(json.dumps(manifest.to_json()), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled model in all low precisions."""

    def make(folder: Path) -> Path:
        shutil.copytree(MODELS / "digits", folder)
        quantize(folder, OFFERED)
        return from_elsewhere(folder)

    return prepared("digits-low-precision", make, tmp_path_factory)


@pytest.fixture(scope="session")
def deep_speech(deep_speech_2_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("deep-speech-2") / "model"
    return from_elsewhere(shutil.copytree(deep_speech_2_folder, copy))


@pytest.fixture
def folder(digits: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(digits, tmp_path / "copy"))


def graph(folder: Path, name: str) -> onnx.GraphProto:
    return onnx.load(folder / name, load_external_data=False).graph


def operators(folder: Path, name: str) -> Counter[str]:
    return Counter(node.op_type for node in graph(folder, name).node)


def constants(folder: Path, name: str) -> dict[str, np.ndarray]:
    model = onnx.load(folder / name)
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


@pytest.mark.parametrize("precision", OFFERED)
@pytest.mark.parametrize("which", ["digits", "deep_speech"])
def test_rows_are_bit_equal_in_batches_of_1_to_64(
    which: str, precision: str, request: pytest.FixtureRequest
) -> None:
    engine = Engine(Bundle.open(request.getfixturevalue(which)), precision=precision)
    random = np.random.default_rng(3)
    quantum = engine.quantum_samples
    loudness = random.choice([0.0, 1e-3, 0.1, 1.0], (64, 1))
    pcm = (loudness * random.uniform(-1, 1, (64, quantum))).astype(np.float32)
    lengths = random.choice([0, 1, quantum - 1, quantum], 64)
    state = engine.start(64)
    for _ in range(3):
        size = random.integers(0, quantum + 1, 64)
        noise = random.uniform(-1, 1, (64, quantum)).astype(np.float32)
        _, state = engine.step(noise, size, state)
    batches = range(1, 65) if which == "digits" else (2, 3, 5, 16, 64)
    assert_rows_are_strangers(engine, pcm, lengths, state, batches, random)


@pytest.mark.processor
@pytest.mark.parametrize("precision", OFFERED)
def test_any_cut_gives_the_same_bits(digits: Path, precision: str) -> None:
    model = load(digits, precision=precision)
    whole = hear(model, SPEECH)
    sizes = np.diff([0, 1, 2, 700, 701, 5000, 5320, len(SPEECH)]).tolist()
    assert_same_bits(hear(model, SPEECH, sizes), whole)


@pytest.mark.parametrize("precision", OFFERED)
@pytest.mark.parametrize("which", ["digits", "deep_speech"])
def test_the_error_is_small_and_as_stated(
    which: str, precision: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(which)
    stated = Bundle.open(folder).manifest.precisions[precision]
    reference, quantized = load(folder), load(folder, precision=precision)
    differences, changed = [], []
    for sound in CalibrationData.bundled(reference.rate).evaluation:
        expected = hear(reference, sound).log_probs
        found = hear(quantized, sound).log_probs
        for tau, values in expected.items():
            differences.append(np.abs(found[tau] - values).ravel())
            changed.append(found[tau].argmax(axis=1) != values.argmax(axis=1))
    assert stated.worst == pytest.approx(float(np.concatenate(differences).max()), rel=1e-3)
    assert stated.mean == pytest.approx(float(np.concatenate(differences).mean()), rel=1e-3)
    assert stated.changed_percent == pytest.approx(100 * np.concatenate(changed).mean(), abs=0.2)
    assert stated.frames == len(np.concatenate(changed))
    assert 0 < stated.mean < {"int8": 0.15, "int4": 1.0}[precision]
    assert "synthetic voices" in stated.audio


def test_only_large_products_change(digits: Path) -> None:
    before, eight, four = (
        operators(digits, name) for name in ("step.onnx", "step.int8.onnx", "step.int4.onnx")
    )
    # The projection, two of each of three layers, the hidden layer of the output; not the
    # transform, the mel filters and the symbols.
    assert before["MatMul"] + before["Gemm"] == 11
    for after, product in ((eight, "MatMulIntegerToFloat"), (four, "MatMulNBits")):
        assert after[product] == 8
        assert (after["MatMul"], after["Gemm"]) == (3, 0)
        same = set(before) - {"MatMul", "Gemm", "Add"}
        assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert eight["QuantizeLinear"] == 8
    assert not [name for name in eight if name.startswith("Dynamic")]
    sizes = {path.name: path.stat().st_size for path in digits.iterdir()}
    assert sizes["weights.int8.bin"] < 0.3 * sizes["weights.bin"]
    assert sizes["weights.int4.bin"] < 0.2 * sizes["weights.bin"]


def test_large_convolutions_over_frequency_change_in_int8(deep_speech: Path) -> None:
    # The first has 7 216 weights, the second 59 136; in the end the lookahead is one as well.
    for name, expected in {"step": [2, 1, 2], "finish": [5, 3, 5]}.items():
        counts = [
            operators(deep_speech, file)["Conv"]
            for file in (f"{name}.onnx", f"{name}.int8.onnx", f"{name}.int4.onnx")
        ]
        assert counts == expected
        eight = graph(deep_speech, f"{name}.int8.onnx")
        read = {value for node in eight.node for value in node.input}
        read |= {value.name for value in eight.output}
        assert [node.name for node in eight.node if not read.intersection(node.output)] == []


def test_features_never_change_however_large_they_are() -> None:
    shapes = [product.shape for product in products(graph(MODELS / "digits", "step.onnx"), 1000)]
    assert (192, 17) in shapes  # the symbols would
    assert (129, 40) not in shapes  # the mel filters would not


def test_weights_are_stored_once(deep_speech: Path) -> None:
    step, finish = (operators(deep_speech, f"{name}.int8.onnx") for name in ("step", "finish"))
    assert finish["MatMulIntegerToFloat"] > step["MatMulIntegerToFloat"]
    step_graph = graph(deep_speech, "step.onnx")
    shapes = [product.shape for product in products(step_graph)]
    for one in frequency_convolutions(step_graph):
        _, channels, taps, _ = one.kernel
        shapes.append((one.reach * taps * channels, one.block * one.kernel[0]))
    assert len(shapes) == 5
    size = (deep_speech / "weights.int8.bin").stat().st_size
    assert size < 1.05 * sum(rows * columns + 4 * columns for rows, columns in shapes)


def test_states_of_gated_cells_need_no_recording(deep_speech: Path) -> None:
    model = graph(deep_speech, "step.onnx")
    inside = unit_values(model)
    bounded = [product.x in inside for product in products(model)]
    # The first layer reads the convolutions; its state, and all of the second layer, is bounded.
    assert bounded == [False, True, True, True]
    scales = {
        name: float(value)
        for name, value in constants(deep_speech, "step.int8.onnx").items()
        if name.endswith(".x_scale")
    }
    assert sorted(scales.values())[:3] == pytest.approx([1 / 127] * 3)
    assert max(scales.values()) > 1 / 127
    values = {"step.onnx": [*inside - {v.name for v in model.input}], "finish.onnx": []}
    noise = np.random.default_rng(0).uniform(-1, 1, 16_000).astype(np.float32)
    seen = largest_values(Bundle.open(deep_speech), values, [noise])
    assert len(seen) >= 4
    assert 0.1 < max(seen.values()) <= 1


def test_states_of_other_cells_are_calibrated(digits: Path) -> None:
    bundle = Bundle.open(digits)
    graphs = {name: onnx.load(digits / name, load_external_data=False) for name in GRAPHS}
    cells = {}
    for cell in ("gru", "lstm", "rnn"):
        architecture = bundle.manifest.architecture.replace(cell=cell)
        manifest = dataclasses.replace(bundle.manifest, architecture=architecture)
        silent = activation_ranges(Bundle(manifest, digits), graphs, [])
        cells[cell] = sorted(silent.values())
    assert cells["gru"] == cells["lstm"] == [0.0] * 5 + [1.0] * 3
    assert cells["rnn"] == [0.0] * 8


def test_the_scale_is_the_largest_activation(digits: Path) -> None:
    bundle = Bundle.open(digits)
    (first, *_) = products(graph(digits, "step.onnx"))
    values = {"step.onnx": [first.x], "finish.onnx": []}
    quiet, loud = (
        largest_values(bundle, values, [sound])["step.onnx", first.x]
        for sound in (0.01 * SPEECH, SPEECH)
    )
    both = largest_values(bundle, values, [0.01 * SPEECH, SPEECH])
    assert quiet != loud
    assert both["step.onnx", first.x] == max(quiet, loud)


def test_dynamic_scales_are_refused(folder: Path) -> None:
    """What this library must not do: a scale that is computed from the whole batch."""
    model = onnx.load(folder / "step.int8.onnx")
    changed = []
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear":
            continue
        if node.op_type == "MatMulIntegerToFloat":
            source = next(
                n for n in model.graph.node if n.output and n.output[0] == node.input[0]
            ).input[0]
            inputs = [source, node.input[1], node.input[3], node.input[5], *node.input[6:]]
            node = helper.make_node(
                "DynamicQuantizeMatMul", inputs, list(node.output), domain="com.microsoft"
            )
        changed.append(node)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in changed]
    del model.graph.node[:]
    model.graph.node.extend(copies)
    bundle = Bundle.open(folder)
    data = CalibrationData.bundled(bundle.manifest.rate)
    measure_error(bundle, "int8", data)
    onnx.save(model, folder / "step.int8.onnx")
    with pytest.raises(NearfutureError, match="depend on the streams beside it"):
        measure_error(bundle, "int8", data)


def test_log_probabilities_that_are_not_finite_are_refused(folder: Path) -> None:
    bundle = Bundle.open(folder)
    model = onnx.load(folder / "step.int8.onnx", load_external_data=False)
    scales = [one for one in model.graph.initializer if one.name == "product.7.scale"]
    scales[0].raw_data = np.full(scales[0].dims, np.nan, np.float32).tobytes()
    (folder / "step.int8.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(NearfutureError, match="not finite"):
        measure_error(bundle, "int8", CalibrationData.bundled(bundle.manifest.rate))


def test_error_rates_are_measured_where_texts_are_given(folder: Path) -> None:
    data = CalibrationData.split([SPEECH, SPEECH, SPEECH[::-1].copy()], ["", "abc abc", ""])
    errors = quantize(folder, ["int8"], data)["int8"]
    assert errors.cer is not None
    assert errors.float32_cer is not None
    said = load(folder, precision="int8").transcribe(SPEECH).text
    assert errors.cer > 0 or said == "abc abc"
    assert errors.audio == "calibrated on 2 recordings, measured on 1 others"
    assert Bundle.open(folder).manifest.precisions["int8"] == errors


def test_unchanged_weights_are_shared(folder: Path) -> None:
    places = {
        entry.value
        for tensor in graph(folder, "step.int8.onnx").initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }
    assert places == {"weights.bin", "weights.int8.bin"}


def test_an_export_removes_low_precisions_of_an_older_one(
    folder: Path, recognizer: Recognizer, bundle_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(model: Recognizer, draft: Path, card: ModelCard, *, trainable: bool) -> None:
        shutil.copytree(bundle_folder, draft, dirs_exist_ok=True)

    monkeypatch.setattr(exporting, "_write", write)
    monkeypatch.setattr(exporting, "verify", lambda model, draft: 0.0)
    export_bundle(recognizer, folder, ModelCard(name="x"))
    assert not [path.name for path in folder.iterdir() if "int" in path.name]
    assert Bundle.open(folder).manifest.precisions == {}


def test_a_precision_is_replaced(folder: Path) -> None:
    before = Bundle.open(folder).manifest
    quantize(folder, ["int8"], CalibrationData.split([SPEECH, 0.1 * SPEECH]))
    after = Bundle.open(folder).manifest
    assert list(after.precisions) == ["int4", "int8"]
    assert after.precisions["int4"] == before.precisions["int4"]
    assert after.precisions["int8"].audio.startswith("calibrated on 1")
    assert after.precisions["int8"].cer is None


def test_an_interruption_leaves_a_usable_bundle(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(quantization, "measure_error", stopped)
    with pytest.raises(KeyboardInterrupt):
        quantize(folder, ["int8"])
    bundle = Bundle.open(folder)
    assert list(bundle.manifest.precisions) == ["int4"]
    assert not any((folder / name).exists() for name in quantized_files("int8"))
    Engine(bundle, precision="auto")


def test_a_precision_that_is_not_offered_is_refused_before_anything_changes(
    digits: Path, recognizer: Recognizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offers(monkeypatch, "int8")
    before = {path.name: path.stat().st_mtime_ns for path in digits.iterdir()}
    with pytest.raises(UnsupportedPrecision, match=r"^int4 is not offered on this processor"):
        quantize(digits, ["int8", "int4"])
    assert {path.name: path.stat().st_mtime_ns for path in digits.iterdir()} == before
    with pytest.raises(UnsupportedPrecision, match="choose int8 or float32"):
        export_bundle(recognizer, tmp_path / "x", ModelCard(name="x"), precisions=["int4"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.processor
def test_int4_is_measured_where_it_is_offered_and_refused_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the question about one product says, the whole graph has the last word."""
    truth = "int4" in OFFERED
    offers(monkeypatch, "int8", "int4")
    if truth:
        assert 0 < quantize(folder, ["int4"])["int4"].mean < 1
    else:
        with pytest.raises(UnsupportedPrecision, match="depend on the streams beside it"):
            quantize(folder, ["int4"])
    left = Bundle.open(folder).manifest.precisions
    assert list(left) == (["int8", "int4"] if truth else ["int8"])
    assert (folder / "step.int4.onnx").exists() is truth
    load(folder, precision="int8").transcribe(SPEECH)


def test_unknown_precisions_and_other_bundles_are_refused(
    digits: Path, recognizer: Recognizer, tmp_path: Path
) -> None:
    for precision in ("int3", FLOAT32):
        with refuses("not_found", "precision", precision, "int8 or int4"):
            quantize(digits, [precision])
    with refuses("unsupported", None, "bidirectional"):
        quantize(bundles.committed("tiny-bidirectional", tmp_path))
    with refuses("invalid", "folder", "model.zip"):
        quantize(tmp_path / "model.zip")
    small = bundles.committed("tiny", tmp_path)
    for precision in OFFERED:
        with refuses("unsupported", None, "no matrix product large enough"):
            quantize(small, [precision])
    Bundle.open(small)
    card, data = ModelCard(name="x"), CalibrationData.split([SPEECH, SPEECH])
    with refuses("conflict", "calibration", "`precisions`"):
        export_bundle(recognizer, tmp_path / "x", card, calibration=data)
    with refuses("not_found", "precision", "int3"):
        export_bundle(recognizer, tmp_path / "x", card, precisions=["int3"])


def test_calibration_needs_two_recordings_and_a_text_for_each() -> None:
    with refuses("invalid", "recordings", 2, 1):
        CalibrationData.split([SPEECH])
    with refuses("invalid", "transcripts", 1, 2):
        CalibrationData.split([SPEECH, SPEECH], ["a"])
