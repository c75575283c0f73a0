"""Errors carry a code and a parameter, and keep them on their way between processes."""

import copy
import pickle

import pytest

from nearfuture.audio import AudioError
from nearfuture.error import MissingDependency, NearfutureError, NotStreamable
from nearfuture.runtime.scheduler.load import Busy
from nearfuture.serving.errors import RequestError
from tests.errors import refuses

ERRORS = [
    NearfutureError("19 is above 10", code="out_of_range", parameter="budget_ms"),
    NearfutureError("no", code="not_found"),
    NotStreamable("it reads the whole sequence"),
    AudioError("a.wav is empty", parameter="path"),
    Busy(streams=4, max_streams=4, load=0.5, limit=0.8),
    RequestError("too_long", "3 s are too long"),
    MissingDependency("a plot", "matplotlib", "pip install matplotlib"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_copy_has_all_that_the_error_has(error: NearfutureError) -> None:
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(copied) is type(error)
        assert (str(copied), vars(copied)) == (str(error), vars(error))
        assert (copied.code, copied.parameter) == (error.code, error.parameter)


def test_a_class_has_a_code_of_its_own() -> None:
    assert NearfutureError("…").code == "invalid"
    assert NotStreamable("…").code == "unsupported"
    assert AudioError("…").code == "damaged"
    assert AudioError("…", code="not_found").code == "not_found"


def test_refuses_takes_code_parameter_and_values() -> None:
    with refuses("out_of_range", "budget_ms", 19, 10) as caught:
        raise ERRORS[0]
    assert caught.value is ERRORS[0]


@pytest.mark.parametrize(
    "expected",
    [("invalid", "budget_ms"), ("out_of_range",), ("out_of_range", "budget_ms", 20)],
    ids=["code", "parameter", "value"],
)
def test_refuses_fails_where_one_of_them_differs(expected: tuple[str, ...]) -> None:
    with pytest.raises(AssertionError), refuses(*expected):
        raise ERRORS[0]


def test_refuses_fails_without_an_error() -> None:
    with pytest.raises(pytest.fail.Exception), refuses("invalid"):
        pass
