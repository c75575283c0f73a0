"""Law 10: a stream that starts knows nothing of the streams before it or beside it."""

import pytest

from nearfuture import laws
from tests.laws.cases import DRAWN
from tests.laws.registry import ALL


@pytest.mark.parametrize("name", ALL)
def test_reset_is_fresh(name: str) -> None:
    laws.reset_equals_new_stream(ALL[name], examples=DRAWN)
