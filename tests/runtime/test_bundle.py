"""Bundles: a folder or a zip, trusted only after every check."""

import gc
import hashlib
import json
import math
import shutil
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from nearfuture.error import NearfutureError
from nearfuture.runtime import Bundle, Manifest, bundled, load
from nearfuture.runtime import bundle as opening
from tests.errors import refuses
from tests.waveform import assert_same_bits, hear, signals, zipped


@pytest.fixture
def folder(bundle_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bundle_folder, tmp_path / "copy"))


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "model.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    change(values)
    path.write_text(json.dumps(values), encoding="utf-8")


def latency(values: dict[str, Any], **item: Any) -> None:
    values["heads"][0]["latency"] = [{"name": "window", **item}]


def refused(source: Path, message: str) -> None:
    with pytest.raises(NearfutureError, match=message) as error:
        Bundle.open(source)
    assert "\n" not in str(error.value)
    assert str(source) in str(error.value)


@pytest.mark.parametrize("inside", ["", "tiny/"])
def test_zip_equals_folder(bundle_folder: Path, tmp_path: Path, inside: str) -> None:
    path = zipped(bundle_folder, tmp_path / "tiny.zip", inside=inside)
    speech = signals()["speech"]
    assert_same_bits(hear(load(path), speech), hear(load(bundle_folder), speech))


def test_what_a_zip_left_behind_goes_with_the_bundle(bundle_folder: Path, tmp_path: Path) -> None:
    bundle = Bundle.open(zipped(bundle_folder, tmp_path / "tiny.zip"))
    folder = bundle.folder
    assert folder.is_dir()
    del bundle
    gc.collect()
    assert not folder.exists()


def test_a_refused_zip_leaves_nothing_behind(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening.tempfile, "tempdir", str(tmp_path / "here"))
    (tmp_path / "here").mkdir()
    (folder / "step.onnx").write_bytes(b"?")
    refused(zipped(folder, tmp_path / "tiny.zip"), "step.onnx is damaged")
    assert list((tmp_path / "here").iterdir()) == []


def test_the_manifest_round_trips(bundle_folder: Path) -> None:
    manifest = Bundle.open(bundle_folder).manifest
    assert Manifest.from_json(json.loads(json.dumps(manifest.to_json()))) == manifest


def test_a_bundled_model_is_opened_by_name(
    bundle_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(bundle_folder, tmp_path / "models" / "words")
    monkeypatch.setattr(opening, "MODELS", tmp_path / "models")
    assert bundled() == ["words"]
    assert Bundle.open("words").folder == tmp_path / "models" / "words"
    with pytest.raises(NearfutureError, match=r"no model 'word'.*\(words\)"):
        Bundle.open("word")


@pytest.mark.parametrize("name", ["", "no/such/model", "nul\0byte"])
def test_no_such_model(name: str) -> None:
    with pytest.raises(NearfutureError, match="no model"):
        Bundle.open(name)


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    refused(tmp_path, "holds no model")


@pytest.mark.parametrize("name", ["step.onnx", "finish.onnx", "weights.bin", "weights.safetensors"])
def test_one_changed_byte_is_noticed(folder: Path, tmp_path: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    refused(folder, f"{name} is damaged")
    refused(zipped(folder, tmp_path / "tiny.zip"), f"{name} is damaged")


@pytest.mark.parametrize("name", ["step.onnx", "weights.bin"])
def test_a_missing_file_is_named(folder: Path, tmp_path: Path, name: str) -> None:
    (folder / name).unlink()
    refused(folder, f"{name} is missing")
    refused(zipped(folder, tmp_path / "tiny.zip"), f"{name} is missing")


@pytest.mark.parametrize("name", ["step.onnx", "finish.onnx"])
def test_a_graph_that_is_not_listed_is_not_used(folder: Path, name: str) -> None:
    edit(folder, lambda values: values["files"].pop(name))
    refused(folder, f"needs {name}, which is not listed")


def test_a_newer_schema_asks_for_an_upgrade(folder: Path) -> None:
    edit(folder, lambda values: values.update(schema=3, everything="else"))
    refused(folder, "schema 3, .* up to 2: upgrade")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values.pop("schema"), "no schema"),
        (lambda values: values.pop("rate"), "lacks 'rate'"),
        (lambda values: values.update(rate=0), "rate is a positive number"),
        (lambda values: values.update(rate="fast"), "damaged"),
        (lambda values: values.update(rate=math.inf), "Infinity is no finite number"),
        (lambda values: values.update(symbols=["ab"]), "one character"),
        (lambda values: values.update(symbols=None), "damaged"),
        (lambda values: values.update(kind="psychic"), "psychic"),
        (lambda values: values.update(heads=[]), "has heads"),
        (lambda values: values.update(heads=[{"frames": 0}]), "lacks 'latency'"),
        (lambda values: latency(values, ms="soon"), "damaged"),
        (lambda values: latency(values, ms=None), "damaged"),
        (lambda values: latency(values, ms=10**400), "damaged"),
        (lambda values: latency(values, ms=-1.0), "from 0, of which none .* not -1 and 0"),
        (lambda values: latency(values, ms=1.0, early_ms=2.0), "not 1 and 2"),
        (lambda values: latency(values, ms=1.0, more=2.0), "damaged"),
        (lambda values: values.update(training={"cer": math.nan}), "NaN is no finite number"),
        (lambda values: values.update(first_quantum_samples=321), "first_quantum_samples"),
        (lambda values: values.update(files=["step.onnx"]), "damaged"),
        (lambda values: values["files"]["step.onnx"].update(bytes=-2), "size from 0, not -2"),
        (lambda values: values["files"].update({"../a": {}}), "no name for a file"),
        (lambda values: values["files"].update({"/etc/passwd": {}}), "no name for a file"),
    ],
)
def test_a_manifest_that_is_wrong(
    folder: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    edit(folder, change)
    refused(folder, message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no schema"),
        (b'{"schema": 1e999}', "not JSON: 1e999 is no finite number"),
    ],
)
def test_a_manifest_that_is_no_manifest(folder: Path, content: bytes, message: str) -> None:
    (folder / "model.json").write_bytes(content)
    refused(folder, message)


