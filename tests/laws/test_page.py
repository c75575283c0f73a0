"""The page about the laws: its code runs, and its message and table are what the laws say now."""

import pytest

from nearfuture import laws
from tests.laws import page, wrong_layers


def test_the_layer_of_the_page_obeys_the_laws() -> None:
    names: dict[str, object] = {"__name__": "page"}
    exec(page.code(), names)
    names["test_decay_obeys_the_laws"]()
    for law in laws.ALL:
        names["test_decay"](law)


def test_the_message_is_what_the_laws_say() -> None:
    (written,) = page.MESSAGE.findall(page.PAGE.read_text(encoding="utf-8"))
    assert page.masked(page.message()) == page.masked(written), page.RENEW


def test_the_table_has_a_row_for_each_wrong_layer() -> None:
    """What the rows say is compared where the laws judge the layers: `test_the_laws_can_fail`."""
    assert list(page.rows()) == list(wrong_layers.WRONG_LAYERS), page.RENEW


@pytest.mark.parametrize(
    ("value", "shown"),
    [("-1.5e-03 and 2.25", "# and #"), ("1e-10", "#"), ("row 0, frame 12, [3, 1]",) * 2],
)
def test_only_floating_values_are_masked(value: str, shown: str) -> None:
    assert page.masked(value) == shown
