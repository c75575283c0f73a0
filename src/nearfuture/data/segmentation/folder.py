"""Segments of long recordings as a folder that can be trained on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import soundfile

from nearfuture.audio import Audio
from nearfuture.data.segmentation.alignment import Segment
from nearfuture.data.segmentation.segmenting import Segments
from nearfuture.error import NearfutureError

_SPAN = ("source", "source_start", "source_end")
_KEPT = ("path", "transcript", "speaker", "seconds", *_SPAN, "cost", "error_rate")
_DROPPED = (*_SPAN, "transcript", "hypothesis", "reason", "value")


class SegmentFolder:
    """A folder of `audio/*.flac`, `manifest.tsv` for them, and `dropped.tsv` for the others.

    Times are seconds in the source. Audio is FLAC of 16 bit at the rate of the source.

    Args:
        folder: made if it does not exist.

    Raises:
        NearfutureError: where the folder has segments already, or cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self.manifest = folder / "manifest.tsv"
        self.dropped = folder / "dropped.tsv"
        self._folder = folder
        if _has_rows(self.manifest) or _has_rows(self.dropped):
            raise NearfutureError(
                f"{self.manifest} is there already: name another folder", code="conflict"
            )
        try:
            (folder / "audio").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NearfutureError(
                f"cannot make the folder {folder}: {error.strerror}", code="conflict"
            ) from error
        _append(self.manifest, [_KEPT], new=True)
        _append(self.dropped, [_DROPPED], new=True)

    def add(
        self, segments: Segments, audio: Audio, *, source: str, stem: str, speaker: str = ""
    ) -> None:
        """Write the segments of one recording.

        Args:
            segments: of it.
            audio: of it.
            source: the name of the recording in the manifest.
            stem: the names of the files begin so; a file that exists is not overwritten.
            speaker: for the manifest.

        Raises:
            NearfutureError: where such a file exists already.
        """
        rows = []
        for number, kept in enumerate(segments.kept, start=1):
            name = f"audio/{stem}-{number:05}.flac"
            path = self._folder / name
            if path.exists():
                raise NearfutureError(
                    f"{path} is there already: two recordings are called {stem}", code="conflict"
                )
            begin, end = (round(ms * audio.rate / 1000) for ms in (kept.start_ms, kept.end_ms))
            piece = audio.samples[begin:end]
            soundfile.write(path, piece, audio.rate, subtype="PCM_16")
            seconds = f"{len(piece) / audio.rate:.3f}"
            figures = (f"{kept.cost:.4f}", f"{kept.error_rate:.4f}")
            rows.append((name, kept.text, speaker, seconds, *_span(source, kept), *figures))
        _append(self.manifest, rows)
        _append(
            self.dropped,
            [
                (
                    *_span(source, drop.segment),
                    drop.segment.text,
                    drop.segment.hypothesis,
                    drop.reason,
                    f"{drop.value:.4g}",
                )
                for drop in segments.dropped
            ],
        )


def _span(source: str, segment: Segment) -> tuple[str, str, str]:
    return source, f"{segment.start_ms / 1000:.4f}", f"{segment.end_ms / 1000:.4f}"


def _has_rows(path: Path) -> bool:
    """Whether a list has more than its header."""
    return path.is_file() and len(path.read_text(encoding="utf-8").splitlines()) > 1


def _append(path: Path, rows: Iterable[Iterable[str]], *, new: bool = False) -> None:
    with path.open("w" if new else "a", encoding="utf-8", newline="\n") as file:
        for row in rows:
            # A tab or a line end can only stand in the name of a file.
            print("\t".join(" ".join(field.split()) for field in row), file=file)
