"""What `check` reports about a source: statistics and issues."""

from __future__ import annotations

import json
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nearfuture.data.cut import Cut, Skipped


@dataclass(frozen=True, kw_only=True)
class CorpusIssue:
    """All problems or remarks of one kind about a source of recordings.

    Attributes:
        kind: of the issue, in a few words; the code of `Skipped` for what trainings skip.
        wrong: whether it has to be corrected; otherwise it is worth knowing.
        examples: all of them, as pairs of a name (mostly a path) and a reason.
    """

    kind: str
    wrong: bool
    examples: tuple[tuple[str, str], ...]

    def lines(self, most: int | None) -> list[str]:
        """A title, at most so many examples (None: all), and how many more there are."""
        lines = [f"{'wrong' if self.wrong else 'worth knowing'}: {self.kind}: {len(self.examples)}"]
        lines += [f"  {name}: {reason}" for name, reason in self.examples[:most]]
        if (shown := len(lines) - 1) < len(self.examples):
            more = len(self.examples) - shown
            lines.append(f"  … and {more} more: data check --all names them")
        return lines


@dataclass(frozen=True, kw_only=True)
class CorpusReport:
    """The statistics and issues of a source of recordings.

    Attributes:
        path: of the source.
        rows: all that it lists, usable or not.
        cuts: those whose audio can be read, with their durations and rates.
        rejected: those of the cuts that trainings skip, by the rules of the `CutFilter`.
        channels: channels of the file → number of cuts.
        issues: what is wrong first, then what is worth knowing.
    """

    path: Path
    rows: int
    cuts: tuple[Cut, ...]
    rejected: tuple[Skipped, ...]
    channels: Mapping[int, int]
    issues: tuple[CorpusIssue, ...]

    @property
    def seconds(self) -> float:
        """The audio of all cuts, in seconds."""
        return sum(self._durations_s)

    @property
    def shortest_s(self) -> float:
        """The shortest cut in seconds; 0 where there is none."""
        return min(self._durations_s, default=0.0)

    @property
    def median_s(self) -> float:
        """The median of the durations in seconds; 0 where there is no cut."""
        return statistics.median(self._durations_s or [0.0])

    @property
    def longest_s(self) -> float:
        """The longest cut in seconds; 0 where there is none."""
        return max(self._durations_s, default=0.0)

    @property
    def _durations_s(self) -> list[float]:
        return [cut.duration_s or 0.0 for cut in self.cuts]

    @property
    def rates(self) -> dict[int, int]:
        """Samples per second → number of cuts."""
        return dict(sorted(Counter(cut.rate or 0 for cut in self.cuts).items()))

    @property
    def splits(self) -> dict[str, tuple[int, float]]:
        """Split → number of cuts and their seconds."""
        durations: dict[str, list[float]] = defaultdict(list)
        for cut in self.cuts:
            durations[cut.split].append(cut.duration_s or 0.0)
        return {name: (len(each), sum(each)) for name, each in sorted(durations.items())}

    @property
    def speakers(self) -> int:
        """The number of speakers that are named."""
        return len({cut.speaker for cut in self.cuts} - {""})

    @property
    def symbols(self) -> str:
        """Every character of the texts."""
        return "".join(sorted({character for cut in self.cuts for character in cut.text}))

    @property
    def ok(self) -> bool:
        """Whether the source has no problem."""
        return not any(issue.wrong for issue in self.issues)

    def figures(self) -> list[tuple[str, str]]:
        """The statistics of the source, as pairs of a name and a value in words."""
        of_all = f" of {self.rows}" if self.rows > len(self.cuts) else ""
        rows = [("recordings", f"{len(self.cuts)}{of_all}")]
        if not self.cuts:
            return rows
        splits = (
            f"{name or 'no split'} {count} ({duration(seconds)})"
            for name, (count, seconds) in self.splits.items()
        )
        return [
            *rows,
            ("audio", duration(self.seconds)),
            (
                "each",
                f"{self.shortest_s:.2f} to {self.longest_s:.2f} s, half of them up to "
                f"{self.median_s:.2f} s",
            ),
            ("rates", _histogram({f"{rate} Hz": count for rate, count in self.rates.items()})),
            ("channels", _histogram({str(n): count for n, count in self.channels.items()})),
            ("speakers", str(self.speakers or "not stated")),
            ("splits", ", ".join(splits) if any(self.splits) else "not stated"),
            ("characters", f"{len(self.symbols)}: {_shortened(self.symbols)!r}"),
        ]

    def short(self, text: str) -> str:
        """A text without the folder of the source before its files."""
        folder = self.path if self.path.is_dir() else self.path.parent
        return text.replace(f"{folder}{os.sep}", "")

    def lines(self, *, most: int | None = 3) -> list[str]:
        """The report to read, with at most so many examples of an issue; None: all of them."""
        lines = [str(self.path)]
        lines += [f"  {name:<11} {value}" for name, value in self.figures()]
        lines += [self.short(line) for issue in self.issues for line in issue.lines(most)]
        return [*lines, "nothing is wrong"] if self.ok else lines

    def to_json(self) -> str:
        """Return the statistics and all issues as JSON."""
        return json.dumps(
            {
                "path": str(self.path),
                "ok": self.ok,
                "rows": self.rows,
                "recordings": len(self.cuts),
                "seconds": round(self.seconds, 3),
                "shortest_s": round(self.shortest_s, 3),
                "median_s": round(self.median_s, 3),
                "longest_s": round(self.longest_s, 3),
                "rates": self.rates,
                "channels": self.channels,
                "splits": {
                    name: {"recordings": count, "seconds": round(seconds, 3)}
                    for name, (count, seconds) in self.splits.items()
                },
                "speakers": self.speakers,
                "symbols": self.symbols,
                "issues": [
                    {
                        "kind": issue.kind,
                        "wrong": issue.wrong,
                        "count": len(issue.examples),
                        "examples": [
                            {"name": name, "reason": reason} for name, reason in issue.examples
                        ],
                    }
                    for issue in self.issues
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
    return ", ".join(f"{name} ({count})" for name, count in counts.items())


def _shortened(symbols: str, most: int = 60) -> str:
    return symbols if len(symbols) <= most else symbols[:most] + "…"
