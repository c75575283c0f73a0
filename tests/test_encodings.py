"""Text is read and written in a named encoding: the locale's is another on another machine."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WHERE = {"read_text": 0, "write_text": 1, "open": 3, "fdopen": 3}
"""What opens text, and which positional argument is the encoding."""


def unnamed(source: str) -> Iterator[str]:
    """Calls that leave the encoding to the locale."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = getattr(function, "attr", getattr(function, "id", ""))
        method = isinstance(function, ast.Attribute)
        if name not in WHERE or (not method and name != "open"):
            continue
        if method and ast.unparse(function.value) == "self":  # a method of the class's own
            continue
        if len(node.args) > WHERE[name] or any(k.arg in ("encoding", None) for k in node.keywords):
            continue
        if "text" in name or _as_text(node, method=method and name == "open"):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def _as_text(node: ast.Call, *, method: bool) -> bool:
    """Whether a file is opened as text; `x.open(…)` of anything but a path has no such mode."""
    keywords = [k.value for k in node.keywords if k.arg == "mode"]
    mode = next(iter((*node.args[0 if method else 1 :][:1], *keywords)), None)
    if mode is None:
        return not method or not (node.args or node.keywords)
    literal = isinstance(mode, ast.Constant) and isinstance(mode.value, str)
    return literal and len(mode.value) < 4 and set(mode.value) <= set("rwxat+")


@pytest.mark.parametrize("folder", ["src", "benchmarks", "tools"])
def test_every_text_names_its_encoding(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}, {call}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for call in unnamed(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "call",
    ["path.read_text()", "path.write_text('a')", "open(path)", "open(path, 'w')", "path.open('a')"],
)
def test_the_locale_is_found(call: str) -> None:
    assert list(unnamed(call)) == [f"line 1: {call}"]


@pytest.mark.parametrize(
    "call",
    [
        "path.read_text('utf-8')",
        "path.write_text('a', encoding='utf-8')",
        "open(path, 'rb')",
        "path.open('w', encoding='utf-8')",
        "Bundle.open(path)",
        "tarfile.open(fileobj=raw, mode='r:*')",
        "listener.open(dispatcher)",
        "self.open()",
    ],
)
def test_what_names_it_or_is_no_text_passes(call: str) -> None:
    assert list(unnamed(call)) == []
