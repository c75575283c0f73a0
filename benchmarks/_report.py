"""What every benchmark says about itself: the command, the commit and the machine."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the recipes are
CORPORA = Path(__file__).parents[2] / "shared" / "data"  # beside the project, where it is
if CORPORA.is_dir():
    os.environ.setdefault("NEARFUTURE_CORPORA", str(CORPORA))


def about() -> dict[str, Any]:
    root = Path(__file__).parent.parent
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=root, capture_output=True, text=True
    ).stdout.strip()
    return {
        "command": " ".join(["python", *sys.argv]),
        "commit": commit or "unknown",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def emit(table: Table, results: Any) -> None:
    """Print a table for people, then one line of JSON."""
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    print(json.dumps({**about(), "results": results}, ensure_ascii=False))
