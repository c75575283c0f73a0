"""`nearfuture quantize`: twins added to a bundle, and what it refuses."""

import shutil
from pathlib import Path

import pytest

from nearfuture.cli import main
from nearfuture.runtime import Bundle, load
from nearfuture.runtime.bundle import MODELS
from tests.waveform import signals, zipped

SAMPLES = MODELS.parent / "samples"


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = 0
    try:
        main(["quantize", *map(str, arguments)])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_a_copy_of_a_bundled_model_gets_twins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "digits"
    code, out, _ = run(capsys, "digits", "--precision", "int8,int4", "--to", to)
    assert code == 0
    for word in ("float32", "int8", "int4", "3.2 MB", "0.7 MB", "0.5 MB", "synthetic voices"):
        assert word in " ".join(out.split())
    assert list(Bundle.open(to).manifest.precisions) == ["int8", "int4"]
    assert Bundle.open("digits").manifest.precisions == {}
    speech = signals()["speech"]
    assert load(to, precision="int8").transcribe(speech).audio_ms == 2000


def test_recordings_with_texts_give_error_rates_in_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(MODELS / "digits", tmp_path / "digits"))
    code, out, _ = run(capsys, folder, "--data", SAMPLES, "--limit", "6")
    assert code == 0
    error = Bundle.open(folder).manifest.precisions["int8"]
    assert error.audio == "calibrated on 3 recordings, measured on 3 others"
    assert error.cer is not None
    assert f"{100 * error.cer:.2f} %" in out
    assert error.mean < 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("digits",), "--to"),
        (("digits", "--precision", "int2", "--to", "x"), "no precision 'int2'"),
        (("digits", "--to", "."), "exists already"),
        (("digits", "--limit", "5", "--to", "x"), "--limit"),
        (("digits-bidirectional", "--to", "x"), "bidirectional"),
    ],
)
def test_what_is_refused(
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_a_zip_file_needs_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = zipped(MODELS / "digits", tmp_path / "digits.zip")
    code, _, err = run(capsys, path)
    assert code == 2
    assert "--to" in err
    assert run(capsys, path, "--to", tmp_path / "folder")[0] == 0
    assert "int8" in Bundle.open(tmp_path / "folder").manifest.precisions
