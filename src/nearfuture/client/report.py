"""What a measurement found, as a table, as lines of text and as JSON."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.table import Table

from nearfuture.client.distribution import Distribution
from nearfuture.client.measurement import FIGURES, Measurement, Played


def table(found: Measurement, *, title: str) -> Table:
    """The percentiles of every time; a dash where a protocol or a recording does not tell it."""
    shown = Table(title=title)
    shown.add_column("ms")
    for column in ("p50", "p90", "p99", "most", "values"):
        shown.add_column(column, justify="right")
    for name, values in found.figures().items():
        what = f"{name}: [dim]{FIGURES[name]}[/]"
        if values is None:
            shown.add_row(what, *["–"] * 5)
        else:
            times = (values.p50, values.p90, values.p99, values.most)
            shown.add_row(what, *(f"{ms:.0f}" for ms in times), str(values.count))
    return shown


def notes(found: Measurement) -> list[str]:
    """What the table cannot say: words, revisions, failures, and whether it can be trusted."""
    complete, failed = found.complete, sum(found.failures.values())
    seconds = sum(one.recording.duration_s for one in complete)
    connections = len({one.connection for one in found.played})
    lines = [
        f"recordings: {len(complete)} complete, {failed} failed; {seconds:.1f} s of audio, over "
        f"{connections} {'connection' if connections == 1 else 'connections'}"
    ]
    lines += [f"failed {count} ×: {reason}" for reason, count in found.failures.most_common()]
    if complete:
        lines += [*_words(found), *_speech(found), *_pace(found)]
    return lines


def _words(found: Measurement) -> list[str]:
    revised = sum(one.shown.revised for one in found.complete)
    broken = sum(one.shown.broken for one in found.complete)
    words = sum(len(one.shown.words) for one in found.complete)
    lines = []
    if (count := found.words) is None:
        lines.append("words: no reference text, so none can be called lost or repeated")
    else:
        errors = count.errors
        lines.append(
            f"words: {errors.reference} said, {errors.deletions} lost, "
            f"{errors.substitutions} changed, {errors.insertions} added "
            f"({count.repeated} of them repeated): WER {100 * errors.rate:.1f} %"
        )
    each = f" ({revised / words:.2f} a word)" if words else ""
    lines.append(
        f"revisions: {revised} shown words taken back{each}, {broken} of them committed ones"
    )
    return lines


def _speech(found: Measurement) -> list[str]:
    named = {"words": "the words' own times", "energy": "energy", "none": "nothing (no speech)"}
    by = [f"{named[how]} ({count})" for how, count in found.speech_by.most_common()]
    lines = [f"where speech begins and ends is known by: {', '.join(by)}"] if by else []
    if by and not found.speech_by["words"]:
        lines.append("when each word ends is not known: nearfuture align tells, for --words")
    return lines


def _pace(found: Measurement) -> list[str]:
    late = found.late_ms()
    if late is None:
        return []
    lines = [
        f"this client sent {late.count} chunks of {found.chunk_ms:g} ms, p99 {late.p99:.1f} ms and "
        f"at most {late.most:.1f} ms late"
    ]
    if not found.kept_pace:
        lines.append(
            "THIS CLIENT DID NOT KEEP PACE, and the delays above may be its own: use fewer "
            "connections, longer chunks, or a machine with nothing else to do"
        )
    # Of a server that hardly ever waits nothing is said, and a client that is starved cannot tell.
    elif (held_s := found.held_s()) > 0.01 * sum(
        one.recording.duration_s for one in found.complete
    ):
        lines.append(
            f"audio was taken {held_s:.1f} s late, all together: the server does not keep up"
        )
    return lines


def as_json(found: Measurement, about: Mapping[str, Any]) -> dict[str, Any]:
    """Everything in one object of plain values.

    Args:
        found: what was measured.
        about: how: address, protocol, options.
    """
    count = found.words
    return {
        **about,
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "chunk_ms": found.chunk_ms,
        "complete": len(found.complete),
        "failures": dict(found.failures),
        "ms": {name: _rounded(values) for name, values in found.figures().items()},
        "words": None
        if count is None
        else {
            "said": count.errors.reference,
            "lost": count.errors.deletions,
            "changed": count.errors.substitutions,
            "added": count.errors.insertions,
            "repeated": count.repeated,
            "error_rate": _finite(count.errors.rate),
        },
        "revised": sum(one.shown.revised for one in found.complete),
        "committed_revised": sum(one.shown.broken for one in found.complete),
        "speech_by": dict(found.speech_by),
        "client": {
            "kept_pace": found.kept_pace,
            "late_ms": _rounded(found.late_ms()),
            "held_s": round(found.held_s(), 3),
        },
        "recordings": [_recording(one) for one in found.played],
    }


def _recording(one: Played) -> dict[str, Any]:
    speech = one.recording.speech
    return {
        "name": one.recording.name,
        "connection": one.connection,
        "began_s": round(one.began_s, 3),
        "duration_s": round(one.recording.duration_s, 3),
        "lasted_s": round(one.lasted_s, 3),
        "failure": one.failure or None,
        "speech": None if speech is None else asdict(speech),
        "said": one.recording.text,
        "shown": one.shown.text,
        "revised": one.shown.revised,
        "ms": {name: _rounded(Distribution.of(values)) for name, values in one.figures().items()},
    }


def _rounded(values: Distribution | None) -> dict[str, float] | None:
    if values is None:
        return None
    return {name: round(value, 2) for name, value in asdict(values).items()}


def _finite(rate: float) -> float | None:
    return rate if rate != float("inf") else None
