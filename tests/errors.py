"""What a test says about an error: its code, its parameter and the values it names."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nearfuture.error import Code, NearfutureError


@contextmanager
def refuses(
    code: Code | str, parameter: str | None = None, *values: object
) -> Iterator[pytest.ExceptionInfo[NearfutureError]]:
    """The block raises a NearfutureError with this code about this parameter.

    Args:
        code: such as "out_of_range".
        parameter: the Python name of the argument or field; None where the error is about none.
        values: what the message names: what was there, the limit, the way out.
    """
    with pytest.raises(NearfutureError) as caught:
        yield caught
    error = caught.value
    assert (error.code, error.parameter) == (code, parameter), str(error)
    missing = [value for value in map(str, values) if value not in str(error)]
    assert not missing, f"{missing} missing from: {error}"
