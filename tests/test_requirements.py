"""What the package asks for is what its code imports."""

import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import nearfuture
from tests.structure import PACKAGE, imported, parsed

SOURCE = Path(nearfuture.__file__).parent
PROJECT = Path(__file__).parents[1] / "pyproject.toml"
# Requirement → the name that it is imported by, where they differ.
MODULES = {
    "python-multipart": "python_multipart",
    "prometheus-client": "prometheus_client",
    "pyyaml": "yaml",
}
# Requirement → the package that imports it for us.
FOR_OTHERS = {
    "onnxscript": "torch.onnx exports by it",
    "tensorboard": "torch.utils.tensorboard writes by it",
    "scipy": "lhotse imports it and does not declare it",
    "urllib3": "lhotse imports it and does not declare it",
}
# What loads a plugin of ours is there when it does.
HOSTS = {"pytest"}


def requirements(project: dict[str, Any]) -> dict[str, set[str]]:
    """The names of what each extra asks for; "" is the base install, and `dev` is left out."""

    def names(entries: Iterable[str]) -> set[str]:
        return {entry.split(">=")[0].split("==")[0].strip() for entry in entries}

    extras = project["project"]["optional-dependencies"]
    extras = {extra: names(entries) for extra, entries in extras.items() if extra != "dev"}
    return {"": names(project["project"]["dependencies"])} | extras


def unused(project: dict[str, Any], modules: set[str]) -> list[str]:
    """Each requirement that nothing imports."""
    return sorted(
        f"{extra or 'base'}: {name}"
        for extra, names in requirements(project).items()
        for name in names
        if MODULES.get(name, name) not in modules and name not in FOR_OTHERS
    )


def undeclared(project: dict[str, Any], modules: set[str]) -> set[str]:
    """Each module that is imported and not asked for."""
    names = set[str]().union(*requirements(project).values())
    known = (
        {MODULES.get(name, name) for name in names} | sys.stdlib_module_names | HOSTS | {PACKAGE}
    )
    return modules - known


def modules_of(source: Path) -> set[str]:
    """The top-level modules that a tree of sources imports, wherever it does."""
    return {
        name.split(".")[0]
        for file, tree in parsed(source).items()
        for name, _ in imported(tree, file)
    }


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads(PROJECT.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def modules() -> set[str]:
    return modules_of(SOURCE)


def test_every_requirement_is_imported(project: dict[str, Any], modules: set[str]) -> None:
    assert unused(project, modules) == []


def test_every_import_is_required(project: dict[str, Any], modules: set[str]) -> None:
    assert undeclared(project, modules) == set()


def test_what_others_import_is_required(project: dict[str, Any]) -> None:
    assert set[str]().union(*requirements(project).values()) >= FOR_OTHERS.keys()


def test_an_extra_without_code_is_found(project: dict[str, Any], modules: set[str]) -> None:
    extras = {**project["project"]["optional-dependencies"], "lm": ["kenlm>=0.3"]}
    planted = {"project": {**project["project"], "optional-dependencies": extras}}
    assert unused(planted, modules) == ["lm: kenlm"]
    assert undeclared(project, {*modules, "kenlm"}) == {"kenlm"}
