"""The addresses of a copy, and what its pages say about where their answers come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearfuture import __version__
from nearfuture.lab.copy.grid import Grid
from nearfuture.lab.page import Page
from nearfuture.lab.site import FRONT, Site
from nearfuture.lab.texts import Language, Texts, as_html

POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self' blob:; media-src 'self' blob:; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
"""What a browser may load: as from the running lab, and WebAssembly. File servers do not say it."""

RUNTIME = "onnxruntime"
"""The folder of ONNX Runtime, its graphs and the recogniser, below that of the assets."""


class CopySite(Site):
    """Files: a folder for each language, and a file for each page and answer.

    Args:
        grids: what is recorded, by page and endpoint.
        suffixes: of the recorded files, by page and endpoint.
        live: whether ONNX Runtime for the browser is there.
    """

    assets = "../assets"
    head = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'

    def __init__(
        self,
        grids: Mapping[str, Mapping[str, Grid]],
        suffixes: Mapping[str, Mapping[str, str]],
        *,
        live: bool,
    ) -> None:
        self._grids, self._suffixes, self._live = grids, suffixes, live

    def file(self, name: str) -> str:
        """Return the file of a page, in the folder of its language."""
        return "index.html" if name == FRONT else f"{name}.html"

    def page(self, name: str, language: Language) -> str:
        """Return the address of a page, from any other of its language."""
        return "./" if name == FRONT else self.file(name)

    def translation(self, page: Page, language: Language) -> str:
        """Return the address of the same page in another language."""
        return f"../{language}/{self.page(page.name, language).removeprefix('./')}"

    def source(self, file: str) -> str:
        """Return the address of the code behind a figure, as a text that every server shows."""
        return f"../source/{file}.txt"

    def note(self, page: Page, content: Texts) -> str:
        """Say which answers are recorded, and which are computed in the browser."""
        common = content["lab"]
        said, live = [], self._computed(page)
        if live:
            key = "copy-live" if set(live) == set(page.endpoints) else "copy-partly-live"
            said.append(common[key])
        if set(page.endpoints) - set(live):
            said.append(common["copy-recorded"].replace("{version}", __version__))
        recorded = {name: each for name, each in self._grids[page.name].items() if name not in live}
        missing = set(page.endpoints) - set(recorded) - set(live)
        if missing or any(not grid.whole for grid in recorded.values()):
            said.append(common["copy-not-all"])
        said += [own] if (own := content["pages"][page.name].get("copy")) else []
        return f'<p class="copied">{as_html(" ".join(said))}</p>\n'

    def footer(self, page: Page, content: Texts) -> str:
        """Return the text that says when the numbers of a page were computed."""
        said: str = content["lab"]["copy-footer"]
        return said

    def data(self, page: Page) -> dict[str, Any]:
        """Return what the modules of a page are told about its endpoints, and what is recorded."""
        grids = self._grids[page.name]
        every = super().data(page)["parameters"]
        recorded = {
            name: {
                "axes": grid.axes,
                "start": grid.start,
                "groups": grid.groups,
                "suffix": self._suffixes[page.name][name],
            }
            for name, grid in grids.items()
        }
        controls = {
            name: grids[name].controls(function) if name in grids else every[name]
            for name, function in page.endpoints.items()
        }
        return {"parameters": controls, "recorded": recorded, "live": self._computed(page)}

    def _computed(self, page: Page) -> list[str]:
        return list(page.in_browser) if self._live else []
