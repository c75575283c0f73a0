"""The audit's verdict on models that people use, beside the one their structure implies.

Each is audited as it is and, where it can be exported, as an ONNX graph.

    python benchmarks/gallery.py
"""

import math
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from _report import emit
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch

from nearfuture.audit import Culprit, Report
from nearfuture.audit.render import to_json
from tests.audit.gallery import GALLERY, Case


def number(frames: float | None) -> str:
    if frames is None:
        return "–"
    return "∞" if math.isinf(frames) else f"{frames:g}"


def place(culprit: Culprit) -> str:
    return f"{culprit.where or culprit.what} ({culprit.operation})".lstrip()


def findings(report: Report) -> str:
    lines = []
    for finding in report.findings:
        line = f"{finding.kind}: {place(finding.culprit)}" if finding.culprit else finding.kind
        lines.append(line if finding.severity == "broken" else f"({line})")
    return "\n".join(lines)


def verdict(faults: list[str]) -> str:
    return "; ".join(faults) or "right"


def exported(case: Case, folder: Path) -> list[str] | None:
    if case.node is None:
        return None
    return case.faults(case.graph_report(folder), graph=True)


def main() -> None:
    torch.set_num_threads(1)
    title = "lookahead and lookback in input frames, findings and where they enter; one core"
    table = Table(title=title)
    for name in ("model", "ahead", "back", "findings", "verdict", "as ONNX", "seconds"):
        table.add_column(name, overflow="fold")
    results, all_right = [], True
    for case in GALLERY:
        case.build()  # some import a library first
        with TemporaryDirectory() as folder:
            began = time.perf_counter()
            report = case.report(Path(folder))
            seconds = time.perf_counter() - began
            faults, graph_faults = case.faults(report), exported(case, Path(folder))
        all_right &= not faults and not graph_faults
        table.add_row(
            case.name,
            number(report.lookahead),
            "–" if case.lookback is None else number(report.lookback),
            findings(report),
            verdict(faults),
            "–" if graph_faults is None else verdict(graph_faults),
            f"{seconds:.2f}",
        )
        results.append(
            {
                "model": case.name,
                **{name: to_json(report)[name] for name in ("lookahead", "lookback")},
                "findings": findings(report).splitlines(),
                "faults": faults,
                "faults_as_onnx": graph_faults,
                "seconds": round(seconds, 3),
            }
        )
    emit(table, results)
    sys.exit(0 if all_right else 1)


if __name__ == "__main__":
    main()
