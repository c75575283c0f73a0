"""Segments of long recordings as a folder that can be trained on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from nearfuture.data.segmentation import Segments
from nearfuture.error import NearfutureError

_KEPT = (
    "path",
    "transcript",
    "speaker",
    "seconds",
    "source",
    "source_start",
    "source_end",
    "cost",
    "error_rate",
)
_DROPPED = ("source", "source_start", "source_end", "transcript", "heard", "reason", "figure")


class SegmentFolder:
    """A folder of `audio/*.flac`, `manifest.tsv` for them, and `dropped.tsv` for what is left out.

    Times are seconds in the source. Audio is FLAC of 16 bit at the rate of the source.

    Args:
        folder: made if it is not there.

    Raises:
        NearfutureError: where the folder has segments already, or cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self.manifest = folder / "manifest.tsv"
        self.dropped = folder / "dropped.tsv"
        self._folder = folder
        if _rows(self.manifest) or _rows(self.dropped):
            raise NearfutureError(f"{self.manifest} is there already: name another folder")
        try:
            (folder / "audio").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NearfutureError(f"cannot make the folder {folder}: {error.strerror}") from error
        _append(self.manifest, [_KEPT], new=True)
        _append(self.dropped, [_DROPPED], new=True)

    def add(
        self,
        segments: Segments,
        samples: NDArray[np.float32],
        rate: int,
        *,
        source: str,
        stem: str,
        speaker: str = "",
    ) -> None:
        """Write the segments of one recording.

        Args:
            segments: of it.
            samples: (n,) of it.
            rate: samples per second.
            source: what the manifest calls the recording.
            stem: the names of the files begin so; one that is there already is not overwritten.
            speaker: for the manifest.

        Raises:
            NearfutureError: where such a file is there already.
        """
        rows = []
        for number, kept in enumerate(segments.kept, start=1):
            name = f"audio/{stem}-{number:05}.flac"
            path = self._folder / name
            if path.exists():
                raise NearfutureError(f"{path} is there already: two recordings are called {stem}")
            begin, end = (round(ms * rate / 1000) for ms in (kept.start_ms, kept.end_ms))
            piece = samples[begin:end]
            soundfile.write(path, piece, rate, subtype="PCM_16")
            rows.append(
                (
                    name,
                    kept.text,
                    speaker,
                    f"{len(piece) / rate:.3f}",
                    source,
                    *_seconds(kept.start_ms, kept.end_ms),
                    f"{kept.cost:.4f}",
                    f"{kept.error_rate:.4f}",
                )
            )
        _append(self.manifest, rows)
        _append(
            self.dropped,
            [
                (
                    source,
                    *_seconds(one.segment.start_ms, one.segment.end_ms),
                    one.segment.text,
                    one.segment.heard,
                    one.reason,
                    f"{one.figure:.4g}",
                )
                for one in segments.dropped
            ],
        )


def _seconds(*times_ms: float) -> list[str]:
    return [f"{ms / 1000:.4f}" for ms in times_ms]


def _rows(path: Path) -> int:
    """How many there are, besides the header."""
    return len(path.read_text(encoding="utf-8").splitlines()[1:]) if path.is_file() else 0


def _append(path: Path, rows: Iterable[Iterable[str]], *, new: bool = False) -> None:
    with path.open("w" if new else "a", encoding="utf-8", newline="\n") as file:
        for row in rows:
            # A tab or a line end can only stand in the name of a file.
            print("\t".join(" ".join(field.split()) for field in row), file=file)
