"""The pages about misconceptions measure what they say; a page that says something else fails."""

import re
from pathlib import Path

import pytest

from tests.documents import run_python

PAGES = sorted((Path(__file__).parents[1] / "docs" / "misconceptions").glob("*.md"))


def test_there_are_three() -> None:
    assert [page.stem for page in PAGES] == [
        "predicts-the-future",
        "two-stacked-layers",
        "vanishing-gradients",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_prints_what_it_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(run_python(text, page.stem)) == text.count("print(")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_refers_to_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    assert all((page.parent / link).is_file() for link in links)


@pytest.mark.parametrize(
    "block",
    [
        "print(False)  # True",
        "print(False)  # True\nprint(True)  # False",  # each is printed, by the other
        "print(True)  # True\nprint(False)  # True",
        "print([1, 1])  # [1, 6]",
    ],
)
def test_a_comment_that_is_not_printed_is_found(block: str) -> None:
    with pytest.raises(AssertionError):
        run_python(f"```python\n{block}\n```", "planted")
