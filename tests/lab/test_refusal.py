"""Every error that a page can meet has a sentence in both languages, with the values it names."""

import ast
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from starlette.testclient import TestClient

from nearfuture.error import Code
from nearfuture.lab import create_app
from nearfuture.lab.page import ASSETS
from nearfuture.lab.refusal import Refusal, fields
from nearfuture.lab.texts import LANGUAGES, texts
from nearfuture.serving.errors import CODES, RequestError

LAB = Path(__file__).parents[2] / "src" / "nearfuture" / "lab"
_OWN = {"key", "message", "code", "parameter"}


def refusals() -> dict[str, set[str]]:
    """The values of each key that the lab raises, read from its source."""
    found: dict[str, set[str]] = {}
    for file in LAB.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Refusal":
                (key, *_) = node.args
                assert isinstance(key, ast.Constant), f"{file}: a key is written out"
                names = {word.arg or "" for word in node.keywords}
                found.setdefault(str(key.value), set()).update(names - _OWN)
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_refusal_has_a_text_that_fills_in_values_it_has(language: Any) -> None:
    common, raised = texts(language)["lab"], refusals()
    assert {"out-of-range", "no-choice", "letters"} <= set(raised)
    for key, values in raised.items():
        wanted = set(re.findall(r"\{(\w+)\}", common[f"error-{key}"]))
        assert wanted <= values | {"message"}, key


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_code_has_a_text(language: Any) -> None:
    common = texts(language)["lab"]
    for code in {*get_args(Code), *CODES}:
        assert common[f"error-code-{code}"], code


def test_every_error_that_the_browser_makes_has_a_text() -> None:
    for file in ASSETS.rglob("*.js"):
        for key in re.findall(r"\{ key: \"([a-z_-]+)\"", file.read_text(encoding="utf-8")):
            for language in LANGUAGES:
                assert f"error-{key}" in texts(language)["lab"], (file.name, key)


def test_foreseen_refusals_are_wholly_korean() -> None:
    """What a page fills in by itself names no sentence of the library's."""
    for key in refusals():
        assert "{message}" not in texts("ko")["lab"][f"error-{key}"], key


def test_an_error_comes_with_its_key_and_its_values() -> None:
    with TestClient(create_app(), base_url="http://127.0.0.1") as client:
        error = client.get("/api/who-looks-at-whom/matrix?tau=7").json()["error"]
    assert error["key"] == "out-of-range"
    assert error["values"] == {"name": "tau", "lowest": 0, "highest": 6, "value": "7"}
    assert error["message"].endswith("not 7")


def test_an_error_of_the_server_has_the_key_of_its_code() -> None:
    assert fields(RequestError("draining", "no"))["key"] == "code-draining"
    assert fields(Refusal("letters", "no", value="x"))["values"] == {"value": "x"}
