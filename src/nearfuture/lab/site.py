"""Where a page finds the others, its files and its answers: here, from the running lab."""

from __future__ import annotations

from typing import Any

from nearfuture.lab.endpoint import parameters
from nearfuture.lab.page import Page
from nearfuture.lab.texts import Language, Texts

FRONT = "front"
"""The name of the page that the lab opens with."""


class Site:
    """The running lab: one address a page, in the language that the query names."""

    assets = "assets"
    """Where style sheets and modules are, from a page."""

    head = ""
    """What a page says to the browser besides."""

    def page(self, name: str, language: Language) -> str:
        """Return the address of a page, from any other."""
        return f"{'./' if name == FRONT else name}?lang={language}"

    def translation(self, page: Page, language: Language) -> str:
        """Return the address of the same page in another language."""
        return f"?lang={language}"

    def source(self, file: str) -> str:
        """Return the address of the code behind a figure."""
        return f"source/{file}"

    def note(self, page: Page, content: Texts) -> str:
        """Say where the answers of a page come from, as HTML below its figure."""
        return ""

    def footer(self, page: Page, content: Texts) -> str:
        """Return the text that says when the numbers of a page were computed."""
        own: str = content["pages"][page.name].get("footer", content["lab"]["footer"])
        return own

    def data(self, page: Page) -> dict[str, Any]:
        """Return what the modules of a page are told about its endpoints."""
        return {"parameters": {name: parameters(each) for name, each in page.endpoints.items()}}
