"""The errors a user can meet: a message for people, and for programs a code and a parameter."""

from __future__ import annotations

from typing import Any, Literal

Code = Literal[
    "invalid",  # a value that cannot be read or means nothing here
    "out_of_range",  # a number beyond its limits
    "not_found",  # a file, a folder, a model or a name that does not exist
    "unsupported",  # a valid request that this model, file or machine cannot fulfil
    "missing_dependency",  # a package that the base install leaves out
    "too_large",  # more bytes, seconds or files than the limit
    "damaged",  # a file or a stream that is broken or cut off
    "conflict",  # values that exclude each other, or something that is there already
    "unauthorized",  # credentials that are missing or wrong
    "busy",  # no capacity at the moment: try again later
    "timeout",  # no answer, or no input, for too long
    "unavailable",  # a service or a device that cannot be reached, or that stops
    "internal",  # a mistake of ours
]
"""What went wrong, in one of a few words that do not change with the wording of a message."""


class NearfutureError(ValueError):
    """An error that the caller can correct: in a value, a file or a set of options.

    Args:
        message: One line that names the value, the limit and the way out. It writes a parameter as
            Python does, between backticks; the command line shows its flag instead.
        code: What went wrong; the class has a default.
        parameter: The Python name of the argument or field that the error is about. A field of a
            nested dataclass may be a path, such as "optimizer.lr".

    >>> error = NearfutureError(
    ...     "`frame_ms` must be above 0, not -1", code="out_of_range", parameter="frame_ms"
    ... )
    >>> error.code, error.parameter, str(error)
    ('out_of_range', 'frame_ms', '`frame_ms` must be above 0, not -1')
    """

    code: str = "invalid"
    """One of `Code`; subclasses that speak a protocol may have the words of that protocol."""

    parameter: str | None = None

    def __init__(
        self, message: str, *, code: Code | None = None, parameter: str | None = None
    ) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.parameter = parameter

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by attributes: subclasses have constructors of their own."""
        return (_restore, (type(self), self.args), self.__dict__)


def _restore(error: type[NearfutureError], arguments: tuple[Any, ...]) -> NearfutureError:
    return error.__new__(error, *arguments)


class MissingDependency(NearfutureError):  # noqa: N818 - what it says, not that it failed
    """A feature needs a package that the base install leaves out.

    Args:
        feature: What needs it, such as "a plot".
        package: The name of the package.
        install: The command that installs it.

    >>> print(MissingDependency("a file", "av", "pip install av"))
    a file needs av, which the base install leaves out; install it with: pip install av
    """

    code = "missing_dependency"

    def __init__(self, feature: str, package: str | None, install: str) -> None:
        super().__init__(
            f"{feature} needs {package}, which the base install leaves out; install it with: "
            f"{install}"
        )


class NotStreamable(NearfutureError):  # noqa: N818 - what it says, not that it failed
    """A layer needs the whole sequence before it can compute its first output."""

    code = "unsupported"
