"""What an installation weighs: the environment's megabytes with each extra, and its packages.

Each extra goes into an environment of its own, with compiled bytecode, as pip leaves it. Torch
comes from where pip finds it: name the CPU build (`--torch`), or pip may take that for CUDA.

    python benchmarks/installation.py
"""

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from _report import emit
from rich.markup import escape
from rich.table import Table

PROJECT = Path(__file__).parents[1]
EXTRAS = ("", "phrases", "media", "laws", "train")
WITH_TORCH = ("laws", "train")


def megabytes(folder: Path) -> float:
    """Return what the files of a folder hold, links not followed."""
    return sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir()) / 1e6


def installed(folder: Path, extra: str, torch: str) -> dict[str, float]:
    """Install the project with an extra, and weigh it without what a fresh environment has."""
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    site = next((folder / "lib").glob("python*")) / "site-packages"
    empty = megabytes(folder)
    if extra in WITH_TORCH:
        subprocess.run([*pip, torch], check=True)
    subprocess.run([*pip, f"{PROJECT}[{extra}]" if extra else str(PROJECT)], check=True)
    of_torch = megabytes(site / "torch") if (site / "torch").is_dir() else 0.0
    packages = len(list(site.glob("*.dist-info")))
    return {"MB": megabytes(folder) - empty, "torch_MB": of_torch, "packages": packages}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", default="torch==2.13.0", help="what pip installs as torch")
    torch = parser.parse_args().torch
    table = Table("install", "MB", "of it torch", "more than the base", "packages")
    results: dict[str, dict[str, float]] = {}
    for extra in EXTRAS:
        with tempfile.TemporaryDirectory() as folder:
            weighed = installed(Path(folder) / "environment", extra, torch)
        results[extra or "base"] = weighed
        more = weighed["MB"] - results["base"]["MB"]
        table.add_row(
            escape(f"'.[{extra}]'") if extra else ".",
            f"{weighed['MB']:.0f}",
            f"{weighed['torch_MB']:.0f}",
            f"{more:.0f}",
            f"{weighed['packages']:.0f}",
        )
        print(f"{extra or 'base'}: {weighed['MB']:.0f} MB", file=sys.stderr)
    emit(table, results)


if __name__ == "__main__":
    main()
