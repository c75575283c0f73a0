"""The page on phrases says what its Python prints, and its file of phrases is one."""

import re
from pathlib import Path

import pytest

from nearfuture.phrases import Phrases
from tests.documents import run_python

PAGE = Path(__file__).parents[2] / "docs" / "phrases.md"


def test_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PAGE.parents[1])
    text = PAGE.read_text(encoding="utf-8")
    assert len(run_python(text, PAGE.name)) == text.count("print(")


def test_its_file_of_phrases_can_be_read(tmp_path: Path) -> None:
    (source,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "dial.yaml"
    path.write_text(source, encoding="utf-8")
    assert Phrases.load(path).automaton.count == 1103
