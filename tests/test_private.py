"""A user's machine is theirs: nothing is written to the home folder, and nothing is reported."""

import os
import subprocess
import sys
from pathlib import Path

# Where ONNX Runtime believes that it is tested, it reports nothing anyway.
TESTED = ("CI", "ORT_RUNNING_UNIT_TESTS", "ORT_DISABLE_TELEMETRY")


def home_after(statements: str, home: Path, **environment: str) -> list[str]:
    """What is in the home folder after a process; a word on stderr is an error."""
    mine = {name: value for name, value in os.environ.items() if name not in TESTED}
    mine |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}
    done = subprocess.run(
        [sys.executable, "-c", statements],
        env=mine | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return sorted(path.name for path in home.iterdir())


def test_running_a_model_leaves_the_home_folder_alone(tmp_path: Path) -> None:
    assert home_after("import nearfuture; nearfuture.load('digits')", tmp_path) == []


def test_a_home_folder_that_cannot_be_made_is_not_spoken_of(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    load = "from nearfuture.data.sources import import_lhotse; import_lhotse()"
    assert home_after(load, tmp_path, HOME=str(tmp_path / "file")) == ["file"]


def test_a_user_who_wants_to_report_may(tmp_path: Path) -> None:
    said = "import nearfuture, os; assert os.environ['ORT_DISABLE_TELEMETRY'] == '0'"
    assert home_after(said, tmp_path, ORT_DISABLE_TELEMETRY="0") == []
