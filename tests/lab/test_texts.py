"""Both languages say the same things, and every page has what its frame and its figure need."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from nearfuture.lab import PAGES
from nearfuture.lab.frame import render
from nearfuture.lab.page import ASSETS
from nearfuture.lab.pages import FRONT_PAGE
from nearfuture.lab.site import FRONT
from nearfuture.lab.texts import LANGUAGES, keys, terms, texts

PLURAL = re.compile(r"\.(one|other)$")
EVERY_PAGE = (FRONT_PAGE, *PAGES)
_ARGUMENT = re.compile(r"\{(\w+)\}")


def flat(content: object, path: str = "") -> dict[str, str]:
    if isinstance(content, str):
        return {path: content}
    entries = content.items() if isinstance(content, Mapping) else enumerate(content)  # type: ignore[arg-type]
    found: dict[str, str] = {}
    for key, value in entries:
        found |= flat(value, f"{path}.{key}" if path else str(key))
    return found


def missing(first: Mapping[str, Any], second: Mapping[str, Any]) -> set[str]:
    """The keys of the first that the second lacks; plurals are each language's own."""

    def names(content: Mapping[str, Any]) -> set[str]:
        return {PLURAL.sub("", key) for key in keys(content)}

    return names(first) - names(second)


def test_no_language_lacks_a_key() -> None:
    english, korean = texts("en"), texts("ko")
    assert missing(english, korean) == set()
    assert missing(korean, english) == set()


def test_a_missing_key_is_found() -> None:
    assert missing({"a": {"b": "x", "c": ["y"]}}, {"a": {"b": "x"}}) == {"a.c.0"}


def test_texts_fill_in_the_same_values_in_both_languages() -> None:
    def arguments(language: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for key, text in flat(texts(language)).items():  # type: ignore[arg-type]
            found.setdefault(PLURAL.sub("", key), set()).update(_ARGUMENT.findall(text))
        return found

    assert arguments("en") == arguments("ko")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_term_is_in_the_glossary(language: Any) -> None:
    content = texts(language)
    for key, text in flat(content).items():
        assert set(terms(text)) <= set(content["glossary"]), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_plural_has_another_form(language: Any) -> None:
    found = set(flat(texts(language)))
    ones = {key for key in found if key.endswith(".one")}
    assert {PLURAL.sub(".other", key) for key in ones} <= found


def test_every_page_has_texts_and_a_module_and_nothing_else_does() -> None:
    names = {page.name for page in EVERY_PAGE}
    assert set(texts("en")["pages"]) == names
    assert {path.stem for path in (ASSETS / "pages").glob("*.js")} == names
    assert FRONT not in {page.name for page in PAGES}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_a_figure_names_texts_that_exist(page: Any, language: Any) -> None:
    source = (ASSETS / "pages" / f"{page.name}.js").read_text(encoding="utf-8")
    content = texts(language)
    known = {*content["lab"], *content["pages"][page.name].get("figure", {})}
    assert set(re.findall(r"\bt\(\"([^\"]+)\"", source)) <= known


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_a_page_has_nothing_inline_and_nothing_from_elsewhere(page: Any, language: Any) -> None:
    html = render(page, PAGES, language)
    assert "style=" not in html
    assert not re.search(r"\son\w+=", html)
    assert not re.search(r"(src|href)=\"(https?:)?//", html)


def test_korean_quotes_are_korean() -> None:
    for key, text in flat(texts("ko")).items():
        assert '"' not in text, key
        assert " ," not in text, key


SERVED_AS_FIGURES = {"derived", "evidence", "graphs", "language_models", "measured"}
"""Folders that only the server reads; a browser gets what it has computed from them."""


def size(folders: set[str]) -> int:
    """Bytes in these folders of the lab, without the folders that the server alone reads."""
    return sum(
        path.stat().st_size
        for folder in folders
        for path in (ASSETS / folder).rglob("*")
        if path.is_file()
    )


def test_the_whole_lab_is_small() -> None:
    folders = {path.name for path in ASSETS.iterdir() if path.is_dir()}
    assert size(folders - SERVED_AS_FIGURES) < 600_000
    assert size(SERVED_AS_FIGURES) < 900_000
