"""One engine and one server for most tests here."""

from collections.abc import Iterator

import pytest

from nearfuture.runtime import Dispatcher, Model, load
from tests.serving.served import Served, dispatcher, running


@pytest.fixture(scope="session")
def engine() -> Iterator[Dispatcher]:
    with dispatcher() as engine:
        yield engine


@pytest.fixture(scope="module")
def served(engine: Dispatcher) -> Iterator[Served]:
    with running(engine) as served:
        yield served


@pytest.fixture(scope="session")
def offline() -> Model:
    """What every server is held to."""
    return load("digits", budget_ms=400)
