"""Who may import whom: the table of the design, kept equal to the imports; what `import` loads."""

import subprocess
import sys
from pathlib import Path

import pytest

import nearfuture
from tests.structure import PACKAGE, cycles, graph, imported, parsed, shared_class_names

SOURCE = Path(nearfuture.__file__).parent

# Folder → folders that it imports, besides itself and `error`; None: anything.
TABLE: dict[str, set[str] | None] = {
    "text": set(),
    "audio": set(),
    "budget": {"text"},
    "decoding": {"text"},
    "phrases": {"decoding", "text"},
    "runtime": {"audio", "budget", "decoding", "text"},
    "serving": {"audio", "budget", "decoding", "runtime", "text"},
    "client": {"audio", "decoding", "text"},
    "layers": {"budget"},
    "laws": {"budget", "layers"},
    "audit": {"runtime"},
    "testing": {"audit"},
    "model": {"budget", "layers", "text"},
    "data": {"audio", "budget", "decoding", "text"},
    "export": {"audio", "budget", "decoding", "layers", "model", "runtime", "text"},
    "training": {"budget", "data", "decoding", "export", "layers", "model", "runtime", "text"},
    "evaluation": {"audio", "budget", "data", "decoding", "runtime", "text"},
    "lab": None,
    "cli": None,
}
# What the base install lacks, and where it may be imported: nowhere, or only inside functions.
LEARNING_ONLY = {"torch", "lhotse", "onnx", "onnxscript", "safetensors", "scipy", "hypothesis"}
NEVER = {
    "budget",
    "text",
    "audio",
    "decoding",
    "phrases",
    "runtime",
    "serving",
    "client",
    "evaluation",
}
INSIDE_FUNCTIONS = {"audit", "cli", "lab"}
PURE = {"budget", "text"}


def home(name: str) -> str:
    """The folder that a dotted name of this package lives in; "" for the package itself."""
    parts = name.split(".")[1:]
    exported = nearfuture._HOMES.get(parts[0]) if parts else None
    if exported:
        return exported.split(".")[1]
    return parts[0] if parts and parts[0] != "__version__" else ""


def violations(source: Path) -> list[str]:
    """Every import in a tree of sources that the table does not allow."""
    wrong = []
    for file, tree in parsed(source).items():
        folder = file.split("/")[0]
        if file in ("__init__.py", "__main__.py"):
            continue  # lazy: test_importing_loads_little judges it
        if folder != "error.py" and folder not in TABLE:
            wrong.append(f"{file}: {folder} is not in the table")
            continue
        allowed = set() if folder == "error.py" else TABLE[folder]
        for name, inside in imported(tree, file):
            top = name.split(".")[0]
            if top == PACKAGE:
                target = home(name)
                plain = target == "" and not name.endswith("__version__")
                known = {folder, "error"} | (allowed or set())
                if allowed is not None and (plain or (target and target not in known)):
                    wrong.append(f"{file}: {folder} may not import {name}")
            elif top in LEARNING_ONLY and (
                folder in NEVER or (folder in INSIDE_FUNCTIONS and not inside)
            ):
                wrong.append(f"{file}: {folder} may not import {name} here")
            elif folder in PURE | {"error.py"} and top not in sys.stdlib_module_names:
                wrong.append(f"{file}: {folder} is pure Python, without {name}")
    return wrong


def unused(source: Path) -> list[str]:
    """Every row and arrow of the table that no import needs."""
    imports = {folder: set[str]() for folder in TABLE if (source / folder).is_dir()}
    for file, targets in graph(source).items():
        imports.setdefault(file.split("/")[0], set()).update(f.split("/")[0] for f in targets)
    wrong = []
    for folder, allowed in TABLE.items():
        if folder not in imports:
            wrong.append(f"{folder} does not exist")
            continue
        wrong += [
            f"{folder} does not import {each}" for each in (allowed or set()) - imports[folder]
        ]
    return sorted(wrong)


def test_the_table_is_kept() -> None:
    assert violations(SOURCE) == []


def test_every_row_and_arrow_of_the_table_is_used() -> None:
    assert unused(SOURCE) == []


