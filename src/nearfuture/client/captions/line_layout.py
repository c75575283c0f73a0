"""Captions laid out in lines: what is settled scrolls away, what may change stays at the bottom."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len


@dataclass
class LineLayout:
    """The lines of a text that only grows; a text that shrank is laid out again.

    >>> layout = LineLayout()
    >>> layout.full_lines("one two", width=12), layout.full_lines("one two three fo", width=12)
    ([], ['one two'])
    >>> layout.rest("one two three fo"), layout.end("one two three four")
    ('three fo', 'three four')
    """

    _finished: str = ""  # the beginning of the text that is in finished lines

    def full_lines(self, committed: str, *, width: int) -> list[str]:
        """Return the lines that are now full; the last word may still grow and stays open."""
        lines: list[str] = []
        while True:
            rest = self.rest(committed)
            line = first_line(rest, width)
            if line == rest:
                return lines
            self._finished = committed[: len(committed) - len(rest) + len(line)]
            lines.append(line.rstrip())

    def rest(self, committed: str) -> str:
        """Return the committed text behind the finished lines; all of it if it begins otherwise."""
        return committed.removeprefix(self._finished).lstrip()

    def end(self, committed: str) -> str:
        """Return the last line of an utterance that has ended, and begin an empty layout."""
        rest = self.rest(committed)
        self._finished = ""
        return rest


def first_line(text: str, width: int) -> str:
    """Return as much of a text as fits in a line: whole words, or the part of a longer word.

    Args:
        text: without a line end.
        width: in terminal cells; a Korean syllable takes two.

    >>> first_line("one two three", 9), first_line("안녕하세요", 5), first_line("one", 3)
    ('one two ', '안녕', 'one')
    """
    if cell_len(text) <= width:
        return text
    cells = end = 0
    for end, character in enumerate(text):  # noqa: B007 - read behind the loop
        cells += cell_len(character)
        if cells > width:
            break
    space = text.rfind(" ", 0, end + 1)
    return text[: space + 1] if space > 0 else text[: max(1, end)]
