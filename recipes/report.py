"""What a measurement says about itself, and how it comes into a page: tables, intervals, places."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from nearfuture import NearfutureError


def about() -> dict[str, Any]:
    """Return the command, the commit and the machine that a measurement is of."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    ).stdout.strip()
    return {
        "command": " ".join(["python", *sys.orig_argv[1:]]),
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


def mean_over_seeds(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the half width of its 95 % interval by Student's t.

    `x̄ ± t(0.975, n − 1) · s / √n`; the interval of one value is 0 wide, since it is not known.

    >>> mean, half = mean_over_seeds([1.0, 2.0, 3.0])
    >>> mean, round(half, 3)
    (2.0, 2.484)
    """
    if len(values) < 2:
        return float(np.mean(values)), 0.0
    from scipy.stats import t

    half = t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return float(np.mean(values)), float(half)


def markdown(table: Table) -> str:
    """Write a rich table as one of Markdown.

    >>> table = Table("τ", "CER %")
    >>> table.add_row("0", "2.81")
    >>> print(markdown(table))
    | τ | CER % |
    |---|---|
    | 0 | 2.81 |
    """
    columns = [list(column.cells) for column in table.columns]
    lines = ["| " + " | ".join(str(column.header) for column in table.columns) + " |"]
    lines.append("|" + "---|" * len(columns))
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in zip(*columns, strict=True)]
    return "\n".join(lines)


def fill_page(path: Path, parts: Mapping[str, str]) -> None:
    """Put measured parts into a page, each between its markers; the words around them stay.

    Args:
        path: a page with the lines `<!-- name -->` and `<!-- end of name -->` for each part.
        parts: what comes between them, by name.

    Raises:
        NearfutureError: where the page has no place for a part.
    """
    text = path.read_text(encoding="utf-8")
    for part, content in parts.items():
        begin, end = f"<!-- {part} -->", f"<!-- end of {part} -->"
        if begin not in text or end not in text:
            raise NearfutureError(
                f"{path} has no place for {part!r}: it needs {begin} and {end}", parameter="parts"
            )
        head, _, rest = text.partition(begin)
        _, _, tail = rest.partition(end)
        text = f"{head}{begin}\n{content}\n{end}{tail}"
    path.write_text(text, encoding="utf-8")
