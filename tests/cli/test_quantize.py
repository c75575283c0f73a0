"""`nearfuture quantize`: graphs in low precision for a bundle, and what it refuses."""

import shutil
from pathlib import Path

import pytest

from nearfuture.cli import main
from nearfuture.export import CalibrationData
from nearfuture.export.quantization import activations
from nearfuture.export.quantization import bundle as quantization
from nearfuture.runtime import Bundle, load
from nearfuture.runtime.bundle import MODELS
from nearfuture.runtime.precision import Precision
from nearfuture.runtime.processor import UnsupportedPrecision
from tests.processor import OFFERED, offers
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


def test_a_copy_of_a_bundled_model_is_quantized(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "digits"
    code, out, err = run(capsys, "digits", "--precision", "auto", "--to", to)
    assert code == 0
    for word in ("float32", "int8", "3.2 MB", "0.7 MB", "synthetic voices"):
        assert word in " ".join(out.split())
    assert list(Bundle.open(to).manifest.precisions) == OFFERED
    assert ("int4" in out) == ("0.5 MB" in out) == ("int4" in OFFERED) == ("int4" not in err)
    assert Bundle.open("digits").manifest.precisions == {}
    speech = signals()["speech"]
    for precision in OFFERED:
        assert load(to, precision=precision).transcribe(speech).audio_ms == 2000


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time is spent on the error beside float32."""
    error = Precision(worst=0, mean=0, changed_percent=0, frames=0, audio="nothing")
    monkeypatch.setattr(quantization, "measure_error", lambda *_: error)
    monkeypatch.setattr(activations, "largest_values", lambda *_: {})


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize(
    ("asked", "made", "code"),
    [("int8,int4", ["int8"], 1), ("int4,int8", ["int8"], 1), ("auto", ["int8"], 0)],
)
def test_of_several_precisions_those_are_made_that_this_processor_offers(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    asked: str,
    made: list[str],
    code: int,
) -> None:
    offers(monkeypatch, "int8")
    found = run(capsys, "digits", "--precision", asked, "--to", tmp_path / "digits")
    assert found[0] == code
    assert found[2].startswith("nearfuture: skipped: int4 is not offered on this processor")
    assert list(Bundle.open(tmp_path / "digits").manifest.precisions) == made
    assert not list((tmp_path / "digits").glob("*int4*"))


@pytest.mark.usefixtures("unmeasured")
def test_all_are_made_where_all_are_offered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    offers(monkeypatch, "int8", "int4")
    to = tmp_path / "digits"
    assert run(capsys, "digits", "--precision", "int4,int8", "--to", to)[::2] == (0, "")
    assert list(Bundle.open(to).manifest.precisions) == ["int4", "int8"]


@pytest.mark.usefixtures("unmeasured")
def test_a_precision_that_is_refused_late_takes_no_other_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    offers(monkeypatch, "int8", "int4")
    measured = quantization.measure_error

    def measure(bundle: Bundle, precision: str, data: CalibrationData) -> Precision:
        if precision == "int4":
            raise UnsupportedPrecision("in int4 rows depend on each other")
        return measured(bundle, precision, data)

    monkeypatch.setattr(quantization, "measure_error", measure)
    to = tmp_path / "digits"
    code, _, err = run(capsys, "digits", "--precision", "int4,int8", "--to", to)
    assert (code, err) == (1, "nearfuture: skipped: in int4 rows depend on each other\n")
    assert list(Bundle.open(to).manifest.precisions) == ["int8"]
    code, _, err = run(capsys, "digits", "--precision", "int4", "--to", tmp_path / "none")
    assert (code, "depend on each other" in err) == (2, True)
    assert not (tmp_path / "none").exists()


def test_a_precision_that_is_not_offered_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    offers(monkeypatch, "int8")
    code, _, err = run(capsys, "digits", "--precision", "int4", "--to", tmp_path / "digits")
    assert code == 2
    assert "int4 is not offered on this processor" in err
    assert "choose int8 or float32" in err
    assert list(tmp_path.iterdir()) == []


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
        (("digits", "--precision", "int2", "--to", "x"), "--precision is int8 or int4, not 'int2'"),
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
