"""The texts of the pages, one file a language, and their small markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from typing import Any, Literal, get_args

from nearfuture.lab.page import ASSETS

Language = Literal["en", "ko"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

Texts = Mapping[str, Any]

_MARKUP = re.compile(
    r"\[\[(?P<term>[a-z-]+)\|(?P<shown>[^\]]+)\]\]"
    r"|`(?P<code>[^`]+)`|\*\*(?P<strong>[^*]+)\*\*|\*(?P<em>[^*]+)\*"
)


@cache
def texts(language: Language) -> Texts:
    """Return all texts of a language."""
    path = ASSETS / "texts" / f"{language}.json"
    content: Texts = json.loads(path.read_text(encoding="utf-8"))
    return content


def preferred(accept_language: str) -> Language:
    """Return the language that a browser asks for, of those that there are.

    >>> preferred("ko-KR,ko;q=0.9,en;q=0.8"), preferred("de-DE,de;q=0.9,ko;q=0.1"), preferred("fr")
    ('ko', 'ko', 'en')
    """
    for entry in accept_language.lower().split(","):
        for language in LANGUAGES:
            if entry.strip().startswith(language):
                return language
    return "en"


def keys(content: object, path: str = "") -> Iterator[str]:
    """Yield the path of each text.

    >>> list(keys({"a": {"b": "x"}, "c": ["y", "z"]}))
    ['a.b', 'c.0', 'c.1']
    """
    if isinstance(content, str):
        yield path
        return
    entries = content.items() if isinstance(content, Mapping) else enumerate(content)  # type: ignore[arg-type]
    for key, value in entries:
        yield from keys(value, f"{path}.{key}" if path else str(key))


def terms(text: str) -> list[str]:
    """Return the entries of the glossary that a text refers to.

    >>> terms("A [[frame|frame]] and its [[lookahead|lookahead]].")
    ['frame', 'lookahead']
    """
    return [match["term"] for match in _MARKUP.finditer(text) if match["term"]]


def as_html(text: str) -> str:
    """Return a text with its markup as HTML: `code`, *emphasis*, **strong**, [[term|shown]].

    >>> as_html("`τ` < *3* [[frame|frames]]")  # doctest: +ELLIPSIS
    '<code>τ</code> &lt; <em>3</em> <button type="button" class="term" ...>frames</button>'
    """
    parts, end = [], 0
    for match in _MARKUP.finditer(text):
        parts.append(escape(text[end : match.start()]))
        end = match.end()
        if match["term"]:
            parts.append(
                f'<button type="button" class="term" data-term="{match["term"]}" '
                f'aria-haspopup="dialog">{escape(match["shown"])}</button>'
            )
        for kind in ("code", "strong", "em"):
            if match[kind]:
                parts.append(f"<{kind}>{escape(match[kind])}</{kind}>")
    parts.append(escape(text[end:]))
    return "".join(parts)
