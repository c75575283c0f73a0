"""Lhotse's manifests: cuts, or recordings and supervisions, as JSON lines, compressed or not."""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nearfuture.data.cut import SPLITS, Cut, split_named
from nearfuture.data.sources.builder import SourceBuilder, as_fields
from nearfuture.data.sources.plain_text import check_pointer
from nearfuture.error import MissingDependency, NearfutureError

CUTS = "cuts.jsonl.gz"
"""The file in which `nearfuture data import` writes a corpus."""

_ENDINGS = (".jsonl", ".jsonl.gz")
_KINDS = {"sources": "recordings", "recording_id": "supervisions"}
_SAVE = "write it to a file first, with lhotse's CutSet.save_audios"


def import_lhotse() -> Any:
    """Import the module `lhotse`, which is slow to load and not in the base install.

    Raises:
        NearfutureError: where it is not installed.
    """
    try:
        with _without_warnings():
            import lhotse
    except ModuleNotFoundError as error:
        raise MissingDependency(
            "a Lhotse manifest", error.name, "pip install 'nearfuture[train]'"
        ) from error
    return lhotse


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress its warning about a home folder that cannot be written, which it does not need."""
    root, disabled = logging.getLogger(), logging.root.manager.disable
    handlers = list(root.handlers)
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(disabled)
        root.handlers[:] = handlers  # the warning would have added one


def is_file(path: Path) -> bool:
    """Whether the first line of a file is an object of Lhotse."""
    if not path.name.endswith(_ENDINGS):
        return False
    try:
        with _open(path) as file:
            first = json.loads(file.readline())
    except (OSError, EOFError, ValueError, zlib.error):
        return path.name.endswith(".gz")  # nothing else is compressed: `read` says what is wrong
    keys = {"supervisions", "tracks", "sources", "recording_id"}
    return isinstance(first, dict) and bool(keys & first.keys())


def is_folder(path: Path) -> bool:
    """Whether a folder holds cuts, or recordings and supervisions."""
    return bool(_named(path, "cuts") or _pairs(path))


def read_folder(path: Path, builder: SourceBuilder) -> None:
    """Add all cuts in a folder, or else all its pairs of recordings and supervisions."""
    cuts = _named(path, "cuts")
    for file in cuts:
        read(file, builder)
    if not cuts:
        for recordings, supervisions in _pairs(path):
            _read_pair(recordings, supervisions, builder)


def read(path: Path, builder: SourceBuilder) -> None:
    """Add every supervision of every cut.

    Raises:
        NearfutureError: where lhotse is not installed, where the file cannot be read, or where it
            holds recordings or supervisions alone.
    """
    for where, row in _rows(path, builder):
        kind = next((kind for key, kind in _KINDS.items() if key in row and "type" not in row), "")
        if kind:
            raise NearfutureError(
                f"{path} holds {kind} alone: name the folder that holds recordings and "
                f"supervisions, or a manifest of cuts",
                code="unsupported",
                parameter="path",
            )
        cut = _deserialised(where, row, builder)
        if cut is not None:
            _add(path, cut, builder)


def _read_pair(recordings: Path, supervisions: Path, builder: SourceBuilder) -> None:
    lhotse = import_lhotse()
    by_id, transcribed = {}, []
    for where, row in _rows(recordings, builder):
        recording = _deserialised(where, row, builder)
        if recording is not None and recording.id in by_id:
            builder.skip("listed twice", f"{recording.id} of {recordings}", f"{where} repeats it")
        elif recording is not None:
            by_id[recording.id] = recording
    for where, row in _rows(supervisions, builder):
        supervision = _deserialised(where, row, builder)
        if supervision is not None and supervision.recording_id in by_id:
            transcribed.append(supervision)
        elif supervision is not None:
            reason = f"there is no recording {supervision.recording_id} in {recordings.name}"
            builder.skip("no such file", f"{supervision.id} of {supervisions}", reason)
    cuts = lhotse.CutSet.from_manifests(
        recordings=lhotse.RecordingSet.from_recordings(by_id.values()),
        supervisions=lhotse.SupervisionSet.from_segments(transcribed),
    )
    for cut in cuts:
        _add(recordings, cut, builder)


def _add(path: Path, cut: Any, builder: SourceBuilder) -> None:
    """Add every supervision of one of Lhotse's cuts as a cut of ours."""
    name, kind = f"{cut.id} of {path}", type(cut).__name__
    if kind not in ("MonoCut", "MultiCut") or not cut.has_recording:
        reason = f"it is a {kind}, not one piece of one recording: {_SAVE}"
        return builder.skip("not usable", name, reason)
    if changes := list(filter(None, map(_transform, cut.recording.transforms or []))):
        reason = f"its recording is to be changed while it is read ({', '.join(changes)}): {_SAVE}"
        return builder.skip("not usable", name, reason)
    if not cut.supervisions:
        return builder.skip("no transcript", name, "it has no supervision")
    try:
        source, channel = _file_and_channel(cut)
    except NearfutureError as error:
        return builder.skip("not usable", name, str(error))
    for supervision in cut.supervisions:
        alone = len(cut.supervisions) == 1
        name = cut.id if alone else f"{cut.id}, {supervision.id}"
        begin_s = max(0.0, supervision.start)
        end_s = min(cut.duration, supervision.end)
        if supervision.text is None:
            builder.skip("no transcript", f"{name} of {path}", "its supervision has no text")
            continue
        if end_s <= begin_s:
            builder.skip("not usable", f"{name} of {path}", "its supervision is outside the cut")
            continue
        fields = {"language": supervision.language, "gender": supervision.gender}
        fields |= {**(cut.custom or {}), **(supervision.custom or {})}
        split, copy = str(fields.pop("split", "")), str(fields.pop("copy", ""))
        builder.add(
            Cut(
                name=name,
                path=_located(path, source, copy),
                text=supervision.text,
                start_s=cut.start + begin_s,
                duration_s=end_s - begin_s,
                rate=cut.recording.sampling_rate,
                channel=channel,
                speaker=supervision.speaker or "",
                split=split or _split_of(path),
                fields=as_fields(fields.items()),
            )
        )
    return None