def test_a_row_without_a_folder_and_an_arrow_without_an_import_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("layers", "laws"):
        (tmp_path / folder).mkdir()
    (tmp_path / "laws" / "law.py").write_text("from nearfuture.layers import gru\n")
    (tmp_path / "layers" / "gru.py").touch()
    monkeypatch.setitem(globals(), "TABLE", {"layers": {"budget"}, "laws": {"layers"}, "lab": None})
    assert unused(tmp_path) == ["lab does not exist", "layers does not import budget"]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("budget/plan.py", "from nearfuture.layers import Serial"),
        ("budget/plan.py", "import nearfuture.layers.container"),
        ("budget/plan.py", "import nearfuture"),
        ("budget/plan.py", "from nearfuture import load"),
        ("budget/plan.py", "from nearfuture import layers"),
        ("budget/plan.py", "from .. import runtime"),
        ("budget/plan.py", "from ..runtime.bundle import Bundle"),
        ("budget/plan.py", "import numpy"),
        ("budget/deep/plan.py", "from ...layers import Serial"),
        ("layers/gru.py", "def f():\n    from nearfuture.runtime import load"),
        ("layers/gru.py", "if TYPE_CHECKING:\n    from nearfuture.model import Recognizer"),
        ("runtime/engine.py", "def f():\n    import torch"),
        ("cli/train.py", "import torch"),
        ("cli/train.py", "from lhotse import CutSet"),
        ("decoding/beam.py", "from nearfuture.audio import decode"),
        ("helpers/odd.py", "x = 1"),
        ("odd.py", "x = 1"),
        ("error.py", "from nearfuture.budget import Cost"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{line}\n", encoding="utf-8")
    assert len(violations(tmp_path)) == 1


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("budget/plan.py", "from nearfuture.error import NearfutureError"),
        ("budget/plan.py", "from nearfuture import NearfutureError, ReceptiveField, __version__"),
        ("budget/plan.py", "from .cost import Cost"),
        ("runtime/engine.py", "import numpy\nfrom nearfuture.decoding import greedy"),
        ("training/loop.py", "import torch\nfrom nearfuture.model import Recognizer"),
        ("cli/train.py", "def train():\n    import torch\n    from nearfuture import training"),
    ],
)
def test_what_the_table_allows_passes(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(f"{line}\n", encoding="utf-8")
    assert violations(tmp_path) == []


@pytest.mark.parametrize("statement", ["import nearfuture", "import nearfuture.cli"])
def test_importing_loads_little(statement: str) -> None:
    heavy = ["torch", "lhotse", "onnxruntime", "onnx", "scipy", "numpy", "starlette"]
    script = f"{statement}\nimport sys\nprint([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_the_lab_answers_before_it_loads_what_its_figures_need() -> None:
    later = ["torch", "onnxruntime", "soundfile", "soxr", "nearfuture.audit", "nearfuture.runtime"]
    script = f"""import nearfuture.lab.server, sys
print([name for name in {later} if name in sys.modules])"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "module", ["runtime", "serving", "client", "evaluation", "budget", "text", "audio", "decoding"]
)
def test_running_a_model_loads_no_torch(module: str) -> None:
    script = f"import nearfuture.{module}, sys\nprint('torch' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"


def test_no_files_import_each_other_in_a_circle() -> None:
    assert cycles(SOURCE) == []


@pytest.mark.parametrize(
    "line",
    [
        "from nearfuture.budget.cost import Cost",
        "from nearfuture.budget import cost",
        "from .cost import Cost",
        "if TYPE_CHECKING:\n    from nearfuture.budget.cost import Cost",
        "def f():\n    import nearfuture.budget.cost",
    ],
)
def test_a_planted_circle_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "budget").mkdir()
    (tmp_path / "budget" / "__init__.py").touch()
    (tmp_path / "budget" / "cost.py").write_text("from nearfuture.budget.field import Field\n")
    (tmp_path / "budget" / "field.py").write_text("from nearfuture.budget.plan import Plan\n")
    (tmp_path / "budget" / "plan.py").write_text(f"{line}\n")
    assert cycles(tmp_path) == [["budget/cost.py", "budget/field.py", "budget/plan.py"]]


def test_a_file_that_imports_through_the_face_of_its_own_folder_is_in_a_circle(
    tmp_path: Path,
) -> None:
    (tmp_path / "budget").mkdir()
    (tmp_path / "budget" / "__init__.py").write_text("from nearfuture.budget.cost import Cost\n")
    (tmp_path / "budget" / "cost.py").write_text("from nearfuture.budget import Field\n")
    assert cycles(tmp_path) == [["budget/__init__.py", "budget/cost.py"]]


def test_one_noun_is_one_class() -> None:
    assert shared_class_names(SOURCE) == {}


def test_a_class_name_that_two_files_define_is_found(tmp_path: Path) -> None:
    for folder in ("audio", "data"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "source.py").write_text("class Source: ...\nclass _Run: ...\n")
    assert shared_class_names(tmp_path) == {"Source": ["audio/source.py", "data/source.py"]}
