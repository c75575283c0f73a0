"""The README's Python runs as it stands, and prints what its comments say."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def expected(block: str) -> list[str]:
    """The comments behind `print`, or on the line below; what follows a result is explanation."""
    comments = re.findall(r"^ *print\(.*?\) *(?:\n#)? *# (.*)$", block, re.MULTILINE)
    return [comment.strip() for comment in comments]


@pytest.mark.parametrize(
    "section", ["Transcribe", "The contract in one picture", "Audit any model"]
)
def test_a_section_prints_what_it_says(section: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(README.parent)
    text = README.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    namespace: dict[str, object] = {}
    checked = 0
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, section, "exec"), namespace)
        lines = printed.getvalue().splitlines()
        for comment in expected(block):
            assert any(line and comment.startswith(line) for line in lines), (comment, lines)
            checked += 1
    assert checked
