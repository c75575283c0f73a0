"""Recordings in whatever form people have them, as one list of items."""

from __future__ import annotations

from pathlib import Path

from nearfuture.data.formats import folder, kaldi, lhotse_manifest, nemo, table
from nearfuture.data.item import Collector, Source
from nearfuture.error import NearfutureError

_LISTS = ("manifest.tsv", "manifest.csv", "manifest.jsonl", "manifest.json", "metadata.csv")


def read_source(path: Path, *, speaker_folders: bool = False) -> Source:
    """The rows of a source of recordings; no audio is read yet.

    What it may be:

    - a folder of recordings with a text file beside each (`a.wav`, `a.txt`), or with LibriSpeech's
      `*.trans.txt`; folders inside it that are called train, dev or test are its splits;
    - a CSV or TSV file with a header: `path` (or `audio`, `file`) and `transcript` (or `text`,
      `sentence`), perhaps `speaker`, `split`, `start`, `duration` in seconds;
    - NeMo's JSON lines: `audio_filepath`, `text`, perhaps `offset` and `duration`;
    - a Kaldi directory: `wav.scp`, `text`, perhaps `segments` and `utt2spk`, or a folder of these;
    - a manifest of Lhotse: cuts, or a folder with recordings and supervisions (needs lhotse);
    - a folder that holds one of these lists, or a corpus that `nearfuture data import` wrote.

    Text is UTF-8, with or without a byte order mark, with any line ends; it is normalised (Hangul
    and accents to NFC). A row without words, without its file, or that cannot be understood is a
    fault of the source, with its name and the reason; the others are its items.

    Args:
        path: of the source.
        speaker_folders: whether each folder inside names who speaks, `anna/1.wav`; below a folder
            that is a split, `train/anna/1.wav`. For folders of recordings without a list.

    Raises:
        NearfutureError: where there is nothing at `path`, or nothing that can be understood, and
            for `speaker_folders` where a list tells what there is.
    """
    path = Path(path)
    found = Collector(path)
    if path.is_dir():
        _folder(path, found, speaker_folders)
    elif path.is_file() and speaker_folders:
        raise NearfutureError(_NO_FOLDERS.format(path=path))
    elif path.is_file():
        _file(path, found)
    else:
        raise NearfutureError(
            f"there is no {path}: name a folder of recordings, or a list of them (CSV, TSV, JSON "
            f"lines, or a manifest of Lhotse)"
        )
    source = found.source()
    if not source.items and not source.faults:
        raise NearfutureError(
            f"{path} lists no recordings: a source is a folder of audio and text files, a CSV or "
            f"TSV file, NeMo's JSON lines, a Kaldi directory or a manifest of Lhotse"
        )
    return source


_NO_FOLDERS = (
    "{path} is a list of recordings, whose folders name no speakers: leave out speaker_folders, "
    "and let the list tell them"
)


def _folder(path: Path, found: Collector, speaker_folders: bool) -> None:
    lists = [path / name for name in _LISTS if (path / name).is_file()]
    if speaker_folders and (lists or lhotse_manifest.is_folder(path) or kaldi.is_folder(path)):
        raise NearfutureError(_NO_FOLDERS.format(path=path))
    if lhotse_manifest.is_folder(path):
        lhotse_manifest.read_folder(path, found)
    elif kaldi.is_folder(path):
        kaldi.read(path, found)
    elif lists:
        _file(lists[0], found)
    else:
        folder.read(path, found, speaker_folders=speaker_folders)


def _file(path: Path, found: Collector) -> None:
    if path.suffix.lower() in folder.AUDIO:
        raise NearfutureError(
            f"{path} is a recording: name the folder it is in, or a list of recordings with texts"
        )
    if path.name == "wav.scp":
        kaldi.read(path.parent, found)
    elif lhotse_manifest.is_file(path):
        lhotse_manifest.read(path, found)
    elif nemo.is_file(path):
        nemo.read(path, found)
    else:
        table.read(path, found)
