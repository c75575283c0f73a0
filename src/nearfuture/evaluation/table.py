"""An evaluation as tables that a person can read."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from nearfuture.evaluation.bootstrap import Interval
from nearfuture.evaluation.evaluation import Evaluation
from nearfuture.evaluation.summary import HeadFigures, Spread, Summary
from nearfuture.text import ErrorRate, counted

_FEW_SPEAKERS = 20


def tables(heard: Evaluation, summary: Summary, *, speakers: bool = False) -> list[Table]:
    """Errors, delays and the latency itemised; also the errors of each speaker where wanted."""
    found = [_errors(heard, summary), _delays(summary), _latencies(summary)]
    return [*found, _speakers(heard)] if speakers else found


def _errors(heard: Evaluation, summary: Summary) -> Table:
    speakers = counted(summary.speakers, "speaker") if summary.speakers else "speakers not told"
    table = Table(
        title=f"{heard.streaming.name}: {summary.utterances:,} recordings, "
        f"{summary.seconds / 60:,.1f} min, {summary.words:,} words, {speakers}",
        caption=f"in brackets 95 % intervals by {summary.by}"
        + ("; last column: relative difference, paired" if summary.twin else ""),
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("budget", no_wrap=True)
    compared = ("CER to twin, %",) if summary.twin else ()
    for column in ("WER %", "CER %", *compared):
        table.add_column(column, justify="right")
    for head in (*summary.heads, *_twin(summary)):
        difference = "" if head.cer_to_twin is None else _relative(head.cer_to_twin)
        cells = (_frames(head), _rate(head.wer), _rate(head.cer))
        table.add_row(*cells, *([difference] if compared else []))
    return table


def _delays(summary: Summary) -> Table:
    placed = summary.twin is not None
    table = Table(
        title="\nDelays in ms (p50 / p90), and text on show that was taken back"
        if placed
        else "\nText on show that was taken back",
        caption=(
            "first text: from the start of the first word; emitted, committed: from the end of "
            "each word, where the twin hears it; "
            if placed
            else ""
        )
        + "revisions: per 100 words; retracted: % of characters",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("budget", no_wrap=True)
    for column in ("first text", "emitted", "committed") if placed else ():
        table.add_column(column, justify="right")
    for column in ("revisions", "retracted"):
        table.add_column(column, justify="right")
    for head in (*summary.heads, *_twin(summary)):
        spreads = (head.first_token_ms, head.emission_ms, head.commit_ms) if placed else ()
        shown = (f"{head.revisions:.1f}", f"{100 * head.retracted:.1f}")
        table.add_row(_frames(head), *map(_both, spreads), *(shown if head.latency else ("", "")))
    return table


def _latencies(summary: Summary) -> Table:
    table = Table(title="\nAlgorithmic latency in ms", title_justify="left")
    table.add_column("")
    every = [head.latency for head in summary.heads if head.latency is not None]
    for head in summary.heads:
        table.add_column(f"τ = {head.frames}", justify="right")
    rows = [{item.name: item.ms for item in latency.items} for latency in every]
    for name in dict.fromkeys(name for row in rows for name in row):
        table.add_row(name, *(_ms(row[name]) if name in row else "–" for row in rows))
    table.add_section()
    table.add_row("worst case", *(_ms(latency.worst_ms) for latency in every), style="bold")
    table.add_row("mean", *(_ms(latency.mean_ms) for latency in every))
    return table


def _speakers(heard: Evaluation) -> Table:
    table = Table(title="\nWER % / CER % of each speaker", title_justify="left")
    table.add_column("speaker")
    table.add_column("words", justify="right")
    found = heard.speakers()
    heads: Iterable[int | None] = next(iter(found.values()))
    for head in heads:
        table.add_column("twin" if head is None else f"τ = {head}", justify="right")
    for speaker, rates in found.items():
        words = next(iter(rates.values()))[0].reference
        table.add_row(
            Text(speaker or "(unknown)"), f"{words:,}", *(_pair(*pair) for pair in rates.values())
        )
    return table


def notes(heard: Evaluation, summary: Summary) -> list[str]:
    """What the tables do not hold: computing, and what to beware of."""
    lines = [
        f"Computing: {heard.quantum_p50_ms:.2f} ms a quantum (p98 {heard.quantum_p98_ms:.2f}), "
        f"real-time factor {summary.real_time_factor:.4f}; all heads are computed at once.",
        f"End of the recording → final text: {summary.finish_ms.p50:.2f} ms (p90 "
        f"{summary.finish_ms.p90:.2f}), all of it computing: nothing is waited for any more."
        + (
            f" The twin begins then: {summary.twin_ms.p50:.2f} ms (p90 {summary.twin_ms.p90:.2f})."
            if summary.twin
            else ""
        ),
    ]
    if summary.twin and summary.aligned < summary.utterances:
        missing = summary.utterances - summary.aligned
        lines.append(
            f"The twin cannot place the words of {missing:,} recordings (too short for their text, "
            f"or characters it cannot write): they count for errors, not for delays."
        )
    if summary.by == "speaker" and summary.speakers < _FEW_SPEAKERS:
        lines.append(
            f"With {summary.speakers} speakers an interval by speaker is too narrow; "
            f"{_FEW_SPEAKERS} or more give one to rely on."
        )
    return lines


def _twin(summary: Summary) -> list[HeadFigures]:
    return [] if summary.twin is None else [summary.twin]


def _ms(exact: float) -> str:
    """To a tenth; a resampler from 44.1 kHz waits for 4.98866 ms."""
    return f"{round(exact, 1):g}"


def _frames(head: HeadFigures) -> str:
    return (
        "twin" if head.latency is None else f"{_ms(head.latency.worst_ms)} ms (τ = {head.frames})"
    )


def _rate(rate: Interval) -> str:
    if math.isinf(rate.high):
        return f"{100 * rate.value:.2f}"
    return f"{100 * rate.value:.2f} ({100 * rate.low:.2f}–{100 * rate.high:.2f})"


def _relative(difference: Interval) -> str:
    ends = f"{difference.low:+.1f} to {difference.high:+.1f}".replace("inf", "∞")
    return f"{difference.value:+.1f} ({ends})"


def _both(spread: Spread) -> str:
    return f"{spread.p50:.0f} / {spread.p90:.0f}" if spread.count else "–"


def _pair(words: ErrorRate, characters: ErrorRate) -> str:
    return f"{100 * words.rate:.2f} / {100 * characters.rate:.2f}"
