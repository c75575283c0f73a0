"""Who may import whom: the table of the design, read from the source; and what `import` loads."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nearfuture

PACKAGE = "nearfuture"
SOURCE = Path(nearfuture.__file__).parent

RUNTIME_AND_BELOW = {"runtime", "audio", "budget", "decoding", "text"}
LEARNING = {"data", "training", "export", "model", "layers"}
# Folder → folders that it may import, besides itself and `error`; None: anything.
TABLE: dict[str, set[str] | None] = {
    "budget": {"text"},
    "text": set(),
    "audio": set(),
    "decoding": {"text"},
    "runtime": {"audio", "budget", "decoding", "text"},
    "serving": RUNTIME_AND_BELOW,
    "client": {"audio", "decoding", "text"},
    "layers": {"budget"},
    "laws": {"layers", "budget"},
    "audit": {"budget", "runtime"},
    "model": {"layers", "text", "budget"},
    "evaluation": {"data"} | RUNTIME_AND_BELOW,
    "data": LEARNING | RUNTIME_AND_BELOW,
    "training": LEARNING | RUNTIME_AND_BELOW,
    "export": LEARNING | RUNTIME_AND_BELOW,
    "lab": None,
    "cli": None,
}
# What the base install lacks, and where it may be imported: nowhere, or only inside functions.
LEARNING_ONLY = {"torch", "lhotse", "onnx", "onnxscript", "safetensors", "scipy", "hypothesis"}
NEVER = {"budget", "text", "audio", "decoding", "runtime", "serving", "client", "evaluation"}
INSIDE_FUNCTIONS = {"audit", "cli", "lab"}
PURE = {"budget", "text"}


def imported(tree: ast.AST, package: list[str]) -> Iterator[tuple[str, bool]]:
    """Each imported dotted name, and whether it is imported inside a function."""
    lazy = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in lazy
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = [*base, *([node.module] if node.module else [])]
            for alias in node.names:
                yield ".".join([*module, alias.name]), id(node) in lazy


def home(name: str) -> str:
    """The folder that a dotted name of this package lives in; "" for the package itself."""
    parts = name.split(".")[1:]
    exported = nearfuture._HOMES.get(parts[0]) if parts else None
    if exported:
        return exported.split(".")[1]
    return parts[0] if parts and parts[0] != "__version__" else ""


def violations(source: Path) -> list[str]:
    """Every import in a tree of sources that the table does not allow."""
    found = []
    for path in sorted(source.rglob("*.py")):
        relative = path.relative_to(source)
        folder = relative.parts[0]
        if str(relative) in ("__init__.py", "__main__.py"):
            continue  # lazy; test_importing_loads_little watches it
        if folder != "error.py" and folder not in TABLE:
            found.append(f"{relative}: {folder} is not in the table")
            continue
        allowed = set() if folder == "error.py" else TABLE[folder]
        package = [PACKAGE, *relative.parent.parts]
        for name, inside in imported(ast.parse(path.read_text(encoding="utf-8")), package):
            top = name.split(".")[0]
            if top == PACKAGE:
                target = home(name)
                plain = target == "" and not name.endswith("__version__")
                known = {folder, "error"} | (allowed or set())
                if allowed is not None and (plain or (target and target not in known)):
                    found.append(f"{relative}: {folder} may not import {name}")
            elif top in LEARNING_ONLY and (
                folder in NEVER or (folder in INSIDE_FUNCTIONS and not inside)
            ):
                found.append(f"{relative}: {folder} may not import {name} here")
            elif folder in PURE | {"error.py"} and top not in sys.stdlib_module_names:
                found.append(f"{relative}: {folder} is pure Python, without {name}")
    return found


def test_the_table_is_kept() -> None:
    assert violations(SOURCE) == []


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


@pytest.mark.parametrize(
    "module", ["runtime", "serving", "client", "evaluation", "budget", "text", "audio", "decoding"]
)
def test_running_a_model_loads_no_torch(module: str) -> None:
    script = f"import nearfuture.{module}, sys\nprint('torch' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"
