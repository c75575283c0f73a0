"""Words with times as subtitles: cut into cues that can be read, written as SRT or WebVTT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from nearfuture.text.timed import TimedText

CUE_PAUSE_MS = 800.0
MAX_CUE_MS = 7000.0
MAX_CUE_CHARACTERS = 84
"""Two lines of 42, as broadcasters do it."""


@dataclass(frozen=True)
class Cue:
    """The words that are shown at once, at least one.

    >>> Cue((TimedText("two", 80.0, 200.0, 0.9), TimedText("ten", 240.0, 400.0, 0.8))).text
    'two ten'
    """

    words: tuple[TimedText, ...]

    @property
    def text(self) -> str:
        """The words, with single spaces."""
        return " ".join(word.text for word in self.words)

    @property
    def start_ms(self) -> float:
        """The start of the first word in ms."""
        return self.words[0].start_ms

    @property
    def end_ms(self) -> float:
        """The end of the last word in ms."""
        return self.words[-1].end_ms


def cues(words: Iterable[TimedText]) -> Iterator[Cue]:
    """Divide words into cues: at pauses of 0.8 s, and so that none exceeds 7 s or 84 characters.

    Every word is in exactly one cue, in order; a word that is longer than all that is alone. A cue
    comes as soon as the word behind it is known.

    >>> [cue.text for cue in cues([TimedText("a", 0, 100, 1.0), TimedText("b", 200, 300, 1.0),
    ...                            TimedText("c", 1100, 1200, 1.0)])]
    ['a b', 'c']
    """
    shown: list[TimedText] = []
    for word in words:
        if shown and _breaks(shown, word):
            yield Cue(tuple(shown))
            shown = []
        shown.append(word)
    if shown:
        yield Cue(tuple(shown))


def srt(words: Iterable[TimedText]) -> Iterator[str]:
    r"""Yield the words as SubRip: numbered cues, milliseconds behind a comma.

    >>> "".join(srt([TimedText("seven", 367.5, 3661002.0, 1.0)]))
    '1\n00:00:00,368 --> 01:01:01,002\nseven\n\n'
    """
    for number, cue in enumerate(cues(words), 1):
        yield f"{number}\n{_clock(cue.start_ms, ',')} --> {_clock(cue.end_ms, ',')}\n{cue.text}\n\n"


def vtt(words: Iterable[TimedText]) -> Iterator[str]:
    r"""Yield the words as WebVTT: a header, milliseconds behind a point, `&` and `<` as entities.

    >>> "".join(vtt([TimedText("r&b", 0.0, 500.0, 1.0)]))
    'WEBVTT\n\n00:00:00.000 --> 00:00:00.500\nr&amp;b\n\n'
    """
    yield "WEBVTT\n\n"
    for cue in cues(words):
        times = f"{_clock(cue.start_ms, '.')} --> {_clock(cue.end_ms, '.')}"
        yield f"{times}\n{escape(cue.text, quote=False)}\n\n"


def _breaks(shown: Sequence[TimedText], word: TimedText) -> bool:
    characters = sum(len(other.text) + 1 for other in shown) + len(word.text)
    return (
        word.start_ms - shown[-1].end_ms >= CUE_PAUSE_MS
        or word.end_ms - shown[0].start_ms > MAX_CUE_MS
        or characters > MAX_CUE_CHARACTERS
    )


def _clock(ms: float, point: str) -> str:
    seconds, thousandths = divmod(round(ms), 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{point}{thousandths:03}"
