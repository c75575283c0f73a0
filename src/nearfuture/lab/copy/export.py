"""Write the lab as files: pages in each language, what they load, and recorded answers.

The pages of a language are in a folder of its name; everything is addressed relative to them, so
that a copy works at any path of any file server.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from nearfuture import __version__
from nearfuture.error import NearfutureError
from nearfuture.lab.copy.grid import grid_of
from nearfuture.lab.copy.site import POLICY, RUNTIME, CopySite
from nearfuture.lab.frame import render
from nearfuture.lab.page import ASSETS, PACKAGE, Media, Page, as_json
from nearfuture.lab.pages import FRONT_PAGE, PAGES
from nearfuture.lab.texts import LANGUAGES, Language, texts
from nearfuture.serving.errors import RequestError

MARK = "nearfuture-lab.json"
"""The file by which a folder is known as a copy, which may be replaced."""

_OWN = {MARK, "index.html", "assets", "recorded", "source", *LANGUAGES}
"""What stands in a copy."""

_LOADED = ("css", "js", "pages", "icon.svg")
"""What pages load; the rest is read by the library."""

MODEL = "digits"
_RECOGNIZER = ("model.json", "step.onnx", "finish.onnx", "weights.bin")


def export(
    folder: Path,
    *,
    language: Language | None = None,
    pages: Sequence[Page] = PAGES,
    runtime: Mapping[str, bytes] | None = None,
    on_answer: Callable[[int, int], None] | None = None,
) -> None:
    """Write a copy of the lab; the folder appears when all of it is written.

    Args:
        folder: does not exist, is empty, or is an older copy, which is replaced.
        language: in which the copy opens; by default that of the visitor's browser.
        pages: the story, in order.
        runtime: the files of ONNX Runtime for the browser, see `onnxruntime_web`; without them
            every answer is a recorded one.
        on_answer: called with the answers that are recorded, and all of them.

    Raises:
        NearfutureError: for a folder that holds something else.
    """
    folder = folder.resolve()  # what a link leads to is replaced, and not the link
    check(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _write(partial, language, pages, runtime or {}, on_answer)
        partial.chmod(0o755)
        _replace(folder, partial)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check(folder: Path) -> None:
    """Refuse a folder that a copy would not replace, see `export`."""
    folder = folder.resolve()
    if folder.is_dir():
        found = {each.name for each in folder.iterdir()}
        others = sorted(found - _OWN)
        if not found or (MARK in found and not others):
            return
        if MARK in found:  # a repository, or a page of one's own, would be gone with it
            raise NearfutureError(
                f"{folder} holds {others[0]} beside a copy of the lab, which would be lost: name "
                f"a folder that does not exist yet",
                code="conflict",
                parameter="export",
            )
    if folder.exists():
        raise NearfutureError(
            f"{folder} is {'not empty and no copy of the lab' if folder.is_dir() else 'a file'}: "
            f"name a folder that does not exist yet",
            code="conflict",
            parameter="export",
        )


def _replace(folder: Path, partial: Path) -> None:
    if not folder.exists():
        partial.rename(folder)
        return
    old = partial.with_name(f"{partial.name}-old")
    try:
        folder.rename(old)
        partial.rename(folder)
    except BaseException:  # also Ctrl-C: there is always a copy
        if old.exists() and not folder.exists():
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _write(
    folder: Path,
    language: Language | None,
    pages: Sequence[Page],
    runtime: Mapping[str, bytes],
    on_answer: Callable[[int, int], None] | None,
) -> None:
    every = (FRONT_PAGE, *pages)
    grids = {
        page.name: {
            name: grid_of(function)
            for name, function in page.endpoints.items()
            if name not in page.unrecorded
        }
        for page in every
    }
    kinds: dict[str, dict[str, str]] = {page.name: {} for page in every}
    jobs = [
        (page, endpoint, grid, place)
        for page in every
        for endpoint, grid in grids[page.name].items()
        for place in grid.places()
    ]
    for done, (page, endpoint, grid, place) in enumerate(jobs, 1):
        suffix, content = _answer(page.endpoints[endpoint], grid.values(place))
        # An error is an answer as any other; it does not say what the others are.
        known = kinds[page.name].setdefault(endpoint, suffix)
        name = "-".join(map(str, place)) or "0"
        file = folder / "recorded" / page.name / endpoint / f"{name}.{known}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        if on_answer is not None:
            on_answer(done, len(jobs))
    for each in _LOADED:
        source = ASSETS / each
        into = folder / "assets" / each
        (shutil.copytree if source.is_dir() else _copy)(source, into)
    for file_name in {each for page in pages for each in page.behind}:
        _copy(PACKAGE / file_name, folder / "source" / f"{file_name}.txt")
    if runtime:
        _write_runtime(folder / "assets", runtime)
    site = CopySite(grids, kinds, live=bool(runtime))
    for each_language in LANGUAGES:
        for page in every:
            file = folder / each_language / site.file(page.name)
            file.parent.mkdir(exist_ok=True)
            file.write_text(render(page, pages, each_language, site), encoding="utf-8")
    (folder / "index.html").write_text(_entrance(language), encoding="utf-8")
    about = {"version": __version__, "made": datetime.now(UTC).isoformat(timespec="seconds")}
    (folder / MARK).write_text(json.dumps(about) + "\n", encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _write_runtime(folder: Path, runtime: Mapping[str, bytes]) -> None:
    """Write ONNX Runtime, and the graphs and the recogniser that it runs."""
    into = folder / RUNTIME
    into.mkdir(parents=True)
    for name, content in runtime.items():
        (into / name).write_bytes(content)
    shutil.copytree(ASSETS / "in-browser", into / "graphs")
    for name in _RECOGNIZER:
        _copy(PACKAGE / "assets" / "models" / MODEL / name, into / "models" / MODEL / name)
    # Captions come from the recogniser in the browser, and from no server.
    _copy(ASSETS / "js" / "in-browser" / "live.js", folder / "js" / "live.js")


def _answer(function: Callable[..., object], values: dict[str, Any]) -> tuple[str, bytes]:
    """What an endpoint answers to these values, and the suffix of a file that holds it."""
    try:
        result = function(**values)
        if isinstance(result, Media):
            return result.media_type.rpartition("/")[2], result.content
        if isinstance(result, Generator):
            return "jsonl", "".join(_lines(result)).encode()
        return "json", _json(result).encode()
    except NearfutureError as error:
        return "json", _json({"error": RequestError.of(error).fields()}).encode()


def _lines(results: Iterator[Any]) -> Iterator[str]:
    for result in results:
        yield _json(result) + "\n"


def _json(value: Any) -> str:
    return json.dumps(as_json(value), ensure_ascii=False, separators=(",", ":"))


def _entrance(language: Language | None) -> str:
    """The page that leads to a language: the one that was chosen, or the browser's."""
    links = "".join(
        f'<li><a href="{each}/" hreflang="{each}" lang="{each}">'
        f"{escape(texts(each)['lab']['language'])}</a></li>"
        for each in LANGUAGES
    )
    opens = f' data-opens="{language}"' if language else ""
    return f"""<!doctype html>
<html lang="{language or "en"}"{opens}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(texts("en")["lab"]["brand"])}</title>
<link rel="icon" href="assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="assets/css/lab.css">
<script src="assets/js/entrance.js"></script>
</head>
<body>
<main><ul>{links}</ul></main>
</body>
</html>
"""
