"""Any source of recordings as one corpus: a manifest of Lhotse with what its headers say."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nearfuture.audio.probe import probe
from nearfuture.data.formats.lhotse_manifest import CUTS, the_library
from nearfuture.data.item import Item
from nearfuture.error import NearfutureError

_AUDIO = "audio"


def write_corpus(
    items: Sequence[Item],
    out: Path,
    *,
    root: Path | None = None,
    copy: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write `out`/cuts.jsonl.gz, a CutSet of Lhotse; nothing is left half-written.

    Each cut is one item: its part of the recording, and one supervision with its text and speaker.
    The split and the other fields are custom fields of the cut. Audio is named by its absolute
    path, so that Lhotse reads it from anywhere.

    Args:
        items: with their durations and rates; those of a `Report`.
        out: folder of the corpus; made if it is not there. What it had under that name is replaced.
        root: folder that names of cuts and copies begin at; their whole paths unless given.
        copy: put copies of the audio into `out`/audio, and name those.
        progress: called with the items done and all of them.

    Returns:
        The path of the manifest.

    Raises:
        NearfutureError: where there are no items, where lhotse is not installed, where `out` is a
            file or cannot be written, or holds the audio of an earlier copy.
    """
    if not items:
        raise NearfutureError(f"nothing is left to write to {out}: no recording can be used")
    lhotse = the_library()
    try:
        with _scratch(out) as scratch:
            cuts = []
            copies: dict[Path, str] = {}
            for number, item in enumerate(items):
                if progress:
                    progress(number, len(items))
                if copy and item.path not in copies:
                    inside = _AUDIO / _relative(item.path, root, len(copies))
                    (scratch / inside).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(item.path, scratch / inside)
                    copies[item.path] = inside.as_posix()
                cuts.append(_cut(lhotse, item, out, root, copies.get(item.path)))
            lhotse.CutSet.from_cuts(cuts).to_file(scratch / CUTS)
            if progress:
                progress(len(items), len(items))
            if copy:
                if (out / _AUDIO).exists():
                    raise NearfutureError(
                        f"{out / _AUDIO} is there already: remove it first, or write to another "
                        f"folder"
                    )
                _move_both(scratch, out)
            else:
                (scratch / CUTS).replace(out / CUTS)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise NearfutureError(f"cannot write to {out}: {reason}") from error
    return out / CUTS


@contextmanager
def _scratch(out: Path) -> Iterator[Path]:
    """A folder beside what is to be replaced, on the same disk; it goes in any case."""
    made = not out.exists()
    scratch = out / f".importing-{os.getpid()}"
    try:
        scratch.mkdir(parents=True)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if made and out.is_dir() and not any(out.iterdir()):
            out.rmdir()


def _move_both(scratch: Path, out: Path) -> None:
    """Copies and manifest, or neither."""
    try:
        (scratch / _AUDIO).rename(out / _AUDIO)
        (scratch / CUTS).replace(out / CUTS)
    except BaseException:
        if not (scratch / _AUDIO).exists():
            shutil.rmtree(out / _AUDIO, ignore_errors=True)
        raise


def _relative(path: Path, root: Path | None, number: int) -> Path:
    path = Path(os.path.abspath(path))  # links are kept: their names say more than their targets
    if root is not None:
        try:
            return path.relative_to(os.path.abspath(root))
        except ValueError:
            pass
    return Path("elsewhere") / f"{number}-{path.name}"


def _cut(lhotse: Any, item: Item, out: Path, root: Path | None, copied: str | None) -> Any:
    found = probe(item.path)
    path = Path(os.path.abspath(out / copied if copied else item.path))
    name = item.name
    if root is not None:
        name = name.replace(f"{root}{os.sep}", "", 1)
    recording = lhotse.Recording(
        id=name,
        sources=[
            lhotse.AudioSource(type="file", channels=list(range(found.channels)), source=str(path))
        ],
        sampling_rate=found.rate,
        num_samples=found.frames,
        duration=found.seconds,
    )
    many = item.channel is None and found.channels > 1
    channel = list(range(found.channels)) if many else (item.channel or 0)
    custom = {**item.fields, "split": item.split, **({"copy": copied} if copied else {})}
    supervision = lhotse.SupervisionSegment(
        id=name,
        recording_id=name,
        start=0.0,
        duration=item.duration_s,
        channel=channel,
        text=item.text,
        speaker=item.speaker or None,
    )
    return (lhotse.MultiCut if many else lhotse.MonoCut)(
        id=name,
        start=item.start_s,
        duration=item.duration_s,
        channel=channel,
        supervisions=[supervision],
        recording=recording,
        custom=custom,
    )
