"""What a source of recordings holds, and everything in it that would spoil a training."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nearfuture.audio import AudioError
from nearfuture.audio.mixdown import QUIETEST, Mixdown
from nearfuture.audio.probe import SHORT_S, Probe, first_sound, probe
from nearfuture.data.cut import SPLITS, Cut, CutError, Skipped
from nearfuture.data.filter import CutFilter, silent
from nearfuture.data.report import CorpusIssue, CorpusReport
from nearfuture.data.sources import Source, read_source

UNUSED = "in none of the splits train, dev and test, so that nobody uses it"
"""The kind of issue that names what neither a training nor an evaluation uses."""

_FILTER = CutFilter()
_PIECE = 1 << 12


def check(
    source: Source | Path,
    *,
    symbols: Sequence[str] | None = None,
    cut_filter: CutFilter = _FILTER,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> CorpusReport:
    """Examine every recording's header and end, every text, and what they have in common.

    Of most recordings no more is decoded than their end, and from their beginning to a second of
    sound, which shows silence and channels that cancel each other; parts of files are decoded, and
    so is what is stored as floats. Damage in the middle of a FLAC file is found when it is loaded.
    Files are compared byte by byte only where their sizes are the same.

    Args:
        source: a source, or the path of one.
        symbols: the characters that the model can write; by default all that the texts contain.
        cut_filter: names the recordings that trainings skip.
        progress: called with the recordings examined, and all of them.

    Raises:
        NearfutureError: where the path is no source.
    """
    source = source if isinstance(source, Source) else read_source(source)
    issues = _Issues()
    unusable = list(source.skipped)
    rejected: list[Skipped] = []
    files: dict[Path, _AudioFile | AudioError] = {}
    cuts: list[Cut] = []
    for number, cut in enumerate(source.cuts):
        progress(number, len(source.cuts))
        try:
            file = _file(cut.path, files, issues)
            if isinstance(file, AudioError):
                raise cut.unreadable(file)
            cut = cut.probed(file.probe)
            is_silent = _is_silent(cut, file)
        except CutError as error:
            unusable.append(error.skipped)
            continue
        cuts.append(cut)
        if rejection := cut_filter.reject(cut.name, cut.text, cut.duration_s or 0.0):
            rejected.append(rejection)
        elif is_silent:
            rejected.append(silent(cut))
    progress(len(source.cuts), len(source.cuts))
    for row in (*unusable, *rejected):
        issues.add(row.code, row.name, row.reason)
    if symbols is not None:
        _characters(cuts, set(symbols), issues)
    _same_audio(cuts, issues)
    _alike_names(cuts, issues)
    _shared(cuts, issues)
    _unused(cuts, issues)
    used = [file for cut in cuts if isinstance(file := files[cut.path], _AudioFile)]
    return CorpusReport(
        path=source.path,
        rows=len(source.cuts) + len(source.skipped),
        cuts=tuple(cuts),
        rejected=tuple(rejected),
        channels=dict(sorted(Counter(file.probe.channels for file in used).items())),
        issues=issues.all(),
    )


@dataclass(frozen=True)
class _AudioFile:
    probe: Probe
    mixdown: Mixdown


class _Issues:
    def __init__(self) -> None:
        self._examples: dict[tuple[str, bool], list[tuple[str, str]]] = defaultdict(list)

    def add(self, kind: str, name: str, reason: str, *, wrong: bool = True) -> None:
        self._examples[kind, wrong].append((name, reason))

    def all(self) -> tuple[CorpusIssue, ...]:
        """The first problem of the cut."""
        issues = [
            CorpusIssue(kind=kind, wrong=wrong, examples=tuple(examples))
            for (kind, wrong), examples in self._examples.items()
        ]
        return tuple(sorted(issues, key=lambda issue: not issue.wrong))


def _file(
    path: Path, files: dict[Path, _AudioFile | AudioError], issues: _Issues
) -> _AudioFile | AudioError:
    """A file's header and channels, or why they cannot be read; each file is opened once."""
    if path not in files:
        try:
            files[path] = file = _AudioFile(probe(path), first_sound(path))
        except AudioError as error:
            files[path] = error
        else:
            _channels(path, file.mixdown, issues)
    return files[path]


def _is_silent(cut: Cut, file: _AudioFile) -> bool:
    """Whether a cut has no sound; a part of a file with sound is decoded."""
    whole = cut.channel is None and (cut.duration_s or 0.0) > file.probe.seconds - SHORT_S
    if file.mixdown.silent or whole:
        return file.mixdown.silent
    return bool(np.abs(cut.read().samples).max(initial=0.0) <= QUIETEST)


