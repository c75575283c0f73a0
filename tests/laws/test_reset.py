"""Law 10: a stream that starts knows nothing of the streams before it or beside it."""

from nearfuture import laws
from tests.laws.cases import drawn, one_of_each
from tests.laws.registry import ALL


@one_of_each
def test_reset_is_fresh(name: str) -> None:
    laws.reset_equals_new_stream(ALL[name], examples=drawn(name))
