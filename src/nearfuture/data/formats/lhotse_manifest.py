"""Lhotse's manifests: cuts, or recordings and supervisions, as JSON lines, compressed or not."""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nearfuture.data.formats.plain_text import check_pointer
from nearfuture.data.item import Collector, as_fields, split_named
from nearfuture.error import NearfutureError

CUTS = "cuts.jsonl.gz"
"""The file in which `nearfuture data import` writes a corpus."""

_ENDINGS = (".jsonl", ".jsonl.gz")
_KINDS = {"sources": "recordings", "recording_id": "supervisions"}


def the_library() -> Any:
    """Lhotse; it takes seconds to load, and the base install lacks it.

    Raises:
        NearfutureError: where it is not installed.
    """
    try:
        with _quiet():
            import lhotse
    except ModuleNotFoundError as error:
        raise NearfutureError(
            f"manifests of Lhotse need {error.name}, which the base install leaves out; install it "
            f"with: pip install 'nearfuture[train]'"
        ) from error
    return lhotse


@contextmanager
def _quiet() -> Iterator[None]:
    """Without its word on a home folder that cannot be written, which nobody here needs."""
    root, disabled = logging.getLogger(), logging.root.manager.disable
    handlers = list(root.handlers)
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(disabled)
        root.handlers[:] = handlers  # its word would have added one


def is_file(path: Path) -> bool:
    """Whether its first line is an object of Lhotse."""
    if not path.name.endswith(_ENDINGS):
        return False
    try:
        with _open(path) as file:
            first = json.loads(file.readline())
    except (OSError, EOFError, ValueError, zlib.error):
        return path.name.endswith(".gz")  # nothing else is compressed: `read` says what is wrong
    return isinstance(first, dict) and bool(
        {"supervisions", "tracks", "sources", "recording_id"} & first.keys()
    )


def is_folder(path: Path) -> bool:
    """Whether it holds cuts, or recordings and supervisions."""
    return bool(_named(path, "cuts") or _pairs(path))


def read_folder(path: Path, found: Collector) -> None:
    """All cuts in a folder, or else all its pairs of recordings and supervisions."""
    cuts = _named(path, "cuts")
    for file in cuts:
        read(file, found)
    if not cuts:
        for recordings, supervisions in _pairs(path):
            _read_pair(recordings, supervisions, found)


def read(path: Path, found: Collector) -> None:
    """Every supervision of every cut.

    Raises:
        NearfutureError: where lhotse is not installed, where the file cannot be read, or where it
            holds recordings or supervisions alone.
    """
    for where, row in _rows(path, found):
        kind = next((kind for key, kind in _KINDS.items() if key in row and "type" not in row), "")
        if kind:
            raise NearfutureError(
                f"{path} holds {kind} alone: name the folder that holds recordings and "
                f"supervisions, or a manifest of cuts"
            )
        cut = _deserialised(where, row, found)
        if cut is not None:
            _cut(path, cut, found)


def _read_pair(recordings: Path, supervisions: Path, found: Collector) -> None:
    lhotse = the_library()
    by_id, said = {}, []
    for where, row in _rows(recordings, found):
        recording = _deserialised(where, row, found)
        if recording is not None and recording.id in by_id:
            found.fault("given twice", f"{recording.id} of {recordings}", f"{where} gives it again")
        elif recording is not None:
            by_id[recording.id] = recording
    for where, row in _rows(supervisions, found):
        supervision = _deserialised(where, row, found)
        if supervision is None:
            continue
        if supervision.recording_id in by_id:
            said.append(supervision)
        else:
            found.fault(
                "no such file",
                f"{supervision.id} of {supervisions}",
                f"there is no recording {supervision.recording_id} in {recordings.name}",
            )
    cuts = lhotse.CutSet.from_manifests(
        recordings=lhotse.RecordingSet.from_recordings(by_id.values()),
        supervisions=lhotse.SupervisionSet.from_segments(said),
    )
    for cut in cuts:
        _cut(recordings, cut, found)


