"""Kaldi's data directories: `wav.scp`, `text`, and perhaps `segments` and `utt2spk`."""

from __future__ import annotations

from pathlib import Path

from nearfuture.data.formats.plain_text import Said
from nearfuture.data.item import Collector, split_named
from nearfuture.error import NearfutureError


def is_folder(path: Path) -> bool:
    """Whether it is one, or holds some, e.g. train and test."""
    return bool(_directories(path))


def read(path: Path, found: Collector) -> None:
    """Every utterance that has a text; the name of a directory tells the split.

    Raises:
        NearfutureError: where there is no `text`, or a file is not UTF-8.
    """
    for folder in _directories(path):
        _read(folder, found)


def _directories(path: Path) -> list[Path]:
    if (path / "wav.scp").is_file():
        return [path]
    return sorted(scp.parent for scp in path.glob("*/wav.scp"))


def _read(folder: Path, found: Collector) -> None:
    if not (folder / "text").is_file():
        raise NearfutureError(f"{folder} has a wav.scp and no file 'text' with the transcripts")
    told = {name: Said() for name in ("wav.scp", "text", "utt2spk", "segments")}
    for name, said in told.items():
        said.read(folder / name, found, of=f" of {folder}")
    recordings, texts, speakers = (told[name].by_id for name in ("wav.scp", "text", "utt2spk"))
    names = "segments" if (folder / "segments").is_file() else "wav.scp"
    segments = told["segments"].by_id if names == "segments" else dict.fromkeys(recordings, "")
    contradicted = told[names].contradicted
    heard = set()
    split = split_named(folder.resolve().name)
    split = split if split in ("train", "dev", "test") else ""
    for utterance, where in segments.items():
        name = f"{utterance} of {folder}"
        recording, start_s, duration_s = utterance, 0.0, None
        if where:
            try:
                recording, start, end = where.split()
                start_s = float(start)
                duration_s = None if float(end) == -1 else float(end) - start_s
            except ValueError:
                found.fault(
                    "not usable", name, f"its segment is {where!r}, not: recording, 2 times"
                )
                continue
            if start_s < 0 or (duration_s is not None and duration_s <= 0):
                found.fault("not usable", name, f"no segment is {where!r}")
                continue
        heard.add(recording)
        if recording in told["wav.scp"].contradicted or utterance in told["text"].contradicted:
            continue  # named already
        if recording not in recordings:
            found.fault("no such file", name, f"wav.scp has no recording {recording}")
        elif utterance not in texts:
            found.fault("no transcript", name, "the file 'text' has no line for it")
        elif recordings[recording].endswith("|"):
            found.fault(
                "not usable",
                name,
                f"its recording is a program, {recordings[recording]!r}, which is not run: run it "
                f"once, e.g. with Kaldi's wav-copy, and list the files that it writes",
            )
        else:
            found.add(
                _located(folder, recordings[recording]),
                texts[utterance],
                name=name,
                start_s=start_s,
                duration_s=duration_s,
                speaker=speakers.get(utterance, ""),
                split=split,
            )
    if names == "segments":
        for recording in sorted(recordings.keys() - heard):
            found.fault("no transcript", f"{recording} of {folder}", "no segment is of it")
    for utterance in sorted(texts.keys() - segments.keys() - contradicted):
        found.fault(
            "text without audio",
            f"{utterance} of {folder}",
            f"it has a text and no line in {names}",
        )


def _located(folder: Path, path: str) -> Path:
    """Beside the list; or else, as in Kaldi, from the folder in which the program runs."""
    beside = folder / path
    return Path(path) if not beside.is_file() and Path(path).is_file() else beside
