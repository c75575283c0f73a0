"""Law 9: gradients in chunks equal gradients of the whole sequence, for inputs and weights."""

from nearfuture import laws
from tests.laws.cases import drawn, one_of_each
from tests.laws.registry import ALL


@one_of_each
def test_gradients_agree(name: str) -> None:
    laws.gradients_agree(ALL[name], examples=drawn(name))
