"""The library names parameters in Python's words; the command line shows their flags."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pytest
from cyclopts import App, Parameter

from nearfuture.cli.flags import explain, running
from nearfuture.error import NearfutureError


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Optimizer:
    lr: float = 1e-3
    ema: bool = True


@dataclass(frozen=True, kw_only=True)
class Encoder:
    depth: int = 1


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    optimizer: Optimizer = field(default_factory=Optimizer)
    encoder: Encoder = field(default_factory=Encoder)
    init_from: Annotated[str | None, Parameter(name="--from")] = None


app = App(name="program")


@app.command
def train(
    files: list[str],
    /,
    *,
    budget_ms: Annotated[float | None, Parameter(name="--budget")] = None,
    at_most: int | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    data: tuple[Path, ...] = (),
    options: Options | None = None,
) -> None: ...


@app.command
def other(*, lr: float = 0) -> None: ...


data = App(name="data")
app.command(data)


@data.command
def check(source: str, /) -> None: ...


def explained(error: NearfutureError, *tokens: str) -> str:
    with running(app, tokens):
        return explain(error)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("`at_most` is 19", "--at-most is 19"),
        ("`budget_ms` is -1", "--budget is -1"),
        ("`budget` is -1", "--budget is -1"),
        ("`at_most_ms` is -1", "--at-most is -1"),
        ("`as_json` and `json`", "--json and --json"),
        ("`init_from` has a size", "--from has a size"),
        ("`files` is empty", "FILES is empty"),
        ("`lr` is -1", "--lr is -1"),
        ("`optimizer.lr` is -1", "--lr is -1"),
        ("`elsewhere.lr` is -1", "`elsewhere.lr` is -1"),
        ("`encoder.depth` is 0, `depth` too", "--encoder.depth is 0, --encoder.depth too"),
        ("set `lr=0.1`", "set --lr 0.1"),
        ("set `init_from='a'`", "set --from a"),
        ("set `ema=True` or `ema=False`", "set --ema or --no-ema"),
        ("`vocabulary` is no parameter here", "`vocabulary` is no parameter here"),
        ("`lr is code", "`lr is code"),
        ("lr without backticks", "lr without backticks"),
        ("run `nearfuture export`", "run `nearfuture export`"),
    ],
)
def test_a_parameter_between_backticks_becomes_its_flag(message: str, shown: str) -> None:
    assert explained(NearfutureError(message), "train", "a.wav") == shown


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("-1 is below 0", "--at-most: -1 is below 0"),
        ("`at_most` is -1", "--at-most is -1"),
        ("-1 is at most 0", "-1 is at most 0"),
    ],
)
def test_the_flag_stands_in_front_of_a_message_without_its_words(message: str, shown: str) -> None:
    assert explained(NearfutureError(message, parameter="at_most"), "train", "a.wav") == shown


@pytest.mark.parametrize("parameter", ["files", "vocabulary", None])
def test_what_has_no_flag_does_not_stand_in_front(parameter: str | None) -> None:
    error = NearfutureError("a.wav is empty", parameter=parameter)
    assert explained(error, "train", "a.wav") == "a.wav is empty"


def test_it_is_the_command_that_ran() -> None:
    error = NearfutureError("`lr`, `at_most` or `source`")
    assert explained(error, "other") == "--lr, `at_most` or `source`"
    assert explained(error, "data", "check", "x") == "`lr`, `at_most` or SOURCE"
    assert explained(error) == str(error)


def test_outside_a_command_the_message_stays() -> None:
    assert explain(NearfutureError("`lr` is -1", parameter="lr")) == "`lr` is -1"
