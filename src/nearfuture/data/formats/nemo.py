"""NeMo's manifests: a JSON object in each line."""

from __future__ import annotations

import json
import math
from pathlib import Path

from nearfuture.data.formats.plain_text import lines, read_text
from nearfuture.data.item import Collector, as_fields

_KNOWN = {"audio_filepath", "text", "duration", "offset", "speaker", "split"}


def is_file(path: Path) -> bool:
    """Whether its first bytes are those of a JSON object."""
    with path.open("rb") as file:
        return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def read(path: Path, found: Collector) -> None:
    """Every line; paths are relative to the file's folder.

    Raises:
        NearfutureError: where the file is not UTF-8.
    """
    for number, line in lines(read_text(path)):
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            found.fault("not usable", where, f"it is no JSON: {error}")
            continue
        if not isinstance(row, dict) or not isinstance(row.get("audio_filepath"), str):
            found.fault("not usable", where, "a line is a JSON object with audio_filepath and text")
            continue
        if not isinstance(row.get("text"), str):
            found.fault("no transcript", where, f"{row['audio_filepath']} has no text")
            continue
        offset, duration = row.get("offset") or 0.0, row.get("duration")
        numbers = all(
            isinstance(one, int | float) and not isinstance(one, bool)
            for one in (offset, 0.0 if duration is None else duration)
        )
        if not (
            numbers and 0 <= offset < math.inf and (duration is None or 0 < duration < math.inf)
        ):
            found.fault(
                "not usable", where, f"no part starts at {offset!r} s and lasts {duration!r} s"
            )
            continue
        found.add(
            path.parent / row["audio_filepath"],
            row["text"],
            start_s=float(offset),
            duration_s=None if duration is None else float(duration),
            speaker=str(row.get("speaker") or ""),
            split=str(row.get("split") or ""),
            fields=as_fields((key, value) for key, value in row.items() if key not in _KNOWN),
        )
