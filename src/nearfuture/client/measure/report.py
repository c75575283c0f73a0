"""A measurement as a table, as lines of text and as JSON."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.table import Table

from nearfuture.client.measure.distribution import Distribution
from nearfuture.client.measure.run import METRICS, PlayedRecording, ServerMeasurement


def table(measurement: ServerMeasurement, *, title: str) -> Table:
    """Return the percentiles of every time; a dash where a protocol or recording lacks it."""
    rows = Table(title=title)
    rows.add_column("ms")
    for column in ("p50", "p90", "p99", "max", "values"):
        rows.add_column(column, justify="right")
    for name, values in measurement.metrics().items():
        what = f"{name}: [dim]{METRICS[name]}[/]"
        if values is None:
            rows.add_row(what, *["–"] * 5)
        else:
            times = (values.p50, values.p90, values.p99, values.max)
            rows.add_row(what, *(f"{ms:.0f}" for ms in times), str(values.count))
    return rows


def notes(measurement: ServerMeasurement) -> list[str]:
    """Return what the table lacks: words, revisions, failures, and whether it can be trusted."""
    complete, failed = measurement.complete, sum(measurement.failures.values())
    seconds = sum(played.recording.duration_s for played in complete)
    connections = len({played.connection for played in measurement.played})
    lines = [
        f"recordings: {len(complete)} complete, {failed} failed; {seconds:.1f} s of audio, over "
        f"{connections} {'connection' if connections == 1 else 'connections'}"
    ]
    lines += [f"failed {count} ×: {reason}" for reason, count in measurement.failures.most_common()]
    if complete:
        lines += [*_words(measurement), *_speech(measurement), *_pace(measurement)]
    return lines


def _words(measurement: ServerMeasurement) -> list[str]:
    revised, committed = _revisions(measurement)
    words = sum(len(played.timeline.words) for played in measurement.complete)
    lines = []
    if (errors := measurement.word_errors) is None:
        lines.append("words: no reference text, so none can be called lost or repeated")
    else:
        lines.append(
            f"words: {errors.edits.reference} in the reference, {errors.edits.deletions} lost, "
            f"{errors.edits.substitutions} changed, {errors.edits.insertions} added "
            f"({errors.repeated} of them repeated): WER {100 * errors.edits.rate:.1f} %"
        )
    each = f" ({revised / words:.2f} a word)" if words else ""
    lines.append(
        f"revisions: {revised} shown words revised{each}, {committed} of them committed ones"
    )
    return lines


def _revisions(measurement: ServerMeasurement) -> tuple[int, int]:
    """Count the revised words, and the committed ones among them."""
    timelines = [played.timeline for played in measurement.complete]
    return (
        sum(timeline.revised for timeline in timelines),
        sum(timeline.committed_revised for timeline in timelines),
    )


def _speech(measurement: ServerMeasurement) -> list[str]:
    named = {"words": "the words' own times", "energy": "energy", "none": "nothing (no speech)"}
    by = [f"{named[how]} ({count})" for how, count in measurement.speech_by.most_common()]
    lines = [f"where speech begins and ends is known by: {', '.join(by)}"] if by else []
    if by and not measurement.speech_by["words"]:
        lines.append("the end of each word is not known: nearfuture align finds it, for `words`")
    return lines


def _pace(measurement: ServerMeasurement) -> list[str]:
    late = measurement.late_ms()
    if late is None:
        return []
    lines = [
        f"this client sent {late.count} chunks of {measurement.chunk_ms:g} ms, p99 "
        f"{late.p99:.1f} ms and at most {late.max:.1f} ms late"
    ]
    if not measurement.kept_pace:
        lines.append(
            "THIS CLIENT DID NOT KEEP PACE, and the delays above may be its own: use fewer "
            "connections, longer chunks, or a machine with nothing else to do"
        )
    # A server that hardly ever waits needs no note, and a client short of CPU cannot measure it.
    elif (blocked_s := measurement.blocked_s()) > 0.01 * sum(
        played.recording.duration_s for played in measurement.complete
    ):
        lines.append(
            f"audio was taken {blocked_s:.1f} s late, all together: the server does not keep up"
        )
    return lines


def as_json(measurement: ServerMeasurement, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything in one object of plain values.

    Args:
        measurement: what was measured.
        about: address, protocol and options.
    """
    errors = measurement.word_errors
    revised, committed = _revisions(measurement)
    return {
        **about,
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "chunk_ms": measurement.chunk_ms,
        "complete": len(measurement.complete),
        "failures": dict(measurement.failures),
        "ms": {name: _rounded(values) for name, values in measurement.metrics().items()},
        "words": None
        if errors is None
        else {
            "reference": errors.edits.reference,
            "lost": errors.edits.deletions,
            "changed": errors.edits.substitutions,
            "added": errors.edits.insertions,
            "repeated": errors.repeated,
            "error_rate": _finite(errors.edits.rate),
        },
        "revised": revised,
        "committed_revised": committed,
        "speech_by": dict(measurement.speech_by),
        "client": {
            "kept_pace": measurement.kept_pace,
            "late_ms": _rounded(measurement.late_ms()),
            "blocked_s": round(measurement.blocked_s(), 3),
        },
        "recordings": [_recording(played) for played in measurement.played],
    }


def _recording(played: PlayedRecording) -> dict[str, Any]:
    speech = played.recording.speech
    return {
        "name": played.recording.name,
        "connection": played.connection,
        "began_s": round(played.began_s, 3),
        "duration_s": round(played.recording.duration_s, 3),
        "lasted_s": round(played.lasted_s, 3),
        "failure": played.failure or None,
        "speech": None if speech is None else asdict(speech),
        "reference": played.recording.text,
        "text": played.timeline.text,
        "revised": played.timeline.revised,
        "ms": {
            name: _rounded(Distribution.of(values)) for name, values in played.metrics().items()
        },
    }


def _rounded(values: Distribution | None) -> dict[str, float] | None:
    if values is None:
        return None
    return {name: round(value, 2) for name, value in asdict(values).items()}


def _finite(rate: float) -> float | None:
    return rate if rate != float("inf") else None