def _cut(path: Path, cut: Any, found: Collector) -> None:
    name = f"{cut.id} of {path}"
    kind = type(cut).__name__
    if kind not in ("MonoCut", "MultiCut") or not cut.has_recording:
        return found.fault(
            "not usable",
            name,
            f"it is a {kind}, not one piece of one recording: write its audio to a file first, "
            f"with lhotse's CutSet.save_audios",
        )
    if changes := [one for one in map(_transform, cut.recording.transforms or []) if one]:
        return found.fault(
            "not usable",
            name,
            f"its recording is to be changed while it is read ({', '.join(changes)}): write it to "
            f"a file first, with lhotse's CutSet.save_audios",
        )
    if not cut.supervisions:
        return found.fault("no transcript", name, "it has no supervision")
    try:
        source, channel = _source(cut)
    except NearfutureError as error:
        return found.fault("not usable", name, str(error))
    for supervision in cut.supervisions:
        alone = len(cut.supervisions) == 1
        its_name = cut.id if alone else f"{cut.id}, {supervision.id}"
        if supervision.text is None:
            found.fault("no transcript", f"{its_name} of {path}", "its supervision has no text")
            continue
        begin_s = max(0.0, supervision.start)
        end_s = min(cut.duration, supervision.end)
        if end_s <= begin_s:
            found.fault("not usable", f"{its_name} of {path}", "its supervision is outside the cut")
            continue
        custom = {**(cut.custom or {}), **(supervision.custom or {})}
        split = str(custom.pop("split", "")) or _split_of(path)
        found.add(
            _located(path, source, str(custom.pop("copy", ""))),
            supervision.text,
            name=its_name,
            start_s=cut.start + begin_s,
            duration_s=end_s - begin_s,
            rate=cut.recording.sampling_rate,
            channel=channel,
            speaker=supervision.speaker or "",
            split=split,
            fields=_fields(supervision, custom),
        )
    return None


def _source(cut: Any) -> tuple[str, int | None]:
    """The file that holds a cut's channels, and the one that is meant, or None for all."""
    wanted = set(cut.channel if isinstance(cut.channel, list) else [cut.channel])
    holders = [source for source in cut.recording.sources if wanted <= set(source.channels)]
    if not holders:
        raise NearfutureError(f"no single file holds its channels {sorted(wanted)}")
    source = holders[0]
    if source.type != "file":
        raise NearfutureError(
            f"its audio is no file but a {source.type}, which is not run or fetched: write it to a "
            f"file first, with lhotse's CutSet.save_audios"
        )
    if wanted == set(source.channels):
        return str(source.source), None
    if len(wanted) > 1:
        raise NearfutureError(
            f"channels {sorted(wanted)} of {len(source.channels)}: name one, or all"
        )
    return str(source.source), list(source.channels).index(wanted.pop())


def _transform(transform: Any) -> str:
    """What changes the audio; resampling does not, since it is done anyway."""
    name = transform.get("name", "?") if isinstance(transform, dict) else type(transform).__name__
    return "" if name == "Resample" else str(name)


def _fields(supervision: Any, custom: Mapping[str, object]) -> dict[str, str]:
    told = {"language": supervision.language, "gender": supervision.gender, **custom}
    return as_fields(told.items())


def _located(path: Path, source: str, copy: str) -> Path:
    """As it says, beside the manifest, or where `import --copy` put it before the folder moved."""
    for candidate in (path.parent / source, Path(source)):
        if candidate.is_file():
            return candidate
    return path.parent / copy if copy and (path.parent / copy).is_file() else Path(source)


def _split_of(path: Path) -> str:
    """The split that a file's name tells, e.g. librispeech_recordings_dev-clean.jsonl.gz."""
    words = path.name.removesuffix(".gz").removesuffix(".jsonl").replace("-", "_").split("_")
    return next((s for s in map(split_named, words) if s in ("train", "dev", "test")), "")


def _named(folder: Path, what: str) -> list[Path]:
    files = (one for one in folder.iterdir() if one.name.endswith(_ENDINGS) and one.is_file())
    return sorted(one for one in files if what in one.name and not one.name.startswith("."))


def _pairs(folder: Path) -> list[tuple[Path, Path]]:
    both = (
        (one, one.with_name(one.name.replace("recordings", "supervisions")))
        for one in _named(folder, "recordings")
    )
    return [
        (recordings, supervisions) for recordings, supervisions in both if supervisions.is_file()
    ]


def _open(path: Path) -> Any:
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


def _rows(path: Path, found: Collector) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line's object, and where it stands."""
    the_library()
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
                    found.fault("not usable", where, f"it is no JSON: {error}")
                    continue
                if isinstance(row, dict):
                    yield where, row
                else:
                    found.fault("not usable", where, "it is no object of Lhotse")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise NearfutureError(f"cannot read {path}: {error}; was it cut off?") from error


def _deserialised(where: str, row: dict[str, Any], found: Collector) -> Any:
    from lhotse.serialization import deserialize_item

    try:
        return deserialize_item(row)
    except Exception as error:  # whatever lhotse's constructors raise for a row that lacks keys
        found.fault("not usable", where, f"it is no object of Lhotse: {error!r}")
        return None
