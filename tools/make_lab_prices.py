"""Gather what the experiments measured for the lab: `python tools/make_lab_prices.py`.

The pages under `docs/experiments/` are written by the commands that they name. Their tables,
commits and processors are read here and go, as numbers, into a file that the lab carries; a test
compares the file with the pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "experiments"
FILE = ROOT / "src" / "nearfuture" / "assets" / "lab" / "measured" / "price.json"

Row = Mapping[str, str]
TWIN = "bidirectional twin"


def part(page: str, name: str) -> str:
    """Return what a page has between the markers of a part."""
    return page.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- end of {name} -->")[0]


def rows(page: str) -> list[dict[str, str]]:
    r"""Return the rows of the measured table of a page, by the names of its columns.

    >>> rows("<!-- table -->\n| τ | WER |\n|---|---|\n| 0 | 5 |\n<!-- end of table -->")
    [{'τ': '0', 'WER': '5'}]
    """
    lines = [line for line in part(page, "table").splitlines() if line.startswith("|")]
    head, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(head, cells, strict=True)) for cells in body]


def interval(cell: str) -> dict[str, float]:
    """Return a rate in % with its interval, written in one of two ways.

    >>> interval("5.89 ± 3.06")
    {'value': 5.89, 'low': 2.83, 'high': 8.95}
    >>> interval("10.32 (9.63–11.07)")
    {'value': 10.32, 'low': 9.63, 'high': 11.07}
    """
    if "±" in cell:
        value, half = (float(each) for each in cell.split("±"))
        low, high = max(0.0, value - half), value + half
    else:
        value, low, high = (float(each) for each in re.findall(r"\d+\.\d+", cell)[:3])
    return {"value": value, "low": round(low, 3), "high": round(high, 3)}


def curve(page: str, rate: str, name: str, choose: Callable[[Row], bool]) -> dict[str, Any]:
    """Return the points of one model: milliseconds, lookahead, and a rate with its interval."""
    points = []
    for row in rows(page):
        if row["latency"].endswith(" ms") and choose(row):
            frames = re.sub(r"^τ = ", "", row.get("τ", row["model"]))
            ms = float(row["latency"].removesuffix(" ms"))
            points.append({"ms": ms, "frames": int(frames), **interval(row[rate])})
    return {"name": name, "points": points}


def twin(page: str, rate: str, choose: Callable[[Row], bool]) -> dict[str, float]:
    """Return the rate of the model that reads the whole utterance."""
    (row,) = (row for row in rows(page) if row["model"] == TWIN and choose(row))
    return interval(row[rate])


def experiment(
    file: str,
    measure: str,
    rate: str,
    lines: Mapping[str, Callable[[Row], bool]],
    training: str | None = None,
) -> dict[str, Any]:
    """Return an experiment: its curves, its twin, and where the figures are from.

    Of a page with several trainings, that of one.
    """

    def of(row: Row) -> bool:
        return training is None or row["training"] == training

    page = (PAGES / f"{file}.md").read_text(encoding="utf-8")
    trained = re.findall(
        r"^\* (.+): commit (\w+), (.+), one thread", part(page, "provenance"), re.M
    )
    (command,) = re.findall(r"^python .*--write$", page, re.M)
    return {
        "measure": measure,
        "lines": [
            curve(page, rate, name, lambda row, choose=choose: of(row) and choose(row))
            for name, choose in lines.items()
        ],
        "twin": twin(page, rate, of),
        "command": command,
        "trained": [
            {"what": what, "commit": commit, "processor": processor}
            for what, commit, processor in trained
            if training in (None, what)
        ],
        "page": f"docs/experiments/{file}.md",
    }


def one_line(row: Row) -> bool:
    """Every streaming row of a table belongs to the one model."""
    return True


def prices() -> dict[str, dict[str, Any]]:
    """Return every experiment that the page of the price shows."""
    model = {"row-convolution": one_line}
    families = {
        "row-convolution": lambda row: row["model"] == "row convolution",
        "chunked-attention": lambda row: row["model"] == "chunked attention",
    }
    return {
        "known-voices": experiment("digits", "wer", "seen: WER %", model),
        "new-voice": experiment("digits", "wer", "held-out: WER %", model),
        "thirteen-heads": experiment("lookahead-sweep", "wer", "WER %", model),
        "sentences": experiment("speechocean762", "cer", "CER %", model, "with synthetic speech"),
        "families": experiment("families", "wer", "WER %", families),
    }


def main() -> None:
    """Write the file."""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(prices(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"{FILE.relative_to(ROOT)}: {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
