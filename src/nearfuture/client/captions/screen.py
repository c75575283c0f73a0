"""Live captions in a terminal: committed text plain, provisional text dim, a status line below."""

from __future__ import annotations

import time
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from nearfuture.client.caption import Caption
from nearfuture.client.captions.line_layout import LineLayout

_LIVE_LINES = 4  # of text that may change; of a longer one the end is shown
_REPAINT_S = 0.05
_PROVISIONAL = "dim italic"


class CaptionScreen:
    """Shows captions as they come; a context manager.

    Finished lines are printed once and scroll away like any output, so that an hour of speech can
    be scrolled back; only the last lines and the status are repainted. Where there is no terminal,
    each utterance is printed as a line when it has ended, and nothing else.

    Args:
        console: the terminal, file or pipe to write to.

    Attributes:
        status: the line below the text.
    """

    def __init__(self, console: Console) -> None:
        self.status = Text()
        self._console = console
        self._layout = LineLayout()
        self._caption: Caption | None = None
        self._live: Live | None = None
        self._painted_s = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                vertical_overflow="crop",
                redirect_stderr=False,
            )
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.update(Text(), refresh=True)
            self._live.stop()
            self._live = None
        # An utterance that never ended, of a server that failed: its committed text is not lost.
        if self._caption is not None and not self._caption.final:
            self._print(self._layout.end(self._caption.committed))
            self._caption = None

    def show(self, caption: Caption) -> None:
        """Show a caption; one of a new utterance begins a new line.

        Servers that complete utterances out of order have the later one shown when it ends.
        """
        previous = self._caption
        if previous is not None and previous.utterance != caption.utterance:
            if not previous.final:
                self._print(self._layout.end(previous.committed))
            self._layout = LineLayout()
        self._caption = caption
        if self._live is not None:
            for line in self._layout.full_lines(caption.committed, width=self._width):
                self._print(line)
        if caption.final:
            self._print(self._layout.end(caption.committed))
            self._caption = None
        self.paint(now=caption.final)

    def paint(self, *, now: bool = False) -> None:
        """Repaint what may change; not more often than an eye can follow, unless `now`."""
        at_s = time.monotonic()
        if self._live is None or (not now and at_s - self._painted_s < _REPAINT_S):
            return
        self._painted_s = at_s
        self._live.update(self._changing(), refresh=True)

    @property
    def _width(self) -> int:
        return max(1, self._console.width)

    def _print(self, line: str) -> None:
        if line.strip():
            self._console.print(Text(line), soft_wrap=self._live is None, highlight=False)

    def _changing(self) -> Text:
        shown = Text()
        if self._caption is not None:
            rest = self._layout.rest(self._caption.committed)
            provisional = self._caption.provisional
            if not rest:
                provisional = provisional.lstrip()
            shown = Text.assemble(rest, (provisional, _PROVISIONAL))
        lines = shown.wrap(self._console, self._width)[-_LIVE_LINES:]
        status = self.status.copy()
        status.truncate(self._width, overflow="ellipsis")
        return Text("\n").join([*lines, status])
