"""What `check` found: figures, and everything that is wrong, by name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nearfuture.data.item import Item


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One kind of thing that was found.

    Attributes:
        kind: what it is, in a few words.
        wrong: whether it has to be mended; otherwise it is worth knowing.
        examples: all of them, as pairs of a name (mostly a path) and a reason.
    """

    kind: str
    wrong: bool
    examples: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a source of recordings holds.

    Attributes:
        path: of the source.
        rows: all that it lists, usable or not.
        items: those whose audio is there, with their durations and rates.
        seconds: of all items.
        shortest_s: the shortest item in seconds; 0 where there is none.
        median_s: the median.
        longest_s: the longest.
        rates: samples per second → items.
        channels: channels of the file → items.
        splits: split → items and seconds.
        speakers: how many are named.
        symbols: every character of the texts.
        findings: what is wrong first, then what is worth knowing.
    """

    path: Path
    rows: int
    items: tuple[Item, ...]
    seconds: float
    shortest_s: float
    median_s: float
    longest_s: float
    rates: Mapping[int, int]
    channels: Mapping[int, int]
    splits: Mapping[str, tuple[int, float]]
    speakers: int
    symbols: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not any(finding.wrong for finding in self.findings)

    def figures(self) -> list[tuple[str, str]]:
        """What there is, as pairs of a name and a value in words."""
        left_out = self.rows - len(self.items)
        rows = [
            ("recordings", f"{len(self.items)}{f' of {self.rows}' if left_out else ''}"),
        ]
        if not self.items:  # and nothing to say of them
            return rows
        rows += [
            ("audio", duration(self.seconds)),
            (
                "each",
                f"{self.shortest_s:.2f} to {self.longest_s:.2f} s, half of them up to "
                f"{self.median_s:.2f} s",
            ),
            ("rates", _histogram({f"{rate} Hz": n for rate, n in self.rates.items()})),
            ("channels", _histogram({str(count): n for count, n in self.channels.items()})),
            ("speakers", str(self.speakers) if self.speakers else "not told"),
        ]
        if any(self.splits):
            each = (
                f"{name or 'no split'} {count} ({duration(seconds)})"
                for name, (count, seconds) in self.splits.items()
            )
            rows.append(("splits", ", ".join(each)))
        else:
            rows.append(("splits", "not told"))
        rows.append(("characters", f"{len(self.symbols)}: {_shown(self.symbols)}"))
        return rows

    def short(self, words: str) -> str:
        """Words without the folder of the source before its files."""
        folder = self.path if self.path.is_dir() else self.path.parent
        return words.replace(f"{folder}{os.sep}", "")

    def text(self, *, most: int | None = 3) -> str:
        """All of it to read, with at most so many examples of a kind; None: all of them."""
        lines = [str(self.path)]
        lines += [f"  {name:<11} {value}" for name, value in self.figures()]
        for finding in self.findings:
            mark = "wrong" if finding.wrong else "worth knowing"
            lines.append(f"{mark}: {finding.kind}: {len(finding.examples)}")
            shown = finding.examples if most is None else finding.examples[:most]
            lines += [self.short(f"  {name}: {reason}") for name, reason in shown]
            if more := len(finding.examples) - len(shown):
                lines.append(f"  … and {more} more: data check --all names them")
        if self.ok:
            lines.append("nothing is wrong")
        return "\n".join(lines)

    def to_json(self) -> str:
        """The figures and all findings as JSON."""
        return json.dumps(
            {
                "path": str(self.path),
                "ok": self.ok,
                "rows": self.rows,
                "recordings": len(self.items),
                "seconds": round(self.seconds, 3),
                "shortest_s": round(self.shortest_s, 3),
                "median_s": round(self.median_s, 3),
                "longest_s": round(self.longest_s, 3),
                "rates": {str(rate): count for rate, count in self.rates.items()},
                "channels": {str(number): count for number, count in self.channels.items()},
                "splits": {
                    name: {"recordings": count, "seconds": round(seconds, 3)}
                    for name, (count, seconds) in self.splits.items()
                },
                "speakers": self.speakers,
                "symbols": self.symbols,
                "findings": [
                    {
                        "kind": finding.kind,
                        "wrong": finding.wrong,
                        "count": len(finding.examples),
                        "examples": [
                            {"name": name, "reason": reason} for name, reason in finding.examples
                        ],
                    }
                    for finding in self.findings
                ],
            },
            ensure_ascii=False,
        )


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(3.21), duration(90), duration(16200)
    ('3.2 s', '1.5 min', '4.50 h')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.2f} h"


def _histogram(counts: Mapping[str, int]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{name} ({count})" for name, count in counts.items()) or "none"


def _shown(symbols: str, most: int = 60) -> str:
    shown = symbols if len(symbols) <= most else symbols[:most] + "…"
    return repr(shown)
