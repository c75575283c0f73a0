"""The recipe of connected digits from its command line, on tones in the place of voices."""

import json
import shutil
from pathlib import Path

import pytest

from nearfuture.data import read_source
from nearfuture.training import bundle, load_model
from recipes.digits import DigitRecordings, test_strings
from recipes.digits.__main__ import app, write_test_strings
from tests.cli.without_export import export_nothing
from tests.data.fixtures import write_digits


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only corpus at hand is one of tones, and no synthesiser is installed."""
    write_digits(tmp_path / "corpora" / "fsdd")
    monkeypatch.setenv("NEARFUTURE_CORPORA", str(tmp_path / "corpora"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    return tmp_path / "corpora"


def run(*arguments: object) -> int | None:
    with pytest.raises(SystemExit) as ended:
        app([str(argument) for argument in arguments])
    return ended.value.code  # type: ignore[return-value]


@pytest.mark.usefixtures("corpora")
def test_it_trains_both_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bundle, "export_bundle", export_nothing)
    out = tmp_path / "digits"
    assert run("train", "--preset", "tiny", "--steps", 2, "--heads", "0,4", "--out", out) == 0
    printed = capsys.readouterr().out
    for name in ("bidirectional", "streaming"):
        assert f"{name}: step 2 of 2, epoch 1, loss " in printed
        _, about = load_model(out / name / "checkpoint.safetensors")
        assert (about["step"], about["data"]["task"], about["data"]["noise"]) == (
            2,
            "digits",
            "none",
        )


@pytest.mark.usefixtures("corpora")
def test_the_test_strings_are_what_was_written(tmp_path: Path) -> None:
    strings = test_strings(DigitRecordings.load())
    source = read_source(write_test_strings(tmp_path))
    assert [item.text for item in source.cuts] == [string.text for string in strings]
    assert {item.split for item in source.cuts} == {"test"}
    assert strings[-1].speaker == source.cuts[-1].speaker == "theo"  # whom training never hears
    assert (source.cuts[7].load(8000).samples == strings[7].samples).all()


@pytest.mark.usefixtures("corpora")
def test_it_evaluates_a_bundle_with_the_options_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    run("evaluate", "--limit", 2, "--budgets", 400, "--json", path)
    assert "2 recordings" in capsys.readouterr().out
    assert len(json.loads(path.read_text(encoding="utf-8"))["results"]) == 2


def test_a_training_without_the_corpus_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEARFUTURE_CORPORA", str(tmp_path))
    with pytest.raises(ValueError, match="not among the corpora"):
        app(["train", "--out", str(tmp_path / "out")])
