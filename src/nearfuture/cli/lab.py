"""`nearfuture lab`: pages that teach what lookahead is, computed live, in the browser."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from nearfuture.cli.console import Console
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress


def lab(
    *,
    port: int = 8010,
    browser: Annotated[bool, Parameter(negative="--no-browser")] = True,
    language: Literal["en", "ko"] | None = None,
    export: Path | None = None,
    onnxruntime_web: Path | None = None,
) -> None:
    """Open the lab: what a look into the future buys, and what it costs, in figures to touch.

    It serves this machine alone, until it is interrupted. With `--export` it writes a copy instead,
    which any file server can host: small graphs run in the visitor's browser, and what only the
    library can measure is recorded.

    Args:
        port: The port to listen on; 0 is any that is free.
        browser: Open the first page in a browser.
        language: The language of the pages; by default the browser's.
        export: The folder to write a copy to; an older copy is replaced.
        onnxruntime_web: The npm package of ONNX Runtime for browsers, where it is at hand; by
            default npm fetches it when a copy is written.
    """
    if export is not None:
        if port != 8010 or not browser:
            raise NearfutureError("a copy has no `port` and opens no `browser`", parameter="export")
        _export(export, language, onnxruntime_web)
        return
    if onnxruntime_web is not None:
        raise NearfutureError(
            "`onnxruntime_web` has no effect without `export`", parameter="onnxruntime_web"
        )
    import webbrowser

    from nearfuture.lab.server import serve

    def announce(url: str) -> None:
        Console(stderr=True).print(f"The lab is at {url} (Ctrl-C ends it)", highlight=False)
        if browser:
            webbrowser.open(url)

    serve(port, language=language, on_started=announce)


def _export(folder: Path, language: Literal["en", "ko"] | None, package: Path | None) -> None:
    from rich.progress import Progress

    from nearfuture.lab import copy

    copy.check(folder)  # before anything is fetched
    console = Console(stderr=True)
    with Progress(console=console, transient=True) as progress:
        fetching = progress.add_task("fetching onnxruntime-web", total=None)
        runtime = copy.onnxruntime_web(package)
        progress.update(fetching, total=1, completed=1)
        recorded = _follow(progress, "recording answers")
        copy.export(folder, language=language, runtime=runtime, on_answer=recorded)
    console.print(f"A copy of the lab is in {folder}; any file server can host it", highlight=False)


def _follow(progress: "Progress", what: str) -> "Callable[[int, int], None]":
    task = progress.add_task(what, total=None)
    return lambda done, whole: progress.update(task, completed=done, total=whole)
