"""Law 7: outputs appear exactly when the receptive field declares."""

import pytest

from nearfuture import laws
from tests.laws.cases import drawn
from tests.laws.registry import ALL


@pytest.mark.parametrize("name", ALL)
def test_outputs_appear_when_declared(name: str) -> None:
    laws.emission_schedule(ALL[name], examples=drawn(name))
