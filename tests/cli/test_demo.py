"""The demo begins with people, explains its words, and fits a terminal of 80 columns."""

import contextlib
import io
import re
import time

import pytest

from nearfuture.cli.demo import demo

TWIN = "bidirectional"
BUDGETS = ["55 ms", "215 ms", "375 ms", "815 ms"]


@pytest.fixture(scope="module")
def printed() -> str:
    """What the demo prints into a pipe, on a machine that computes in no time."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as output:
        patch.setenv("COLUMNS", "80")
        patch.setattr(time, "sleep", lambda _: None)
        patch.setattr(time, "perf_counter", lambda: 0.0)
        demo()
    return output.getvalue()


def rows(printed: str, *, cells: int) -> list[list[str]]:
    """The rows of tables with so many columns of numbers beside the budget."""
    lines = [line for line in printed.splitlines() if line.startswith("│")]
    table = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    return [row for row in table if len(row) == cells + 1 and row[0].endswith((")", "twin"))]


def test_people_come_first(printed: str) -> None:
    assert printed.index("jackson") < printed.index("flite rms")
    assert "Six people, one not in the training data (theo)" in printed


def test_every_budget_and_the_twin_show_their_text(printed: str) -> None:
    lanes = re.findall(r"^ *(\d+ ms|bidirectional)  +(\S.*?) *$", printed, re.MULTILINE)
    assert [name for name, _ in lanes] == 3 * [*BUDGETS, TWIN]
    assert [lanes[place][1] for place in (2, 7, 12)] == [
        "zero nine two five six",
        "four eight nine five zero",
        "three six zero two",
    ]


def test_rows_fit_eighty_columns_and_no_cell_wraps(printed: str) -> None:
    assert max(map(len, printed.splitlines())) <= 80
    assert not re.findall(r"^│ +│.*", printed, re.MULTILINE)  # below a budget stands the next one
    for cells in (3, 5):
        names = [row[0].partition(" (")[0] for row in rows(printed, cells=cells)]
        assert names == [*BUDGETS, "twin"]


def test_words_are_committed_within_the_budget_after_their_end(printed: str) -> None:
    """With more lookahead, later."""
    *streaming, _ = rows(printed, cells=5)
    committed = [int(row[3].split(" / ")[0]) for row in streaming]
    assert committed == sorted(committed)
    for row, median_ms in zip(streaming, committed, strict=True):
        assert median_ms <= int(row[0].split(" ms")[0])


def test_words_are_explained_and_the_next_command_is_named(printed: str) -> None:
    text = " ".join(printed.split())
    assert "τ (lookahead): frames of 40 ms that the model waits for" in text
    assert "with the extra [train] of README" in text
    assert "nearfuture data fetch fsdd" in text
    assert "python -m recipes.digits evaluate --twin digits-bidirectional" in text
