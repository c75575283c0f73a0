"""What a terminal, a pipe or a disk does not take is one line, and never a traceback."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cyclopts import App

from nearfuture.cli import main
from nearfuture.cli.console import complain
from nearfuture.cli.results import replaced
from tests.patience import PATIENCE_S

CODE = "from nearfuture.cli import main; main()"
FULL = "/dev/full"
has_full = pytest.mark.skipif(not os.path.exists(FULL), reason="no /dev/full on this system")


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", CODE, *arguments],
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
        check=False,
        **{"stdout": subprocess.PIPE, **options},
    )


def ascii_only(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "100", **more}


def test_a_name_cannot_speak_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """It may come from an archive or a server of somebody else, and hide what stands before it."""
    complain("cannot read \x1b]0;title\x07\x1b[2Ka\rb\u202e한글.wav\nno such file")
    told = capsys.readouterr().err
    assert told == (
        "nearfuture: cannot read \\x1b]0;title\\x07\\x1b[2Ka\\x0db\\u202e한글.wav\nno such file\n"
    )


@pytest.mark.parametrize(
    "arguments", [("budget",), ("--help",), ("audit", "--help"), ("data", "list")]
)
def test_a_terminal_that_knows_ascii_only_gets_ascii(arguments: tuple[str, ...]) -> None:
    done = command(*arguments, env=ascii_only())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode("ascii")


def test_a_name_that_cannot_be_printed_is_escaped_and_json_stays_json() -> None:
    done = command("transcribe", "안녕 😀.wav", env=ascii_only())
    assert done.returncode == 1
    assert rb"\uc548\ub155 \ud83d\ude00.wav" in done.stderr
    print_all = (
        "from nearfuture.cli.console import fit_streams; import json; fit_streams();"
        "print(json.dumps({'text': '안녕 é “r” 😀'}, ensure_ascii=False))"
    )
    told = subprocess.run(
        [sys.executable, "-c", print_all], env=ascii_only(), capture_output=True, check=True
    ).stdout
    assert json.loads(told)["text"] == "안녕 é 'r' 😀"


@has_full
@pytest.mark.parametrize(
    "arguments", [("--help",), ("--version",), ("budget",), ("budget", "--json")]
)
def test_a_full_disk_is_one_line_and_exit_code_1(arguments: tuple[str, ...]) -> None:
    with open(FULL, "wb") as full:
        done = command(*arguments, stdout=full)
    assert done.returncode == 1
    assert done.stderr == b"nearfuture: cannot write the output: no space left on device\n"


@has_full
def test_where_not_even_an_error_can_be_written_the_exit_code_says_it() -> None:
    with open(FULL, "wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", CODE, "transcribe", "missing.wav"],
            stderr=full,
            stdout=subprocess.PIPE,
            timeout=PATIENCE_S,
            check=False,
        )
    assert (done.returncode, done.stdout) == (1, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell closes the stream")
@pytest.mark.parametrize(("closed", "code"), [(">&-", 0), ("2>&-", 0)])
def test_a_stream_that_is_closed_is_no_trouble(closed: str, code: int) -> None:
    line = f'"{sys.executable}" -c "{CODE}" budget {closed}'
    done = subprocess.run(line, shell=True, capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == code
    assert b"Traceback" not in done.stdout + done.stderr


def plant(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def run_nothing(self: App, tokens: Sequence[str], **_: Any) -> None:
        raise error

    monkeypatch.setattr(App, "__call__", run_nothing)


class LibsndfileError(RuntimeError):
    """As that of soundfile."""


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "a.html"),
            "cannot write a.html: no space",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "runs"), "cannot use runs: permission"),
        (RuntimeError("I/O error: No space left on device (os error 28)"), "the output: no space"),
        (LibsndfileError("System error."), "the disk is full"),
    ],
)
def test_whatever_cannot_be_written_is_one_line(
    error: Exception,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plant(monkeypatch, error)
    with pytest.raises(SystemExit) as stop:
        main(["budget"])
    err = capsys.readouterr().err
    assert (stop.value.code, err.count("\n"), reason in err) == (1, 1, True)


def test_other_errors_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, RuntimeError("a fault of ours"))
    with pytest.raises(RuntimeError, match="a fault of ours"):
        main(["budget"])


def test_a_file_is_there_when_it_is_complete_and_the_old_one_until_then(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail() -> None:
        with replaced(path) as write:
            write("new")
            assert path.read_text() == "old"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])
    with replaced(path) as write:
        write("new")
    assert (path.read_text(), list(tmp_path.iterdir())) == ("new", [path])


@has_full
def test_a_device_is_written_to_and_not_replaced() -> None:
    with pytest.raises(OSError, match="No space left") as refused, replaced(Path(FULL)) as write:
        write("text")
    assert refused.value.filename == FULL
    assert not os.path.isfile(FULL)


def test_a_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "a.txt"
    with pytest.raises(OSError, match="Not a directory") as refused, replaced(path):
        pass
    assert refused.value.filename == str(path)
