"""Law 9: gradients in chunks equal gradients of the whole sequence, for inputs and weights."""

import pytest

from nearfuture import laws
from tests.laws.cases import DRAWN
from tests.laws.registry import ALL


@pytest.mark.parametrize("name", ALL)
def test_gradients_agree(name: str) -> None:
    laws.gradients_agree(ALL[name], examples=DRAWN)
