"""Captions in a terminal: what scrolls away is complete, and what stays fits."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from nearfuture.client.caption import Caption
from nearfuture.client.captions.line_layout import LineLayout, first_line
from nearfuture.client.captions.screen import CaptionScreen

WORDS = st.lists(st.text(alphabet="ab한,", min_size=1, max_size=12), max_size=30)


@given(words=WORDS, width=st.integers(2, 40), cuts=st.lists(st.integers(0, 400), max_size=10))
def test_however_a_text_grows_its_lines_are_the_same_and_fit(
    words: list[str], width: int, cuts: list[int]
) -> None:
    text = " ".join(words)
    layout, lines = LineLayout(), []
    for end in sorted(cuts):
        lines += layout.full_lines(text[:end].rstrip(), width=width)
    lines += layout.full_lines(text, width=width)
    lines.append(layout.end(text))
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(words)
    # A line is broken at a space, unless it has none.
    for line, after in pairwise(lines):
        assert line + " " + after in text or " " not in line


@given(text=st.text(alphabet="a b한", max_size=60), width=st.integers(1, 20))
def test_a_first_line_is_never_empty(text: str, width: int) -> None:
    line = first_line(text, width)
    assert text.startswith(line)
    assert line or not text


def test_a_text_that_did_not_only_grow_is_shown_anew() -> None:
    layout = LineLayout()
    assert layout.full_lines("one two three four", width=9) == ["one two", "three"]
    assert layout.full_lines("won too three four", width=9) == ["won too", "three"]


def captions() -> list[Caption]:
    text = "one two three four five six seven eight nine zero"
    return [
        Caption(utterance="0", committed=text[:end], provisional=text[end : end + 6])
        for end in range(0, len(text), 3)
    ] + [
        Caption(utterance="0", committed=text, final=True),
        Caption(utterance="1", committed="[red]bye", provisional=" now"),
        Caption(utterance="1", committed="[red]bye", final=True),
        Caption(utterance="2", committed="", final=True),
    ]


def test_without_a_terminal_each_utterance_is_a_line() -> None:
    out = io.StringIO()
    with CaptionScreen(Console(file=out, width=20)) as screen:
        for caption in captions():
            screen.show(caption)
    assert out.getvalue() == "one two three four five six seven eight nine zero\n[red]bye\n"


def test_what_was_committed_is_not_lost_when_a_server_fails() -> None:
    out = io.StringIO()

    def fail() -> None:
        with CaptionScreen(Console(file=out)) as screen:
            screen.show(Caption(utterance="0", committed="one", provisional=" two"))
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        fail()
    assert out.getvalue() == "one\n"


def test_in_a_terminal_finished_lines_stay_and_the_rest_is_wiped() -> None:
    """A terminal is played by hand: lines, and the control sequences that go up and erase."""
    out = io.StringIO()
    console = Console(file=out, width=20, height=10, force_terminal=True, legacy_windows=False)
    with CaptionScreen(console) as screen:
        for caption in captions():
            screen.show(caption)
    assert played(out.getvalue()) == [
        "one two three four",
        "five six seven eight",
        "nine zero",
        "[red]bye",
    ]


def played(written: str) -> list[str]:
    """What is left on a screen."""
    import re

    lines, row, column = [""], 0, 0
    for token in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", written):
        if token == "\r":
            column = 0
        elif token == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif token.startswith("\x1b["):
            if token.endswith("A"):
                row -= int(token[2:-1] or 1)
                assert row >= 0
            elif token == "\x1b[2K":
                lines[row] = ""
        else:
            line = lines[row].ljust(column)
            lines[row] = line[:column] + token + line[column + len(token) :]
            column += len(token)
    return [line.rstrip() for line in lines if line.strip()]
