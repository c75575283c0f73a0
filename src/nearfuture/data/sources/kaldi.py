"""Kaldi's data directories: `wav.scp`, `text`, and perhaps `segments` and `utt2spk`."""

from __future__ import annotations

from pathlib import Path

from nearfuture.data.cut import SPLITS, Cut, split_named
from nearfuture.data.sources.builder import SourceBuilder
from nearfuture.data.sources.plain_text import LinesById
from nearfuture.error import NearfutureError


def is_folder(path: Path) -> bool:
    """Whether a folder is a data directory, or holds some, e.g. train and test."""
    return bool(_directories(path))


def read(path: Path, builder: SourceBuilder) -> None:
    """Add every utterance that has a text; the name of a directory states the split.

    Raises:
        NearfutureError: where there is no `text`, or a file is not UTF-8.
    """
    for folder in _directories(path):
        _read(folder, builder)


def _directories(path: Path) -> list[Path]:
    if (path / "wav.scp").is_file():
        return [path]
    return sorted(scp.parent for scp in path.glob("*/wav.scp"))


def _read(folder: Path, builder: SourceBuilder) -> None:
    if not (folder / "text").is_file():
        raise NearfutureError(
            f"{folder} has a wav.scp and no file 'text' with the transcripts",
            code="not_found",
            parameter="path",
        )
    files = {name: LinesById() for name in ("wav.scp", "text", "utt2spk", "segments")}
    for name, file in files.items():
        file.read(folder / name, builder, suffix=f" of {folder}")
    recordings, texts, speakers = (files[name].values for name in ("wav.scp", "text", "utt2spk"))
    utterances = "segments" if (folder / "segments").is_file() else "wav.scp"
    segments = files["segments"].values
    if utterances == "wav.scp":  # each recording is an utterance of the same name
        segments = {name: f"{name} 0 -1" for name in recordings}
    split = split_named(folder.resolve().name)
    used = set()
    for utterance, segment in segments.items():
        name = f"{utterance} of {folder}"
        try:
            recording, start, end = segment.split()
            start_s = float(start)
            duration_s = None if float(end) == -1 else float(end) - start_s
        except ValueError:
            reason = f"its segment is {segment!r}, not: recording, 2 times"
            builder.skip("not usable", name, reason)
            continue
        used.add(recording)
        if recording in files["wav.scp"].contradicted or utterance in files["text"].contradicted:
            continue  # named already
        if recording not in recordings:
            builder.skip("no such file", name, f"wav.scp has no recording {recording}")
        elif utterance not in texts:
            builder.skip("no transcript", name, "the file 'text' has no line for it")
        elif recordings[recording].endswith("|"):
            builder.skip(
                "not usable",
                name,
                f"its recording is a program, {recordings[recording]!r}, which is not run: run it "
                f"once, e.g. with Kaldi's wav-copy, and list the files that it writes",
            )
        else:
            builder.add(
                Cut(
                    name=name,
                    path=_located(folder, recordings[recording]),
                    text=texts[utterance],
                    start_s=start_s,
                    duration_s=duration_s,
                    speaker=speakers.get(utterance, ""),
                    split=split if split in SPLITS else "",
                )
            )
    if utterances == "segments":
        for recording in sorted(recordings.keys() - used):
            builder.skip("no transcript", f"{recording} of {folder}", "no segment is of it")
    for utterance in sorted(texts.keys() - segments.keys() - files[utterances].contradicted):
        builder.skip(
            "text without audio",
            f"{utterance} of {folder}",
            f"it has a text and no line in {utterances}",
        )


def _located(folder: Path, path: str) -> Path:
    """The file beside the list; or else, as in Kaldi, from the folder in which the program runs."""
    beside = folder / path
    return Path(path) if not beside.is_file() and Path(path).is_file() else beside
