"""`nearfuture lab`: pages that teach what lookahead is, computed live, in the browser."""

from typing import Annotated, Literal

from cyclopts import Parameter

from nearfuture.cli.console import Console


def lab(
    *,
    port: int = 8010,
    browser: Annotated[bool, Parameter(negative="--no-browser")] = True,
    language: Literal["en", "ko"] | None = None,
) -> None:
    """Open the lab: what a look into the future buys, and what it costs, in figures to touch.

    It serves this machine alone, until it is interrupted.

    Args:
        port: The port to listen on; 0 is any that is free.
        browser: Open the first page in a browser.
        language: The language of the pages; by default the browser's.
    """
    import webbrowser

    from nearfuture.lab.server import serve

    def announce(url: str) -> None:
        Console(stderr=True).print(f"The lab is at {url} (Ctrl-C ends it)", highlight=False)
        if browser:
            webbrowser.open(url)

    serve(port, language=language, on_started=announce)
