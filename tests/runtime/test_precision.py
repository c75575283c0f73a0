"""Bundles with twins in low precision: read, chosen, and checked like everything else."""

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from nearfuture.cli import main
from nearfuture.error import NearfutureError
from nearfuture.runtime import Bundle, Engine, load
from nearfuture.runtime.bundle import MODELS
from tests.processor import offers
from tests.runtime.test_bundle import edit, refused, resealed
from tests.waveform import assert_same_bits, hear, signals, zipped

NAMES = ["step.int8.onnx", "finish.int8.onnx", "weights.int8.bin"]


@pytest.fixture
def digits(int8_digits: Path) -> Path:
    return int8_digits


@pytest.fixture
def folder(digits: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(digits, tmp_path / "copy"))


def test_a_twin_runs_where_it_is_asked_for(digits: Path, tmp_path: Path) -> None:
    speech = signals()["speech"]
    plain, twin = hear(load(digits), speech), hear(load(digits, precision="int8"), speech)
    assert_same_bits(plain, hear(load("digits"), speech))
    assert all((twin.log_probs[tau] != plain.log_probs[tau]).any() for tau in plain.log_probs)
    path = zipped(digits, tmp_path / "digits.zip")
    assert_same_bits(hear(load(path, precision="int8"), speech), twin)


def test_a_precision_that_is_not_there_is_named(
    digits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offers(monkeypatch, "int8", "int4")
    with pytest.raises(NearfutureError, match=r"in 'int4', only in float32, int8: .* quantize"):
        Engine(Bundle.open(digits), precision="int4")
    with pytest.raises(NearfutureError, match="in 'int8', only in float32: make a copy"):
        load("digits", precision="int8")
    with pytest.raises(NearfutureError, match="only streaming models have others"):
        load("digits-bidirectional", precision="int8")


def test_the_way_to_a_precision_that_is_not_there_can_be_gone(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(MODELS / "digits", tmp_path / "a model"))
    archive = zipped(folder, tmp_path / "model.zip")
    for source, wanted in (
        ("digits", ["digits", "--precision", "int8", "--to", "FOLDER"]),
        (archive, [str(archive), "--precision", "int8", "--to", "FOLDER"]),
        (folder, [str(folder), "--precision", "int8"]),
    ):
        with pytest.raises(NearfutureError) as told:
            load(source, precision="int8")
        words = shlex.split(str(told.value).split("nearfuture quantize ")[1])
        assert words == wanted
    with pytest.raises(SystemExit, match="0"):
        main(["quantize", *words])
    load(folder, precision="int8")


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_twin_is_noticed(folder: Path, tmp_path: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    refused(folder, f"{name} is damaged")
    refused(zipped(folder, tmp_path / "digits.zip"), f"{name} is damaged")


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_twin_that_is_not_listed_is_not_used(folder: Path, name: str) -> None:
    edit(folder, lambda values: values["files"].pop(name))
    refused(folder, f"needs {name}, which is not listed")


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "other.bin"])
def test_a_twin_with_weights_outside_the_folder_is_refused(folder: Path, location: str) -> None:
    graph = onnx.load(folder / "step.int8.onnx", load_external_data=False)
    moved = next(t for t in graph.graph.initializer if t.external_data)
    next(e for e in moved.external_data if e.key == "location").value = location
    (folder / "step.int8.onnx").write_bytes(graph.SerializeToString())
    resealed(folder, "step.int8.onnx")
    refused(folder, f"weights from '{location}'.*do not trust")


def test_the_manifest_with_twins_round_trips(digits: Path) -> None:
    manifest = Bundle.open(digits).manifest
    values = json.loads(json.dumps(manifest.to_json()))
    assert values["schema"] == 2
    assert type(manifest).from_json(values) == manifest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda said: said["int8"].pop("worst"), "lacks 'worst'"),
        (lambda said: said["int8"].update(mean="small"), "damaged"),
        (lambda said: said["int8"].update(mean=-1), "finite number from 0"),
        (lambda said: said["int8"].update(cer=float("inf")), "Infinity is no finite number"),
        (lambda said: said.update({"../int8": said.pop("int8")}), "no name for a low precision"),
        (lambda said: said.update({"float32": said.pop("int8")}), "no name for a low precision"),
        (lambda said: said.update(int4=said["int8"]), r"needs step\.int4\.onnx"),
        (lambda said: said.update(int8=None), "damaged"),
    ],
)
def test_an_error_that_is_wrong(
    folder: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    edit(folder, lambda values: change(values["precisions"]))
    refused(folder, message)
