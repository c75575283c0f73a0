"""CSV and TSV files with a header."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from nearfuture.data.cut import Cut
from nearfuture.data.sources.builder import SourceBuilder, is_null
from nearfuture.data.sources.plain_text import read_text
from nearfuture.error import NearfutureError

_DELIMITERS = "\t,;|"
_SPELLINGS = {
    "path": ("path", "audio", "file", "audio_filepath", "filename", "file_name", "wav"),
    "transcript": ("transcript", "text", "sentence", "transcription"),
    "speaker": ("speaker", "speaker_id", "client_id"),
    "split": ("split", "subset"),
    "start": ("start", "offset"),
    "duration": ("duration",),
    "end": ("end",),
}


def read(path: Path, builder: SourceBuilder) -> None:
    """Add every row; paths are relative to the folder of the table.

    Raises:
        NearfutureError: where the table is not UTF-8, or its header lacks a column.
    """
    text = read_text(path)
    if text.lstrip().startswith("["):
        raise NearfutureError(
            f"{path} is a JSON array: write one JSON object a line, without brackets and commas "
            f"around them, as NeMo does",
            code="unsupported",
            parameter="path",
        )
    header = text.partition("\n")[0]
    # Of equally good delimiters the first: `max` keeps it.
    delimiter = max(_DELIMITERS, key=lambda mark: len(_columns(header.split(mark))))
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
                f"or commas",
                parameter="path",
            )
        for row in rows:
            _add(f"{path}, line {rows.line_num}", path.parent, row, columns, builder)
    except csv.Error as error:
        raise NearfutureError(
            f"{path}, after line {rows.line_num}: {error}: is a quotation mark missing?",
            code="damaged",
            parameter="path",
        ) from error


def _columns(names: list[str]) -> dict[str, str]:
    """Each known meaning of a column → the first column that is called so."""
    by_lower = {name.strip().strip('"').lower(): name for name in reversed(names)}
    return {
        meaning: by_lower[spelling]
        for meaning, spellings in _SPELLINGS.items()
        for spelling in reversed(spellings)
        if spelling in by_lower
    }


def _add(
    where: str,
    folder: Path,
    row: Mapping[str, str],
    columns: Mapping[str, str],
    builder: SourceBuilder,
) -> None:
    if surplus := row.get(None):  # type: ignore[call-overload]
        over = ", ".join(surplus)
        reason = f"it has more cells than the first line ({over!r} is over): put texts in quotes"
        return builder.skip("not usable", where, reason)
    fields = {key: value or "" for key, value in row.items() if isinstance(key, str)}
    known = dict.fromkeys(_SPELLINGS, "")
    known |= {meaning: fields.pop(column).strip() for meaning, column in columns.items()}
    for meaning in ("path", "speaker", "split"):
        if is_null(known[meaning], transcript=False):
            known[meaning] = ""
    if not known["path"] or row[columns["transcript"]] is None:
        return builder.skip("not usable", where, "a row needs a path and a transcript")
    try:
        start_s = float(known["start"] or 0.0)
        duration_s = float(known["duration"]) if known["duration"] else None
        if duration_s is None and known["end"]:
            duration_s = float(known["end"]) - start_s
    except ValueError:
        times = {meaning: known[meaning] for meaning in ("start", "duration", "end")}
        return builder.skip("not usable", where, f"times are numbers of seconds, not {times}")
    return builder.add(
        Cut(
            name="",
            path=folder / known["path"],
            text=known["transcript"],
            start_s=start_s,
            duration_s=duration_s,
            speaker=known["speaker"],
            split=known["split"],
            fields=fields,
        ),
        row=where,
    )
