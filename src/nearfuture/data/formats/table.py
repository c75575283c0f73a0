"""CSV and TSV files with a header."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path

from nearfuture.data.formats.plain_text import read_text
from nearfuture.data.item import Collector, says_nothing
from nearfuture.error import NearfutureError

_DELIMITERS = "\t,;|"
_NAMES = {
    "path": ("path", "audio", "file", "audio_filepath", "filename", "file_name", "wav"),
    "transcript": ("transcript", "text", "sentence", "transcription"),
    "speaker": ("speaker", "speaker_id", "client_id"),
    "split": ("split", "subset"),
    "start": ("start", "offset"),
    "duration": ("duration",),
    "end": ("end",),
}


def read(path: Path, found: Collector) -> None:
    """Every row; paths are relative to the file's folder.

    Raises:
        NearfutureError: where the file is not UTF-8, or its header lacks a column.
    """
    text = read_text(path)
    if text.lstrip().startswith("["):
        raise NearfutureError(
            f"{path} is a JSON array: write one JSON object a line, without brackets and commas "
            f"around them, as NeMo does"
        )
    header = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=lambda one: (len(_columns(header.split(one))), -_rank(one)))
    if delimiter == "\t":  # a quotation mark is an ordinary character here
        lines = iter(text.split("\n"))
        rows = csv.DictReader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    else:
        rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in rows.fieldnames or []]
        rows.fieldnames = names
        columns = _columns(names)
        if missing := {"path", "transcript"} - set(columns):
            raise NearfutureError(
                f"{path} has the columns {', '.join(names) or '(none)'}; it also needs "
                f"{' and '.join(sorted(missing))}, named in its first line and separated by tabs "
                f"or commas"
            )
        for row in rows:
            _row(path, rows.line_num, row, columns, found)
    except csv.Error as error:
        raise NearfutureError(
            f"{path}, after line {rows.line_num}: {error}: is a quotation mark missing?"
        ) from error


def _rank(delimiter: str) -> int:
    return _DELIMITERS.index(delimiter)


def _columns(names: list[str]) -> dict[str, str]:
    """What is meant → the first column called so."""
    by_lower = {name.strip().strip('"').lower(): name for name in reversed(names)}
    return {
        meaning: by_lower[known]
        for meaning, spellings in _NAMES.items()
        for known in reversed(spellings)
        if known in by_lower
    }


def _row(
    path: Path, line: int, row: Mapping[str, str], columns: Mapping[str, str], found: Collector
) -> None:
    where = f"{path}, line {line}"
    if surplus := row.get(None):  # type: ignore[call-overload]
        over = ", ".join(surplus)
        reason = f"it has more cells than the first line ({over!r} is over): put texts in quotes"
        return found.fault("not usable", where, reason)
    cells = {key: value or "" for key, value in row.items() if isinstance(key, str)}
    told = {meaning: cells.pop(column).strip() for meaning, column in columns.items()}
    for meaning in ("path", "speaker", "split"):
        if says_nothing(told.get(meaning, ""), spoken=False):
            told[meaning] = ""
    if not told["path"] or row[columns["transcript"]] is None:
        return found.fault("not usable", where, "a row needs a path and a transcript")
    try:
        start_s = float(told.get("start") or 0.0)
        duration_s = float(told["duration"]) if told.get("duration") else None
        if duration_s is None and told.get("end"):
            duration_s = float(told["end"]) - start_s
    except ValueError:
        times = {key: told.get(key, "") for key in ("start", "duration", "end")}
        return found.fault("not usable", where, f"times are numbers of seconds, not {times}")
    if not (0 <= start_s < math.inf and (duration_s is None or 0 < duration_s < math.inf)):
        return found.fault(
            "not usable", where, f"no part starts at {start_s} s and lasts {duration_s} s"
        )
    found.add(
        path.parent / told["path"],
        told["transcript"],
        start_s=start_s,
        duration_s=duration_s,
        speaker=told.get("speaker", ""),
        split=told.get("split", ""),
        fields=cells,
    )
    return None
