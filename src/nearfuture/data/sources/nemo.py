"""NeMo's manifests: a JSON object in each line."""

from __future__ import annotations

import json
from pathlib import Path

from nearfuture.data.cut import Cut
from nearfuture.data.sources.builder import SourceBuilder, as_fields
from nearfuture.data.sources.plain_text import lines, read_text

_KNOWN = {"audio_filepath", "text", "duration", "offset", "speaker", "split"}


def is_file(path: Path) -> bool:
    """Whether a file begins with a JSON object."""
    with path.open("rb") as file:
        return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def read(path: Path, builder: SourceBuilder) -> None:
    """Add every line; paths are relative to the folder of the manifest.

    Raises:
        NearfutureError: where the manifest is not UTF-8.
    """
    for number, line in lines(read_text(path)):
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            builder.skip("not usable", where, f"it is no JSON: {error}")
            continue
        if not isinstance(row, dict) or not isinstance(row.get("audio_filepath"), str):
            reason = "a line is a JSON object with audio_filepath and text"
            builder.skip("not usable", where, reason)
            continue
        if not isinstance(row.get("text"), str):
            builder.skip("no transcript", where, f"{row['audio_filepath']} has no text")
            continue
        offset, duration = row.get("offset") or 0.0, row.get("duration")
        if not (_is_number(offset) and (duration is None or _is_number(duration))):
            reason = f"no part starts at {offset!r} s and lasts {duration!r} s"
            builder.skip("not usable", where, reason)
            continue
        builder.add(
            Cut(
                name="",
                path=path.parent / row["audio_filepath"],
                text=row["text"],
                start_s=float(offset),
                duration_s=None if duration is None else float(duration),
                speaker=str(row.get("speaker") or ""),
                split=str(row.get("split") or ""),
                fields=as_fields((key, value) for key, value in row.items() if key not in _KNOWN),
            ),
            row=where,
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
