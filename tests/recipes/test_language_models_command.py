"""`python -m recipes.language_models`, on a small text: what it writes, and that it goes on."""

import csv
import json
from pathlib import Path

import pytest

from recipes.language_models import TITLES, Text, __main__, experiment
from recipes.language_models.__main__ import app

PLACES = "".join(
    f"<!-- {name} -->\n<!-- end of {name} -->\n" for name in ("ko", "ko samples", "provenance")
)


def test_one_command_writes_a_table_curves_samples_and_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Text.load("ko")
    small = Text.of(whole.train[:900] + "\n" + whole.dev[:600], "ko")
    small = Text(
        language="ko",
        symbols=small.symbols,
        train=small.train,
        dev=whole.dev[:200],
        judge=whole.dev[200:600],
    )
    monkeypatch.setattr(Text, "load", lambda language: small)
    monkeypatch.setattr(experiment, "_SAMPLES", 2)
    monkeypatch.setattr(experiment, "_SAMPLE_SYMBOLS", 8)
    page = tmp_path / "page.md"
    page.write_text(PLACES, encoding="utf-8")
    command = ["--language", "ko", "--steps", "1", "--out", str(tmp_path), "--page", str(page)]
    with pytest.raises(SystemExit) as ended:
        app(command)
    assert ended.value.code == 0

    written = (tmp_path / "ko" / "curves.csv").read_text(encoding="utf-8")
    curves = list(csv.DictReader(written.splitlines()))
    assert [row["model"] for row in curves] == list(TITLES)
    results = json.loads((tmp_path / "ko" / "results.json").read_text(encoding="utf-8"))
    offsets = {kind: found["verdict"]["offset"] for kind, found in results["models"].items()}
    assert offsets == {"one_way": None, "both_ways": 1, "masked": None, "attention": None}
    filled = page.read_text(encoding="utf-8")
    for said in ("at t + 1", "real text", "ln V, V = ", "blanks", "commit"):
        assert said in filled
    assert page.with_suffix(".svg").read_text(encoding="utf-8").count("<svg") == 1
    assert "Korean: what they write" in capsys.readouterr().out


def test_a_page_is_not_filled_with_what_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(__main__, "run", lambda *args, **options: [])
    monkeypatch.setattr(__main__, "plot", lambda *args: None)
    page = tmp_path / "page.md"
    page.write_text(PLACES, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        app(["--language", "ko", "--out", str(tmp_path), "--page", str(page)])
    assert ended.value.code == 0
    assert page.read_text(encoding="utf-8") == PLACES
    assert "stays as it is" in " ".join(capsys.readouterr().out.split())
