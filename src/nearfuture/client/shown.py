"""When each word was shown, when for good, and what was taken back: one stream's captions."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearfuture.client.caption import Caption
from nearfuture.text import normalise


@dataclass(frozen=True, kw_only=True)
class ShownWord:
    """A word of the final text.

    Attributes:
        text: normalised.
        first_s: when it was first shown at its place in its utterance.
        settled_s: when it was shown so that neither it nor a word before it in its utterance
            changed any more.
    """

    text: str
    first_s: float
    settled_s: float


@dataclass
class _Place:
    """One place in an utterance: what stands there, since when, and what has stood there."""

    text: str
    since_s: float
    first_s: dict[str, float]


@dataclass
class _Utterance:
    places: list[_Place] = field(default_factory=list)
    beyond: list[dict[str, float]] = field(default_factory=list)  # of places now gone
    committed: list[str] = field(default_factory=list)
    continues: bool = False
    last: tuple[str, str] = ("", "")  # as it came


class Shown:
    """What one stream has shown, as a reader saw it.

    Text is normalised and compared in words. A word that grows by letters at the end of what is
    shown ("thr", "three") is not taken back by that; a word that becomes another one or goes is.
    Memory grows with the words and with what was taken back, not with the number of captions.

    Attributes:
        first_s: when the first word, or a part of it, was shown; None: never.
        complete_s: when the text became what it is at the end.
        revised: words that were shown and taken back.
        broken: committed words that were taken back; a protocol that keeps its promise has none.
        lags_s: for each caption that tells how much audio it has heard: how long after that audio
            was spoken it came.

    >>> shown = Shown()
    >>> shown.see(0.5, Caption(utterance="0", committed="", provisional="on", heard_ms=400))
    >>> shown.see(0.6, Caption(utterance="0", committed="one", provisional=" too", heard_ms=500))
    >>> shown.see(0.9, Caption(utterance="0", committed="one two", final=True, heard_ms=800))
    >>> shown.text, shown.first_s, shown.complete_s, shown.revised, shown.broken
    ('one two', 0.5, 0.9, 1, 0)
    >>> [(word.text, word.first_s, word.settled_s) for word in shown.words]
    [('one', 0.6, 0.6), ('two', 0.9, 0.9)]
    """

    def __init__(self) -> None:
        self.first_s: float | None = None
        self.complete_s: float | None = None
        self.revised = 0
        self.broken = 0
        self.lags_s: list[float] = []
        self._utterances: dict[str, _Utterance] = {}

    def see(self, at_s: float, caption: Caption) -> None:
        """Take note of a caption that came `at_s` seconds after the recording began."""
        if caption.heard_ms is not None:
            self.lags_s.append(at_s - caption.heard_ms / 1000)
        utterance = self._utterances.setdefault(caption.utterance, _Utterance())
        utterance.continues = caption.continues
        said = (caption.committed, caption.shown)
        if said == utterance.last:
            return
        if caption.committed != utterance.last[0]:
            committed = normalise(caption.committed).split()
            self.broken += _taken_back(utterance.committed, committed)
            utterance.committed = committed
        utterance.last = said
        words = normalise(caption.shown).split()
        before = [place.text for place in utterance.places]
        if words == before:
            return
        self.revised += _taken_back(before, words)
        _place(utterance, words, at_s)
        self.complete_s = at_s
        if self.first_s is None and words:
            self.first_s = at_s

    @property
    def words(self) -> list[ShownWord]:
        """The words of the text, utterance by utterance as they first appeared."""
        found: list[ShownWord] = []
        for utterance in self._utterances.values():
            words = [
                ShownWord(text=one.text, first_s=one.first_s[one.text], settled_s=one.since_s)
                for one in utterance.places
            ]
            if utterance.continues and found and words:
                words[0] = _joined(found.pop(), words[0])
            found += words
        return found

    @property
    def text(self) -> str:
        """All words in one line."""
        return " ".join(word.text for word in self.words)


def _joined(begin: ShownWord, end: ShownWord) -> ShownWord:
    """One word in two utterances: shown when its second part is."""
    return ShownWord(
        text=begin.text + end.text,
        first_s=max(begin.first_s, end.first_s),
        settled_s=max(begin.settled_s, end.settled_s),
    )


def _common(before: list[str], after: list[str]) -> int:
    """How many words both begin with."""
    pairs = zip(before, after, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))


def _taken_back(before: list[str], after: list[str]) -> int:
    kept = _common(before, after)
    grew = kept == len(before) - 1 and kept < len(after) and after[kept].startswith(before[kept])
    return len(before) - kept - grew


def _place(utterance: _Utterance, words: list[str], at_s: float) -> None:
    places, beyond = utterance.places, utterance.beyond
    kept = _common([place.text for place in places], words)
    gone = [place.first_s for place in places[kept:]]
    # What stood at a place is remembered although the place may be empty for a while.
    past = gone + beyond
    del places[kept:]
    for number, text in enumerate(words[kept:]):
        seen = past[number] if number < len(past) else {}
        seen.setdefault(text, at_s)
        places.append(_Place(text=text, since_s=at_s, first_s=seen))
    utterance.beyond = past[len(words) - kept :]