def _file_and_channel(cut: Any) -> tuple[str, int | None]:
    """The file that holds a cut's channels, and the channel to use, or None for all."""
    wanted = set(cut.channel if isinstance(cut.channel, list) else [cut.channel])
    holders = [source for source in cut.recording.sources if wanted <= set(source.channels)]
    if not holders:
        raise NearfutureError(f"no single file holds its channels {sorted(wanted)}")
    source = holders[0]
    if source.type != "file":
        raise NearfutureError(
            f"its audio is no file but a {source.type}, which is not run or fetched: {_SAVE}"
        )
    if wanted == set(source.channels):
        return str(source.source), None
    if len(wanted) > 1:
        raise NearfutureError(
            f"channels {sorted(wanted)} of {len(source.channels)}: name one, or all"
        )
    return str(source.source), list(source.channels).index(wanted.pop())


def _transform(transform: Any) -> str:
    """The name of what changes the audio; resampling does not count, since it is done anyway."""
    name = transform.get("name", "?") if isinstance(transform, dict) else type(transform).__name__
    return "" if name == "Resample" else str(name)


def _located(path: Path, source: str, copy: str) -> Path:
    """The file beside the manifest, as named, or where `import --copy` has put it."""
    for candidate in (path.parent / source, Path(source)):
        if candidate.is_file():
            return candidate
    return path.parent / copy if copy and (path.parent / copy).is_file() else Path(source)


def _split_of(path: Path) -> str:
    """The split that a file's name states, e.g. librispeech_recordings_dev-clean.jsonl.gz."""
    words = path.name.removesuffix(".gz").removesuffix(".jsonl").replace("-", "_").split("_")
    return next((split for split in map(split_named, words) if split in SPLITS), "")


def _named(folder: Path, word: str) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.name.endswith(_ENDINGS) and word in path.name and path.name[0] != "."
        if path.is_file()
    )


def _pairs(folder: Path) -> list[tuple[Path, Path]]:
    pairs = []
    for recordings in _named(folder, "recordings"):
        supervisions = recordings.with_name(recordings.name.replace("recordings", "supervisions"))
        if supervisions.is_file():
            pairs.append((recordings, supervisions))
    return pairs


def _open(path: Path) -> Any:
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


def _rows(path: Path, builder: SourceBuilder) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line's object, and where it stands."""
    import_lhotse()
    with path.open("rb") as raw:
        check_pointer(raw.read(64), path)
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                where = f"{path}, line {number}"
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except json.JSONDecodeError as error:
                    builder.skip("not usable", where, f"it is no JSON: {error}")
                    continue
                if isinstance(row, dict):
                    yield where, row
                else:
                    builder.skip("not usable", where, "it is no object of Lhotse")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise NearfutureError(
            f"cannot read {path}: {error}; was it cut off?", code="damaged", parameter="path"
        ) from error


def _deserialised(where: str, row: dict[str, Any], builder: SourceBuilder) -> Any:
    from lhotse.serialization import deserialize_item

    try:
        return deserialize_item(row)
    except Exception as error:  # whatever lhotse's constructors raise for a row that lacks keys
        builder.skip("not usable", where, f"it is no object of Lhotse: {error!r}")
        return None
