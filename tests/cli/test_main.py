"""What every command has in common: mistakes are one line, an interrupt is quiet."""

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from cyclopts import App

import nearfuture
from nearfuture.cli import main
from nearfuture.error import NearfutureError
from tests.patience import PATIENCE_S


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    return int(stop.value.code or 0)


def plant(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Every command raises this."""

    def run_nothing(self: App, tokens: Sequence[str], **_: Any) -> None:
        raise error

    monkeypatch.setattr(App, "__call__", run_nothing)


def test_a_mistake_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, NearfutureError("the value, the limit and the fix"))
    assert run("budget") == 2
    assert capsys.readouterr() == ("", "nearfuture: the value, the limit and the fix\n")


def test_a_mistake_in_the_library_names_the_flag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, NearfutureError("`hop_ms` is above 0, not -1", parameter="hop_ms"))
    assert run("budget") == 2
    assert capsys.readouterr().err == "nearfuture: --hop-ms is above 0, not -1\n"


def test_an_interrupt_is_quiet_and_exit_code_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, KeyboardInterrupt())
    assert run("budget") == 130
    assert capsys.readouterr() == ("", "")


MORE = (
    ("--help",),
    ("budget", "--json"),
    ("audit", "digits", "--at-most", "1ms", "--lookahead-only"),
)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("budget",),
        *(pytest.param(line, marks=pytest.mark.slow) for line in MORE),
    ],
    ids=" ".join,
)
def test_a_reader_who_leaves_is_quiet_and_exit_code_141(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as stdout:
        code = "from nearfuture.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S,
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_our_own_mistakes_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, AssertionError("an invariant"))
    with pytest.raises(AssertionError, match="an invariant"):
        main(["budget"])


def test_an_unknown_flag_is_exit_code_2() -> None:
    assert run("budget", "--no-such-flag") == 2


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out.strip() == nearfuture.__version__


def test_arguments_of_the_process_are_the_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["nearfuture", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.strip() == nearfuture.__version__


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    text = capsys.readouterr().out
    assert all(command in text for command in ("transcribe", "train", "audit", "demo", "budget"))
