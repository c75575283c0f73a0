"""A corpus as a Lhotse manifest: each cut with what the header of its file states."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nearfuture.audio.probe import probe
from nearfuture.data.cut import Cut
from nearfuture.data.sources.lhotse_manifest import CUTS, import_lhotse
from nearfuture.error import NearfutureError

_AUDIO = "audio"


def write_corpus(
    cuts: Sequence[Cut],
    out: Path,
    *,
    root: Path | None = None,
    copy: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Write `out`/cuts.jsonl.gz, a CutSet of Lhotse; nothing is left half-written.

    Each cut has one supervision, with its text and speaker. The split and the other fields are
    custom fields of the cut. Audio is named by its absolute path, so that Lhotse reads it from
    anywhere.

    Args:
        cuts: with their durations and rates; those of a `CorpusReport`.
        out: folder of the corpus; made if it does not exist. An earlier manifest is replaced.
        root: folder that names of cuts and copies begin at; by default their whole paths.
        copy: put copies of the audio into `out`/audio, and name those.
        progress: called with the cuts done and all of them.

    Returns:
        The path of the manifest.

    Raises:
        NearfutureError: where there are no cuts, where lhotse is not installed, where `out` is a
            file or cannot be written, or holds the audio of an earlier copy.
    """
    if not cuts:
        raise NearfutureError(
            f"nothing is left to write to {out}: no recording can be used",
            code="not_found",
            parameter="cuts",
        )
    lhotse = import_lhotse()
    try:
        with _scratch(out) as scratch:
            rows = []
            copies: dict[Path, str] = {}
            for number, cut in enumerate(cuts):
                progress(number, len(cuts))
                if copy and cut.path not in copies:
                    inside = _AUDIO / _relative(cut.path, root, len(copies))
                    (scratch / inside).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(cut.path, scratch / inside)
                    copies[cut.path] = inside.as_posix()
                rows.append(_row(lhotse, cut, out, root, copies.get(cut.path)))
            lhotse.CutSet.from_cuts(rows).to_file(scratch / CUTS)
            progress(len(cuts), len(cuts))
            _move(scratch, out)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise NearfutureError(
            f"cannot write to {out}: {reason}", code="unavailable", parameter="out"
        ) from error
    return out / CUTS


@contextmanager
def _scratch(out: Path) -> Iterator[Path]:
    """A folder beside what is to be replaced, on the same disk; it is removed in any case."""
    made = not out.exists()
    scratch = out / f".importing-{os.getpid()}"
    try:
        scratch.mkdir(parents=True)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if made and out.is_dir() and not any(out.iterdir()):
            out.rmdir()


def _move(scratch: Path, out: Path) -> None:
    """Put the manifest in its place, and the copies if there are any: both or neither."""
    copied = (scratch / _AUDIO).exists()
    if copied and (out / _AUDIO).exists():
        raise NearfutureError(
            f"{out / _AUDIO} is there already: remove it first, or write to another folder",
            code="conflict",
            parameter="out",
        )
    try:
        if copied:
            (scratch / _AUDIO).rename(out / _AUDIO)
        (scratch / CUTS).replace(out / CUTS)
    except BaseException:
        if copied and not (scratch / _AUDIO).exists():
            shutil.rmtree(out / _AUDIO, ignore_errors=True)
        raise


def _relative(path: Path, root: Path | None, number: int) -> Path:
    path = Path(os.path.abspath(path))  # links are kept: their names say more than their targets
    if root is not None and path.is_relative_to(os.path.abspath(root)):
        return path.relative_to(os.path.abspath(root))
    return Path("elsewhere") / f"{number}-{path.name}"


def _row(lhotse: Any, cut: Cut, out: Path, root: Path | None, copy: str | None) -> Any:
    """Lhotse's cut for one of ours."""
    header = probe(cut.path)
    path = Path(os.path.abspath(out / copy if copy else cut.path))
    name = cut.name if root is None else cut.name.replace(f"{root}{os.sep}", "", 1)
    channels = list(range(header.channels))
    recording = lhotse.Recording(
        id=name,
        sources=[lhotse.AudioSource(type="file", channels=channels, source=str(path))],
        sampling_rate=header.rate,
        num_samples=header.frames,
        duration=header.seconds,
    )
    mixed = cut.channel is None and header.channels > 1
    channel = channels if mixed else (cut.channel or 0)
    supervision = lhotse.SupervisionSegment(
        id=name,
        recording_id=name,
        start=0.0,
        duration=cut.duration_s,
        channel=channel,
        text=cut.text,
        speaker=cut.speaker or None,
    )
    return (lhotse.MultiCut if mixed else lhotse.MonoCut)(
        id=name,
        start=cut.start_s,
        duration=cut.duration_s,
        channel=channel,
        supervisions=[supervision],
        recording=recording,
        custom={**cut.fields, "split": cut.split, **({"copy": copy} if copy else {})},
    )
