"""An evaluation as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from nearfuture.evaluation.bootstrap import ConfidenceInterval
from nearfuture.evaluation.evaluation import Evaluation
from nearfuture.evaluation.summary import HeadMetrics, Percentiles, Summary
from nearfuture.text import ErrorRate, plural

_FEW_SPEAKERS = 20


def tables(evaluation: Evaluation, summary: Summary, *, speakers: bool = False) -> list[Table]:
    """Errors, delays and the latency itemised; also the errors of each speaker where wanted."""
    overview = [_errors(evaluation, summary), _delays(summary), _latencies(summary)]
    return [*overview, _speakers(evaluation)] if speakers else overview


def notes(evaluation: Evaluation, summary: Summary) -> list[str]:
    """Return notes to the tables: compute time, and what limits the metrics."""
    twin_computing = (
        f" The twin begins then: {summary.twin_ms.p50:.2f} ms (p90 {summary.twin_ms.p90:.2f})."
        if summary.twin
        else ""
    )
    lines = [
        f"Computing: {evaluation.quantum_p50_ms:.2f} ms a quantum (p98 "
        f"{evaluation.quantum_p98_ms:.2f}), real-time factor {summary.real_time_factor:.4f}; "
        f"all heads are computed at once.",
        f"End of the recording → final text: {summary.finish_ms.p50:.2f} ms (p90 "
        f"{summary.finish_ms.p90:.2f}), all of it computing: nothing is waited for any more."
        + twin_computing,
    ]
    if summary.twin and summary.aligned < summary.utterances:
        missing = summary.utterances - summary.aligned
        lines.append(
            f"The twin cannot align the words of {missing:,} recordings (too short for their text, "
            f"or characters it cannot write): they count for errors, not for delays."
        )
    if summary.by == "speaker" and summary.speakers < _FEW_SPEAKERS:
        lines.append(
            f"With {summary.speakers} speakers an interval by speaker is too narrow; "
            f"{_FEW_SPEAKERS} or more give one to rely on."
        )
    return lines


def _errors(evaluation: Evaluation, summary: Summary) -> Table:
    speakers = plural(summary.speakers, "speaker") if summary.speakers else "speakers unknown"
    twin = summary.twin is not None
    table = _table(
        "budget",
        ["WER %", "CER %", *(["CER to twin, %"] if twin else [])],
        title=f"{evaluation.streaming.name}: {summary.utterances:,} recordings, "
        f"{summary.seconds / 60:,.1f} min, {summary.words:,} words, {speakers}",
        caption=f"in brackets 95 % intervals by {summary.by}"
        + ("; last column: relative difference, paired" if twin else ""),
    )
    for head in _heads_and_twin(summary):
        difference = "" if head.cer_to_twin is None else _difference(head.cer_to_twin)
        table.add_row(
            _budget(head), _rate(head.wer), _rate(head.cer), *([difference] if twin else [])
        )
    return table


def _delays(summary: Summary) -> Table:
    aligned = summary.twin is not None
    title, caption, columns = "\nRevisions of partial results", "", ["revisions", "retracted"]
    if aligned:
        title = "\nDelays in ms (p50 / p90), and revisions of partial results"
        caption = (
            "first text: from the start of the first word; emitted, committed: from the end of "
            "each word, where the twin aligns it; "
        )
        columns = ["first text", "emitted", "committed", *columns]
    table = _table(
        "budget",
        columns,
        title=title,
        caption=f"{caption}revisions: per 100 words; retracted: % of characters",
    )
    for head in _heads_and_twin(summary):
        delays = (head.first_token_ms, head.emission_ms, head.commit_ms) if aligned else ()
        revised = (f"{head.revisions:.1f}", f"{100 * head.retracted:.1f}")
        table.add_row(
            _budget(head), *map(_percentiles, delays), *(revised if head.latency else ("", ""))
        )
    return table


def _latencies(summary: Summary) -> Table:
    columns = [f"τ = {head.frames}" for head in summary.heads]
    table = _table("", columns, title="\nAlgorithmic latency in ms")
    latencies = [head.latency for head in summary.heads if head.latency is not None]
    rows = [{item.name: item.ms for item in latency.items} for latency in latencies]
    for name in dict.fromkeys(name for row in rows for name in row):
        table.add_row(name, *(_ms(row[name]) if name in row else "–" for row in rows))
    table.add_section()
    table.add_row("worst case", *(_ms(latency.worst_ms) for latency in latencies), style="bold")
    table.add_row("mean", *(_ms(latency.mean_ms) for latency in latencies))
    return table


def _speakers(evaluation: Evaluation) -> Table:
    speakers = evaluation.speakers()
    heads = next(iter(speakers.values()))
    columns = ["words", *("twin" if head is None else f"τ = {head}" for head in heads)]
    table = _table("speaker", columns, title="\nWER % / CER % of each speaker")
    for speaker, rates in speakers.items():
        words = next(iter(rates.values()))[0].reference
        cells = (_word_and_character_rate(*pair) for pair in rates.values())
        table.add_row(Text(speaker or "(unknown)"), f"{words:,}", *cells)
    return table


def _table(first: str, columns: Sequence[str], *, title: str, caption: str | None = None) -> Table:
    """Return an empty table whose columns, but for the first, hold numbers."""
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _heads_and_twin(summary: Summary) -> list[HeadMetrics]:
    return [*summary.heads, *([] if summary.twin is None else [summary.twin])]


def _ms(exact: float) -> str:
    """Round to a tenth; a resampler from 44.1 kHz waits for 4.98866 ms."""
    return f"{round(exact, 1):g}"


def _budget(head: HeadMetrics) -> str:
    if head.latency is None:
        return "twin"
    return f"{_ms(head.latency.worst_ms)} ms (τ = {head.frames})"


def _rate(rate: ConfidenceInterval) -> str:
    if math.isinf(rate.high):
        return f"{100 * rate.value:.2f}"
    return f"{100 * rate.value:.2f} ({100 * rate.low:.2f}–{100 * rate.high:.2f})"


def _difference(difference: ConfidenceInterval) -> str:
    """Write a relative difference in %, in a cell that a terminal of 80 columns has room for."""
    value, low, high = (
        f"{number:+.1f}" if abs(number) < 9.95 else f"{number:+.0f}".replace("inf", "∞")
        for number in (difference.value, difference.low, difference.high)
    )
    return f"{value} ({low} to {high})"


def _percentiles(delays: Percentiles) -> str:
    return f"{delays.p50:.0f} / {delays.p90:.0f}" if delays.count else "–"


def _word_and_character_rate(words: ErrorRate, characters: ErrorRate) -> str:
    return f"{100 * words.rate:.2f} / {100 * characters.rate:.2f}"
