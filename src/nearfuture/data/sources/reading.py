"""Recordings in whatever form people have them, as one list of cuts."""

from __future__ import annotations

from pathlib import Path

from nearfuture.data.sources import folder, kaldi, lhotse_manifest, nemo, table
from nearfuture.data.sources.builder import Source, SourceBuilder
from nearfuture.error import NearfutureError

_LISTS = ("manifest.tsv", "manifest.csv", "manifest.jsonl", "manifest.json", "metadata.csv")


def read_source(path: Path, *, speaker_folders: bool = False) -> Source:
    """Read the cuts of a source of recordings; no audio is read yet.

    A source is one of these:

    - a folder of recordings with a text file beside each (`a.wav`, `a.txt`), or with LibriSpeech's
      `*.trans.txt`; folders inside it that are called train, dev or test are its splits;
    - a CSV or TSV file with a header: `path` (or `audio`, `file`) and `transcript` (or `text`,
      `sentence`), perhaps `speaker`, `split`, `start`, `duration` in seconds;
    - NeMo's JSON lines: `audio_filepath`, `text`, perhaps `offset` and `duration`;
    - a Kaldi directory: `wav.scp`, `text`, perhaps `segments` and `utt2spk`, or a folder of these;
    - a Lhotse manifest: cuts, or a folder with recordings and supervisions (needs lhotse);
    - a folder that holds one of these lists, or a corpus that `nearfuture data import` wrote.

    Text is UTF-8, with or without a byte order mark, with any line ends; it is normalised (Hangul
    and accents to NFC). A row without words, without its file, or that cannot be understood is
    skipped, with its name and the reason; the others are the cuts.

    Args:
        path: of the source.
        speaker_folders: whether each folder inside names who speaks, `anna/1.wav`; below a folder
            that is a split, `train/anna/1.wav`. For folders of recordings without a list.

    Raises:
        NearfutureError: where there is nothing at `path`, or nothing that can be understood, and
            for `speaker_folders` where a list states the speakers.
    """
    path = Path(path)
    builder = SourceBuilder(path)
    if path.is_dir():
        _read_folder(path, builder, speaker_folders)
    elif path.is_file():
        _refuse_speaker_folders(path, speaker_folders)
        _read_file(path, builder)
    else:
        raise NearfutureError(
            f"there is no file or folder {path}: name a folder of recordings, or a list of "
            f"them (CSV, TSV, JSON lines, or a Lhotse manifest)",
            code="not_found",
            parameter="path",
        )
    source = builder.build()
    if not source.cuts and not source.skipped:
        raise NearfutureError(
            f"{path} lists no recordings: a source is a folder of audio and text files, a CSV or "
            f"TSV file, NeMo's JSON lines, a Kaldi directory or a Lhotse manifest",
            code="not_found",
            parameter="path",
        )
    return source


def _refuse_speaker_folders(path: Path, speaker_folders: bool) -> None:
    if speaker_folders:
        raise NearfutureError(
            f"{path} is a list of recordings, whose folders name no speakers: leave out "
            f"`speaker_folders`, and let the list name them",
            code="conflict",
            parameter="speaker_folders",
        )


def _read_folder(path: Path, builder: SourceBuilder, speaker_folders: bool) -> None:
    lists = [path / name for name in _LISTS if (path / name).is_file()]
    if lhotse_manifest.is_folder(path):
        _refuse_speaker_folders(path, speaker_folders)
        lhotse_manifest.read_folder(path, builder)
    elif kaldi.is_folder(path):
        _refuse_speaker_folders(path, speaker_folders)
        kaldi.read(path, builder)
    elif lists:
        _refuse_speaker_folders(path, speaker_folders)
        _read_file(lists[0], builder)
    else:
        folder.read(path, builder, speaker_folders=speaker_folders)


def _read_file(path: Path, builder: SourceBuilder) -> None:
    if path.suffix.lower() in folder.AUDIO:
        raise NearfutureError(
            f"{path} is a recording: name the folder it is in, or a list of recordings with texts",
            code="unsupported",
            parameter="path",
        )
    if path.name == "wav.scp":
        kaldi.read(path.parent, builder)
    elif lhotse_manifest.is_file(path):
        lhotse_manifest.read(path, builder)
    elif nemo.is_file(path):
        nemo.read(path, builder)
    else:
        table.read(path, builder)
