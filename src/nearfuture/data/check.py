"""What a source of recordings holds, and everything in it that would spoil a training."""

from __future__ import annotations

import hashlib
import statistics
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nearfuture.audio import AudioError
from nearfuture.audio.mixdown import QUIETEST, Mixdown
from nearfuture.audio.probe import SHORT_S, CutOff, Probe, first_sound, probe, read_part
from nearfuture.data.item import SPLITS, Item, Source, probed
from nearfuture.data.limits import Limits
from nearfuture.data.report import Finding, Report
from nearfuture.data.source import read_source
from nearfuture.error import NearfutureError

UNUSED = "in none of the splits train, dev and test, so that nobody uses it"
"""The kind of finding that names what neither a training nor an evaluation takes."""

_LIMITS = Limits()
_PIECE = 1 << 12


def check(
    source: Source | Path,
    *,
    symbols: Sequence[str] | None = None,
    limits: Limits = _LIMITS,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Look at every recording's header and end, at every text, and at what they have in common.

    Of most recordings no more is decoded than their end, and from their beginning to a second of
    sound, which tells silence and channels that cancel each other; parts of files are decoded, and
    so is what is stored as floats. Damage in the middle of a FLAC file is found when it is loaded.
    Files are compared byte by byte only where their sizes are the same.

    Args:
        source: a source, or the path of one.
        symbols: the characters that the model can write; whatever is in the texts unless given.
        limits: recordings that are too long, or too short for their text, are named.
        progress: called with the recordings looked at, and all of them.

    Raises:
        NearfutureError: where the path is no source.
    """
    source = source if isinstance(source, Source) else read_source(source)
    findings = _Findings()
    for fault in source.faults:
        findings.add(fault.kind, fault.name, fault.reason)
    items, probes = _usable(source.items, findings, progress)
    items = _sounding(items, probes, findings)
    for item in items:
        if broken := limits.broken(item.duration_s or 0.0, item.text):
            kind, reason = broken
            findings.add(kind, item.name, reason)
    if symbols is not None:
        _characters(items, set(symbols), findings)
    _same_audio(items, findings)
    _alike_names(items, findings)
    _shared(items, findings)
    _unused(items, findings)
    seconds = [item.duration_s or 0.0 for item in items]
    splits: dict[str, list[float]] = defaultdict(list)
    for item, duration in zip(items, seconds, strict=True):
        splits[item.split].append(duration)
    return Report(
        path=source.path,
        rows=len(source.items) + len(source.faults),
        items=tuple(items),
        seconds=sum(seconds),
        shortest_s=min(seconds, default=0.0),
        median_s=statistics.median(seconds) if seconds else 0.0,
        longest_s=max(seconds, default=0.0),
        rates=_counted(item.rate or 0 for item in items),
        channels=_counted(probes[item.path].channels for item in items),
        splits={name: (len(all_), sum(all_)) for name, all_ in sorted(splits.items())},
        speakers=len({item.speaker for item in items if item.speaker}),
        symbols="".join(sorted({character for item in items for character in item.text})),
        findings=findings.all(),
    )


@dataclass
class _Findings:
    wrong: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    notes: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def add(self, kind: str, name: str, reason: str, *, wrong: bool = True) -> None:
        (self.wrong if wrong else self.notes).setdefault(kind, []).append((name, reason))

    def all(self) -> tuple[Finding, ...]:
        return tuple(
            Finding(kind=kind, wrong=wrong, examples=tuple(examples))
            for wrong, kinds in ((True, self.wrong), (False, self.notes))
            for kind, examples in kinds.items()
        )


def _usable(
    items: Sequence[Item], findings: _Findings, progress: Callable[[int, int], None] | None
) -> tuple[list[Item], dict[Path, Probe]]:
    """The items whose audio is there, with their durations and rates."""
    probes: dict[Path, Probe] = {}
    broken: dict[Path, AudioError] = {}
    usable = []
    for number, item in enumerate(items):
        if progress:
            progress(number, len(items))
        try:
            if item.path in broken:
                raise broken[item.path]
            if item.path not in probes:
                probes[item.path] = probe(item.path)
            usable.append(probed(item, probes[item.path]))
        except AudioError as error:
            broken[item.path] = error
            kind = "cut off" if isinstance(error, CutOff) else "cannot be read"
            findings.add(kind, item.name, _without(str(error), item))
        except NearfutureError as error:
            findings.add("not in its file", item.name, _without(str(error), item))
    if progress:
        progress(len(items), len(items))
    return usable, probes


def _sounding(
    items: Sequence[Item], probes: Mapping[Path, Probe], findings: _Findings
) -> list[Item]:
    """The items that can be decoded as far as their first sound; silence and channels are named."""
    heard: dict[Path, Mixdown] = {}
    usable = []
    for item in items:
        try:
            if item.path not in heard:
                heard[item.path] = first_sound(item.path)
                _channels(item.path, heard[item.path], findings)
            silent = heard[item.path].silent
            whole = (item.duration_s or 0.0) > probes[item.path].seconds - SHORT_S
            if not silent and not (whole and item.channel is None):
                part = read_part(
                    item.path,
                    start_s=item.start_s,
                    duration_s=item.duration_s,
                    channel=item.channel,
                )
                silent = bool(np.abs(part.samples).max(initial=0.0) <= QUIETEST)
        except AudioError as error:
            findings.add("cannot be read", item.name, _without(str(error), item))
            continue
        usable.append(item)
        if silent:
            findings.add("silent", item.name, f"nothing is heard, but its text is {item.text!r}")
    return usable


def _channels(path: Path, mixdown: Mixdown, findings: _Findings) -> None:
    if mixdown.chosen is not None:
        reason = f"their mean would be silence: channel {mixdown.chosen} is used alone"
        findings.add("channels that cancel each other", str(path), reason, wrong=False)
    if mixdown.dead:
        which = ", ".join(map(str, mixdown.dead))
        findings.add("silent channels", str(path), f"nothing is on channel {which}", wrong=False)


def _without(message: str, item: Item) -> str:
    """A reason that does not say again which file it is about."""
    for name in (f"{item.name}: ", f"{item.path} "):
        message = message.removeprefix(name) if str(item.path) in item.name else message
    return message


def _characters(items: Iterable[Item], known: set[str], findings: _Findings) -> None:
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for item in items:
        for character in item.text:
            if character not in known:
                counts[character] += 1
                first.setdefault(character, item.name)
    for character, count in counts.most_common():
        times = "once, in" if count == 1 else f"{count} times, first in"
        findings.add("outside the vocabulary", repr(character), f"{times} {first[character]}")


def _same_audio(items: Sequence[Item], findings: _Findings) -> None:
    """The same bytes, and the same part of them, under two names."""
    first_of = {path: group[0] for group in _alike(items) for path in group}
    groups: dict[Hashable, list[Item]] = defaultdict(list)
    for item in items:
        part = (round(item.start_s, 3), round(item.duration_s or 0.0, 3), item.channel)
        groups[first_of.get(item.path, item.path), part].append(item)
    for first, *others in groups.values():
        for other in others:
            if other.text != first.text:
                said = f"{other.text!r} here, {first.text!r} in {first.name}"
                findings.add("same audio with two texts", other.name, said)
            same = f"the same as {first.name}"
            if other.split != first.split:
                names = [one.split or "no split" for one in (other, first)]
                where = f"{same} ({' and '.join(names)})"
                findings.add("same audio in two splits", other.name, where)
            elif other.text == first.text:
                findings.add("same audio twice", other.name, same, wrong=False)


def _alike_names(items: Sequence[Item], findings: _Findings) -> None:
    """Files whose names look the same, and are spelt differently."""
    first: dict[str, Path] = {}
    for path in sorted({item.path for item in items if not str(item.path).isascii()}):
        other = first.setdefault(unicodedata.normalize("NFC", str(path)), path)
        if other != path:
            forms = (unicodedata.is_normalized("NFC", str(one)) for one in (path, other))
            mine, its = ("composed" if composed else "decomposed" for composed in forms)
            said = f"another file has this name with {its} characters, here they are {mine}"
            findings.add("two names that look the same", str(path), said, wrong=False)


def _alike(items: Sequence[Item]) -> Iterator[list[Path]]:
    """Groups of files of the same content: of the same size, then a piece, then all of them."""
    groups: Iterable[Sequence[Path]] = [sorted({item.path for item in items})]
    for key in (_size, _piece, _digest):
        groups = [found for group in groups for found in _grouped(group, key)]
    for group in groups:
        yield list(group)


def _grouped(paths: Sequence[Path], key: Callable[[Path], Hashable]) -> list[list[Path]]:
    found: dict[Hashable, list[Path]] = defaultdict(list)
    for path in paths:
        found[key(path)].append(path)
    return [group for group in found.values() if len(group) > 1]


def _size(path: Path) -> int:
    return path.stat().st_size


def _piece(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(path.stat().st_size // 2)
        return hashlib.sha256(file.read(_PIECE)).digest()


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _shared(items: Iterable[Item], findings: _Findings) -> None:
    """What two splits have in common besides audio: worth knowing, and sometimes meant."""
    said: dict[tuple[str, str], dict[str, Item]] = defaultdict(dict)
    heard: dict[str, set[str]] = defaultdict(set)
    for item in items:
        if item.speaker:
            said[item.speaker, item.text].setdefault(item.split, item)
            heard[item.speaker].add(item.split)
    for (speaker, text), by_split in said.items():
        first, *others = by_split.values()
        for other in others:
            findings.add(
                "same words of a speaker in two splits",
                other.name,
                f"{speaker} says {text!r} in {first.name}, too ({other.split or 'no split'} "
                f"and {first.split or 'no split'})",
                wrong=False,
            )
    for speaker, splits in heard.items():
        if len(splits) > 1:
            names = ", ".join(sorted(name or "none" for name in splits))
            findings.add("speaker in two splits", speaker, names, wrong=False)


def _unused(items: Sequence[Item], findings: _Findings) -> None:
    """What is in no split that anybody uses, where others are in one."""
    if any(item.split for item in items):
        for item in items:
            if item.split not in SPLITS:
                told = f"its split is {item.split!r}" if item.split else "it has no split"
                findings.add(UNUSED, item.name, told, wrong=False)


def _counted(values: Iterable[int]) -> dict[int, int]:
    return dict(sorted(Counter(values).items()))
