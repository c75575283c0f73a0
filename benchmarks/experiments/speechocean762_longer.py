"""(b) again: does the streaming model come closer to its twin if it learns for twice as long?

    python benchmarks/experiments/speechocean762_longer.py [--write]

The training on real recordings alone of `speechocean762.py`, but twice as many passes for the
streaming model, which has a twin of its own.
"""

import argparse
import dataclasses
from pathlib import Path

from _experiment import (
    evaluated,
    markdown,
    name_of,
    provenance,
    trained,
    write_page,
)
from _report import emit
from rich.table import Table
from speechocean762 import EPOCHS, request, test_items


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs/experiments/speechocean762"))
    parser.add_argument("--write", action="store_true", help="put the figures into the page")
    options = parser.parse_args()

    folder = options.runs / "longer"
    as_there = dataclasses.replace(request("real", options.runs), folder=folder)
    trained(dataclasses.replace(as_there, models=("bidirectional",)))
    trained(dataclasses.replace(as_there, models=("streaming",), epochs=2 * EPOCHS))

    summary = evaluated(folder, test_items()).summary("speaker")
    table = Table("model", "passes", "CER %", "to the twin, %")
    results = []
    for head in (*summary.heads, summary.twin):
        assert head is not None
        passes = EPOCHS if head.frames is None else 2 * EPOCHS
        cer, relative = head.cer, head.cer_to_twin
        table.add_row(
            name_of(head),
            f"{passes}",
            f"{100 * cer.value:.2f} ({100 * cer.low:.1f}–{100 * cer.high:.1f})",
            ""
            if relative is None
            else f"{relative.value:+.1f} ({relative.low:+.1f} to {relative.high:+.1f})",
        )
        results.append(
            {
                "model": name_of(head),
                "passes": passes,
                "cer": 100 * cer.value,
                "to twin": None if relative is None else dataclasses.astuple(relative),
            }
        )
    table.caption = (
        f"real recordings alone; {summary.utterances} utterances, {summary.speakers} speakers; "
        f"95 % intervals by speaker"
    )
    emit(table, results)
    if options.write:
        write_page(
            "speechocean762",
            {
                "longer": f"{markdown(table)}\n\n{table.caption}.",
                "provenance of longer": provenance({"longer": folder}),
            },
        )


if __name__ == "__main__":
    main()
