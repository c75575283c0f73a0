"""The demo begins with people, explains its words, and fits a terminal of 80 columns."""

import contextlib
import io
import re
import time

import pytest

from nearfuture.cli.demo import demo

TWIN = "bidirectional"


@pytest.fixture(scope="module")
def printed() -> str:
    """What the demo prints into a pipe, on a machine that computes in no time."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as output:
        patch.setenv("COLUMNS", "80")
        patch.setattr(time, "sleep", lambda _: None)
        patch.setattr(time, "perf_counter", lambda: 0.0)
        demo()
    return output.getvalue()


def test_people_come_first(printed: str) -> None:
    assert printed.index("jackson") < printed.index("flite rms")
    assert printed.index("six people, one never heard") < printed.index("four synthetic voices")


def test_every_budget_and_the_twin_say_what_they_heard(printed: str) -> None:
    lanes = re.findall(r"^ *(\d+ ms|bidirectional)  +(\S.*?) *$", printed, re.MULTILINE)
    assert [name for name, _ in lanes] == 3 * ["55 ms", "215 ms", "375 ms", "815 ms", TWIN]
    assert [lanes[place][1] for place in (2, 7, 12)] == [
        "zero nine two five six",
        "four eight nine five zero",
        "three six zero two",
    ]


def test_rows_fit_eighty_columns_and_no_cell_wraps(printed: str) -> None:
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line for line in lines if line.startswith("│")]
    assert len(rows) == 10  # four budgets and the twin, of two sets
    assert all(row.split("│")[1].strip() for row in rows)


def test_first_words_come_within_what_is_promised_after_their_end(printed: str) -> None:
    """More lookahead, later; the twin waits for the end."""
    delays = [int(delay) for delay in re.findall(r"([+-]\d+) ms │", printed)]
    assert len(delays) == 10
    for delays_of_a_set in (delays[:5], delays[5:]):
        assert delays_of_a_set == sorted(delays_of_a_set)


def test_words_are_explained_and_the_next_command_is_named(printed: str) -> None:
    text = " ".join(printed.split())
    assert "τ (lookahead): frames of 40 ms that the model waits for" in text
    assert "nearfuture data fetch fsdd" in text
    assert "python -m recipes.digits evaluate --twin digits-bidirectional" in text