def test_a_manifest_too_large(folder: Path) -> None:
    (folder / "model.json").write_bytes(b" " * (opening.MAX_MANIFEST_BYTES + 1))
    refused(folder, "larger than")


def resealed(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    edit(folder, lambda values: values["files"].update({name: entry}))


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "sub/../../x", "other.bin"])
def test_weights_outside_the_folder_are_refused(folder: Path, location: str) -> None:
    (folder.parent / "secret.bin").write_bytes((folder / "weights.bin").read_bytes())
    graph = onnx.load(folder / "step.onnx", load_external_data=False)
    moved = next(t for t in graph.graph.initializer if t.external_data)
    next(e for e in moved.external_data if e.key == "location").value = location
    (folder / "step.onnx").write_bytes(graph.SerializeToString())
    resealed(folder, "step.onnx")
    refused(folder, f"weights from '{location}'.*do not trust")


def test_a_link_out_of_the_folder_is_refused(folder: Path) -> None:
    (folder / "weights.bin").rename(folder.parent / "weights.bin")
    (folder / "weights.bin").symlink_to(folder.parent / "weights.bin")
    refused(folder, r"weights\.bin is a link out of the folder")


@pytest.mark.parametrize(
    "member", ["../evil", "a/../../evil", "/evil", "C:/evil", "..\\evil", "C:evil", "\\evil"]
)
def test_zip_members_that_leave_the_folder_are_refused(
    folder: Path, tmp_path: Path, member: str
) -> None:
    path = zipped(folder, tmp_path / "tiny.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(zipfile.ZipInfo(member), b"evil")
    refused(path, "leaves the folder")
    assert not list(tmp_path.rglob("evil"))


def test_unlisted_members_are_not_unpacked(folder: Path, tmp_path: Path) -> None:
    path = zipped(folder, tmp_path / "tiny.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("surprise.py", b"print()")
    assert not (Bundle.open(path).folder / "surprise.py").exists()


def test_a_member_larger_than_listed_is_not_unpacked_whole(folder: Path, tmp_path: Path) -> None:
    (folder / "weights.bin").write_bytes(bytes(50_000_000))
    refused(zipped(folder, tmp_path / "tiny.zip"), r"weights\.bin is damaged")


def test_a_zip_that_expands_to_much_more_is_not_unpacked(folder: Path, tmp_path: Path) -> None:
    """Whoever lists the size himself can list any size."""
    (folder / "weights.bin").write_bytes(bytes(200_000_000))
    resealed(folder, "weights.bin")
    path = zipped(folder, tmp_path / "tiny.zip")
    (folder / "weights.bin").unlink()
    tracemalloc.start()
    try:
        with refuses("too_large", None, "100 times", path.stat().st_size):
            Bundle.open(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


def test_a_zip_is_unpacked_block_by_block(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "weights.safetensors").write_bytes(bytes(100_000_000))
    resealed(folder, "weights.safetensors")
    path = zipped(folder, tmp_path / "tiny.zip")
    monkeypatch.setattr(opening, "_MAX_EXPANSION", 10_000)
    tracemalloc.start()
    try:
        Bundle.open(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


def test_a_zip_with_another_compression_is_refused(folder: Path, tmp_path: Path) -> None:
    """A member's header may ask lzma for gigabytes."""
    path = zipped(folder, tmp_path / "tiny.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("surprise.bin", b"?", compress_type=zipfile.ZIP_LZMA)
    with refuses("unsupported", None, "surprise.bin", "deflate"):
        Bundle.open(path)


def test_two_models_in_one_zip(folder: Path, tmp_path: Path) -> None:
    path = zipped(folder, tmp_path / "tiny.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("other/model.json", b"{}")
    refused(path, r"one model\.json, this file has 2")


@pytest.mark.parametrize("share", [0, 0.5, 0.99])
def test_a_zip_that_was_cut_off(folder: Path, tmp_path: Path, share: float) -> None:
    path = zipped(folder, tmp_path / "tiny.zip")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    refused(path, "cannot be read as a model")


def test_a_zip_with_rotten_members(folder: Path, tmp_path: Path) -> None:
    path = zipped(folder, tmp_path / "tiny.zip")
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 40] = bytes(40)
    path.write_bytes(content)
    refused(path, "cannot be read as a model|is damaged")
