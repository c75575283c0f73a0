"""When each word was shown, when for good, and what was revised: one stream's captions.

Each place in an utterance remembers which words stood there and when each first did. A caption
keeps the words that it has in common with the one before, from the start of the utterance, and
replaces the others. For the captions "on" (0.5 s), "one too" (0.6 s), "one two" (0.9 s):

    place 0   "on" 0.5, "one" 0.6      shown first at 0.6, settled at 0.6
    place 1   "too" 0.6, "two" 0.9     shown first at 0.9, settled at 0.9; one revision
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nearfuture.client.caption import Caption
from nearfuture.text import normalise


@dataclass(frozen=True, kw_only=True)
class DisplayedWord:
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
    """One place in an utterance: its word, since when, and when each word first stood there."""

    text: str
    since_s: float
    first_s: dict[str, float]


@dataclass
class _Utterance:
    places: list[_Place] = field(default_factory=list)
    removed: list[dict[str, float]] = field(default_factory=list)  # `first_s` of places now gone
    committed: list[str] = field(default_factory=list)
    continues: bool = False
    last: tuple[str, str] = ("", "")  # as it came


class CaptionTimeline:
    """The text that one stream has shown, as a reader saw it.

    Text is normalised and compared in words. A word that grows by letters at the end of what is
    shown ("thr", "three") is not revised by that; a word that becomes another one or goes is.
    Memory grows with the words and with the revisions, not with the number of captions.

    Attributes:
        first_s: when the first word, or a part of it, was shown; None: never.
        complete_s: when the text became what it is at the end.
        revised: words that were shown and then replaced or removed.
        committed_revised: committed words among them; a protocol that keeps its promise has none.
        lags_s: for each caption that states how much audio it covers: how long after that audio
            was spoken it came.

    >>> timeline = CaptionTimeline()
    >>> timeline.add(0.5, Caption(utterance="0", committed="", provisional="on", audio_ms=400))
    >>> timeline.add(0.6, Caption(utterance="0", committed="one", provisional=" too", audio_ms=500))
    >>> timeline.add(0.9, Caption(utterance="0", committed="one two", final=True, audio_ms=800))
    >>> timeline.text, timeline.first_s, timeline.complete_s
    ('one two', 0.5, 0.9)
    >>> timeline.revised, timeline.committed_revised
    (1, 0)
    >>> [(word.text, word.first_s, word.settled_s) for word in timeline.words]
    [('one', 0.6, 0.6), ('two', 0.9, 0.9)]
    """

    def __init__(self) -> None:
        self.first_s: float | None = None
        self.complete_s: float | None = None
        self.revised = 0
        self.committed_revised = 0
        self.lags_s: list[float] = []
        self._utterances: dict[str, _Utterance] = {}

    def add(self, at_s: float, caption: Caption) -> None:
        """Add a caption that came `at_s` seconds after the recording began."""
        if caption.audio_ms is not None:
            self.lags_s.append(at_s - caption.audio_ms / 1000)
        utterance = self._utterances.setdefault(caption.utterance, _Utterance())
        utterance.continues = caption.continues
        texts = (caption.committed, caption.text)
        if texts == utterance.last:
            return
        if caption.committed != utterance.last[0]:
            committed = normalise(caption.committed).split()
            self.committed_revised += _revisions(utterance.committed, committed)
            utterance.committed = committed
        utterance.last = texts
        words = normalise(caption.text).split()
        before = [place.text for place in utterance.places]
        if words == before:
            return
        self.revised += _revisions(before, words)
        _replace(utterance, words, at_s)
        self.complete_s = at_s
        if self.first_s is None and words:
            self.first_s = at_s

    @property
    def words(self) -> list[DisplayedWord]:
        """The words of the text, utterance by utterance as they first appeared."""
        words: list[DisplayedWord] = []
        for utterance in self._utterances.values():
            displayed = [
                DisplayedWord(
                    text=place.text, first_s=place.first_s[place.text], settled_s=place.since_s
                )
                for place in utterance.places
            ]
            if utterance.continues and words and displayed:
                displayed[0] = _joined(words.pop(), displayed[0])
            words += displayed
        return words

    @property
    def text(self) -> str:
        """All words in one line."""
        return " ".join(word.text for word in self.words)


def _joined(begin: DisplayedWord, end: DisplayedWord) -> DisplayedWord:
    """Join a word in two utterances: it is shown when its second part is."""
    return DisplayedWord(
        text=begin.text + end.text,
        first_s=max(begin.first_s, end.first_s),
        settled_s=max(begin.settled_s, end.settled_s),
    )


def _common(before: list[str], after: list[str]) -> int:
    """Count the words with which both begin."""
    pairs = zip(before, after, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))


def _revisions(before: list[str], after: list[str]) -> int:
    """Count the words that were replaced or removed, apart from a last one that only grew."""
    kept = _common(before, after)
    grew = kept == len(before) - 1 and kept < len(after) and after[kept].startswith(before[kept])
    return len(before) - kept - grew


def _replace(utterance: _Utterance, words: list[str], at_s: float) -> None:
    """Put the words that differ from those before into their places."""
    places = utterance.places
    kept = _common([place.text for place in places], words)
    # What stood at a place is remembered although the place may be empty for a while.
    history = [place.first_s for place in places[kept:]] + utterance.removed
    del places[kept:]
    for number, text in enumerate(words[kept:]):
        first_s = history[number] if number < len(history) else {}
        first_s.setdefault(text, at_s)
        places.append(_Place(text=text, since_s=at_s, first_s=first_s))
    utterance.removed = history[len(words) - kept :]
