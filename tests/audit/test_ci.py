"""The example repository of docs/ci.md: the plugin, the hook and the Action as they stand there."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import yaml
from pre_commit.clientlib import load_config, load_manifest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, where it says."""
    folder = tmp_path_factory.mktemp("recognizer")
    files = re.findall(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for name, content in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    listed = re.findall(r"[├└]── (\S+)", PAGE)
    assert {name for name, _ in files} == set(listed)
    return folder


@pytest.fixture(scope="module")
def broken(repository: Path) -> Path:
    """The same after the change that the page shows."""
    folder = repository.parent / "broken"
    folder.mkdir()
    code = (repository / "encoder.py").read_text(encoding="utf-8")
    (change,) = re.findall(r"```diff\n(.*?)```", PAGE, re.DOTALL)
    code = code.replace("Conv1d(8, 8, 5, padding=2)", "Conv1d(8, 8, 7, padding=3)")
    lines = code.splitlines(keepends=True)
    code = "".join(line for line in lines if f"-{line}" not in change)
    assert all(line[1:] in code for line in change.splitlines() if line[0] == "+")
    (folder / "encoder.py").write_text(code, encoding="utf-8")
    return folder


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")}
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env={**clean, "PATH": path, "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def action(folder: Path, out: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """Run the steps of the Action as the page's workflow calls it, but install nothing."""
    workflow = yaml.safe_load(PAGE.split("```yaml\n")[1].split("```")[0])
    (step,) = [each for each in workflow["jobs"]["audit"]["steps"] if each.get("id") == "audit"]
    given = {name: entry.get("default", "") for name, entry in ACTION["inputs"].items()}
    given |= step["with"] | {"install": "none", "reports": str(out)}
    files = {name: out.parent / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.touch()
    for each in ACTION["runs"]["steps"]:
        environment = {
            name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], value)
            for name, value in each["env"].items()
        }
        environment |= {name: str(file) for name, file in files.items()}
        environment |= {"GITHUB_ACTION_PATH": str(ROOT), "GITHUB_ACTIONS": "true"}
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", each["run"]]
        result = run(shell, folder, **environment)
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    outputs["summary"] = files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
    return result, outputs


def test_the_action_annotates_the_lines_of_a_broken_promise(broken: Path, tmp_path: Path) -> None:
    result, outputs = action(broken, tmp_path / "reports")
    assert (result.returncode, outputs["exit-code"]) == (1, "1"), result.stderr
    (verdict,) = re.findall(r"^broken: .*$", PAGE, re.MULTILINE)
    assert result.stdout.startswith(verdict)
    (annotation,) = re.findall(r"^(::error .*::)…$", PAGE, re.MULTILINE)
    errors = [line for line in result.stdout.splitlines() if line.startswith("::error")]
    assert any(line.startswith(annotation) for line in errors)
    assert all(line.startswith("::error file=encoder.py,line=13,") for line in errors)
    assert verdict in outputs["summary"]
    assert "::error" not in outputs["summary"]
    assert Path(outputs["sarif"]).is_file()
    written = {path.suffix for path in (tmp_path / "reports").iterdir()}
    assert written == {".html", ".json", ".xml", ".sarif", ".txt"}


def test_the_action_is_composite_and_uses_nobody_else() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert not any("uses" in step for step in ACTION["runs"]["steps"])
    assert all(step["shell"] == "bash" for step in ACTION["runs"]["steps"])
    assert "${{" not in "".join(step["run"] for step in ACTION["runs"]["steps"])


def test_the_hook_passes_on_the_example_repository(repository: Path) -> None:
    (hook,) = load_manifest(ROOT / ".pre-commit-hooks.yaml")
    (repo,) = load_config(repository / ".pre-commit-config.yaml")["repos"]
    (used,) = repo["hooks"]
    assert used["id"] == hook["id"]
    assert re.search(hook["files"], "encoder.py")
    assert not hook["pass_filenames"]
    result = run([*shlex.split(hook["entry"]), *used["args"]], repository)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_plugin_passes_on_the_example_repository_and_fails_on_the_broken_one(
    repository: Path, broken: Path, tmp_path: Path
) -> None:
    registered = entry_points(group="pytest11", name="nearfuture")
    plugin = (
        [] if registered else ["-p", "nearfuture.testing"]
    )  # it registers where it is installed
    shell = [sys.executable, "-m", "pytest", "-q", *plugin]
    text = (repository / "test_encoder.py").read_text(encoding="utf-8")
    for folder, name in ((repository, "a"), (broken, "b")):
        (tmp_path / f"test_{name}.py").write_text(
            text.replace("from encoder", f"from encoder_{name}"), encoding="utf-8"
        )
        code = (folder / "encoder.py").read_text(encoding="utf-8")
        (tmp_path / f"encoder_{name}.py").write_text(code, encoding="utf-8")
    reports = ["--nearfuture-reports", "reports", "--junit-xml", "junit.xml"]
    result = run([*shell, *reports], tmp_path)
    assert "1 failed, 1 passed" in result.stdout, result.stdout
    assert "broken: it depends on the padding" in result.stdout
    assert "encoder_b.py:13" in result.stdout
    assert '<property name="lookahead" value="2"' in (tmp_path / "junit.xml").read_text()
    assert len(list((tmp_path / "reports").iterdir())) == 2 * 4


def test_the_plugin_is_registered_and_loads_nothing_heavy() -> None:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"]["pytest11"] == {"nearfuture": "nearfuture.testing"}
    heavy = "{'torch', 'numpy', 'onnxruntime', 'nearfuture.audit'}"
    script = f"import nearfuture.testing, sys; print({heavy} & set(sys.modules))"
    assert run([sys.executable, "-c", script], ROOT).stdout == "set()\n"
