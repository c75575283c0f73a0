"""The README's Python runs as it stands, and prints what its comments say."""

from pathlib import Path

import pytest

from tests.documents import run_python

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize(
    "section", ["Transcribe", "The contract in one picture", "Audit any model"]
)
def test_a_section_prints_what_it_says(section: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(README.parent)
    text = README.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    assert run_python(text, section)