def _channels(path: Path, mixdown: Mixdown, issues: _Issues) -> None:
    if mixdown.chosen is not None:
        reason = f"their mean would be silence: channel {mixdown.chosen} is used alone"
        issues.add("channels that cancel each other", str(path), reason, wrong=False)
    if mixdown.dead:
        which = ", ".join(map(str, mixdown.dead))
        issues.add("silent channels", str(path), f"nothing is on channel {which}", wrong=False)


def _characters(cuts: Iterable[Cut], known: set[str], issues: _Issues) -> None:
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for cut in cuts:
        for character in cut.text:
            if character not in known:
                counts[character] += 1
                first.setdefault(character, cut.name)
    for character, count in counts.most_common():
        times = "once, in" if count == 1 else f"{count} times, first in"
        issues.add("outside the vocabulary", repr(character), f"{times} {first[character]}")


def _same_audio(cuts: Sequence[Cut], issues: _Issues) -> None:
    """The same bytes, and the same part of them, under two names."""
    first_of = {path: group[0] for group in _alike(cuts) for path in group}
    groups: dict[Hashable, list[Cut]] = defaultdict(list)
    for cut in cuts:
        part = (round(cut.start_s, 3), round(cut.duration_s or 0.0, 3), cut.channel)
        groups[first_of.get(cut.path, cut.path), part].append(cut)
    for first, *others in groups.values():
        for other in others:
            if other.text != first.text:
                texts = f"{other.text!r} here, {first.text!r} in {first.name}"
                issues.add("same audio with two texts", other.name, texts)
            same = f"the same as {first.name}"
            if other.split != first.split:
                splits = " and ".join(cut.split or "no split" for cut in (other, first))
                issues.add("same audio in two splits", other.name, f"{same} ({splits})")
            elif other.text == first.text:
                issues.add("same audio twice", other.name, same, wrong=False)


def _alike_names(cuts: Sequence[Cut], issues: _Issues) -> None:
    """Files whose names look the same, and are spelt differently."""
    first: dict[str, Path] = {}
    for path in sorted({cut.path for cut in cuts if not str(cut.path).isascii()}):
        other = first.setdefault(unicodedata.normalize("NFC", str(path)), path)
        if other != path:
            forms = (unicodedata.is_normalized("NFC", str(name)) for name in (path, other))
            mine, its = ("composed" if composed else "decomposed" for composed in forms)
            reason = f"another file has this name with {its} characters, here they are {mine}"
            issues.add("two names that look the same", str(path), reason, wrong=False)


def _alike(cuts: Sequence[Cut]) -> Iterator[list[Path]]:
    """Groups of files of the same content: of the same size, then a piece, then all of them."""
    groups: Iterable[Sequence[Path]] = [sorted({cut.path for cut in cuts})]
    for key in (_size, _piece, _digest):
        groups = [alike for group in groups for alike in _grouped(group, key)]
    for group in groups:
        yield list(group)


def _grouped(paths: Sequence[Path], key: Callable[[Path], Hashable]) -> list[list[Path]]:
    groups: dict[Hashable, list[Path]] = defaultdict(list)
    for path in paths:
        groups[key(path)].append(path)
    return [group for group in groups.values() if len(group) > 1]


def _size(path: Path) -> int:
    return path.stat().st_size


def _piece(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(path.stat().st_size // 2)
        return hashlib.sha256(file.read(_PIECE)).digest()


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _shared(cuts: Iterable[Cut], issues: _Issues) -> None:
    """What two splits have in common besides audio: worth knowing, and sometimes meant."""
    texts: dict[tuple[str, str], dict[str, Cut]] = defaultdict(dict)
    splits: dict[str, set[str]] = defaultdict(set)
    for cut in cuts:
        if cut.speaker:
            texts[cut.speaker, cut.text].setdefault(cut.split, cut)
            splits[cut.speaker].add(cut.split)
    for (speaker, text), by_split in texts.items():
        first, *others = by_split.values()
        for other in others:
            issues.add(
                "same words of a speaker in two splits",
                other.name,
                f"{speaker} says {text!r} in {first.name}, too ({other.split or 'no split'} "
                f"and {first.split or 'no split'})",
                wrong=False,
            )
    for speaker, names in splits.items():
        if len(names) > 1:
            listed = ", ".join(sorted(name or "none" for name in names))
            issues.add("speaker in two splits", speaker, listed, wrong=False)


def _unused(cuts: Sequence[Cut], issues: _Issues) -> None:
    """Cuts in no split that anybody uses, where others are in one."""
    if any(cut.split for cut in cuts):
        for cut in cuts:
            if cut.split not in SPLITS:
                reason = f"its split is {cut.split!r}" if cut.split else "it has no split"
                issues.add(UNUSED, cut.name, reason, wrong=False)
