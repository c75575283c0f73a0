"""Errors in the words of the command line: a Python parameter becomes the flag that sets it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from cyclopts import App
from cyclopts.argument import Argument

from nearfuture.error import NearfutureError

# `name` or `name=value`, as the library writes them.
_MENTION = re.compile(r"`([A-Za-z_][\w.]*)(?:=([^`]*))?`")
_UNITS = ("_ms", "_s")

_COMMAND: ContextVar[App | None] = ContextVar("the command that runs", default=None)


@contextmanager
def running(app: App, tokens: Sequence[str]) -> Iterator[None]:
    """Let errors be explained in the flags of the command that these tokens run.

    Args:
        app: The command line.
        tokens: What was typed.
    """
    token = _COMMAND.set(app.parse_commands(tokens)[1][-1])
    try:
        yield
    finally:
        _COMMAND.reset(token)


def explain(error: NearfutureError) -> str:
    """Say what is wrong to somebody who typed the command that is `running`.

    `name` becomes --name and `name=value` becomes --name value; a parameter that the command does
    not have stays as it is. The flag stands in front of a message without its words.
    """
    command = _COMMAND.get()
    if command is None or command.default_command is None:
        return str(error)
    flags = _flags(command.assemble_argument_collection())
    message = _MENTION.sub(lambda match: _spelled(flags, match), str(error))
    flag = _flag(flags, error.parameter or "")
    if flag is None or not flag.startswith("--"):
        return message
    words = flag.removeprefix("--").replace("-", "[- ]")
    return message if re.search(rf"\b{words}\b", message) else f"{flag}: {message}"


def _flags(arguments: Iterable[Argument]) -> dict[str, str]:
    """Map the names under which the library may know a parameter to its flag.

    A field of nested dataclasses goes by its path from any level down: "training.optimizer.lr",
    "optimizer.lr" and "lr". A name that two fields share means the first.
    """
    flags: dict[str, str] = {}
    for argument in arguments:
        if argument.name == "*" or not argument.parse:  # a dataclass, or what is no flag
            continue
        path = argument.keys or (argument.field_info.name,)
        names = [".".join(path[start:]) for start in range(len(path))]
        typed = argument.name.lstrip("-").replace("-", "_")
        for name in (*names, typed):
            flags.setdefault(name, argument.name)
    return flags


def _flag(flags: dict[str, str], name: str) -> str | None:
    """Find the flag of a parameter; a flag may leave out the unit, as --budget does."""
    shorter = [name.removesuffix(unit) for unit in _UNITS]
    return next((flags[known] for known in (name, *shorter) if known in flags), None)


def _spelled(flags: dict[str, str], mention: re.Match[str]) -> str:
    name, value = mention.groups()
    flag = _flag(flags, name)
    if flag is None:
        return mention[0]
    match value:
        case None | "True":
            return flag
        case "False":
            return f"--no-{flag.removeprefix('--')}"
        case _:
            return f"{flag} {value.strip(chr(39))}"
