"""Leaks planted at random places of random stacks, and what the audit says of each.

Every stack is audited with its leak and without. A finding counts as named where its kind, the
submodule and the operation are those of the leak.

    python benchmarks/wrong_compositions.py [--first 0] [--count 200]
"""

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

import torch
from _report import emit
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.audit.wrong_compositions import KINDS, wrong_composition


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    seconds: dict[str, float] = defaultdict(float)
    wrong_ones = []
    for seed in range(arguments.first, arguments.first + arguments.count):
        wrong = wrong_composition(seed)
        began = time.perf_counter()
        faults = wrong.faults(wrong.report())
        seconds[wrong.leak.kind] += time.perf_counter() - began
        alarms = wrong.false_alarms(wrong.report(wrong=False))
        count = counts[wrong.leak.kind]
        count["planted"] += 1
        count["found"] += "kind" not in faults
        count["named"] += not {"kind", "culprit"} & faults.keys()
        count["exact"] += "lookahead" not in faults
        count["held"] += not alarms
        if faults or alarms:
            wrong_ones.append({"seed": seed, "leak": wrong.leak.name, **faults, **alarms})
            print(wrong_ones[-1], file=sys.stderr)
    columns = ("planted", "found", "named", "exact", "held")
    total = {name: sum(count[name] for count in counts.values()) for name in columns}
    table = Table(
        "leak",
        "planted",
        "found",
        "named",
        "lookahead exact",
        "holds without",
        "s each",
        title="leaks planted at random places of random stacks; one core",
    )
    for kind in KINDS:
        count = counts[kind]
        each = f"{seconds[kind] / max(1, count['planted']):.2f}"
        table.add_row(kind, *(str(count[name]) for name in columns), each)
    table.add_section()
    each = f"{sum(seconds.values()) / max(1, total['planted']):.2f}"
    table.add_row("all", *(str(total[name]) for name in columns), each)
    emit(table, {"kinds": counts, "total": total, "wrong": wrong_ones})
    good = total["named"] >= 0.98 * total["planted"] and total["exact"] == total["planted"]
    sys.exit(0 if good and total["held"] == total["planted"] else 1)


if __name__ == "__main__":
    main()
