"""A long recording aligned with its text, and the segments between its silences.

Shapes: `T` frames, `V` vocabulary with the blank, `n` samples.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding import AlignedWord, align, greedy_text
from nearfuture.decoding.alignment import words_of
from nearfuture.decoding.distribution import check_distributions
from nearfuture.text import BLANK, Vocabulary, character_errors

_COST_WITHIN_A_WORD = 1.0  # of each frame of a silence, in nats
_MARGIN_MS = 500.0  # of the silence around a segment, at most so much goes with it on each side


@dataclass(frozen=True)
class Cut:
    """Frames of a segment: with its silence `start` to `stop`, without it `begin` to `end`."""

    start: int
    begin: int
    end: int
    stop: int


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A stretch of a long recording; times are of the whole recording.

    Args:
        start_ms, end_ms: where to cut: in silence, half a second from its speech at most.
        text: what the text says there.
        heard: what the model reads there by itself (greedily).
        words: of the text, with their times.
        cost: `-log p(path)` of its frames for each character of its text, in nats.
        error_rate: of what was heard against the text, in characters.
        cut: the same in frames.
    """

    start_ms: float
    end_ms: float
    text: str
    heard: str
    words: tuple[AlignedWord, ...]
    cost: float
    error_rate: float
    cut: Cut


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignedRecording:
    """A whole recording and its text, aligned."""

    log_probs: NDArray[np.float64]
    path: NDArray[np.int64]
    words: tuple[AlignedWord, ...]
    firsts: list[int]  # frames of each word
    lasts: list[int]
    vocabulary: Vocabulary
    silent: NDArray[np.bool_]  # where the model hears nothing
    silence_frames: int  # in a row, of a silence
    power: NDArray[np.float64]  # of the samples of each frame
    frame_ms: float
    centre_ms: float
    duration_ms: float

    @classmethod
    def align(
        cls,
        log_probs: NDArray[np.floating],
        text: str,
        vocabulary: Vocabulary,
        *,
        samples: NDArray[np.float32],
        rate: int,
        frame_ms: float,
        centre_ms: float,
        silence_ms: float,
    ) -> AlignedRecording:
        """Align the whole; arguments as for `nearfuture.data.segmentation.segment`.

        Each frame of a silence that lies between two characters of one word costs a nat. Without
        that, speech that the text lacks would often pull a word before or after it to pieces: some
        of its characters are in there, too, and fit as well as its own.
        """
        borders = (centre_ms + frame_ms * (np.arange(len(log_probs) + 1) - 0.5)) * rate / 1000
        frames = np.split(
            np.asarray(samples), np.clip(borders.round().astype(int), 0, len(samples))
        )[1:-1]
        values, said = np.asarray(log_probs, np.float64), text.split()
        check_distributions(values)
        needed = math.ceil(silence_ms / frame_ms)
        silent = _silent(values, vocabulary)
        within = values[:, BLANK].copy()  # the blank between two characters of a word
        for begin, end in _runs(silent):
            within[begin:end] -= _COST_WITHIN_A_WORD * (end - begin >= needed)
        characters = " ".join(said)
        letter = np.array([False, *(not one.isspace() for one in characters), False])
        found = align(
            np.column_stack([values, within]),
            vocabulary.encode(characters),
            np.where(letter[:-1] & letter[1:], values.shape[1], BLANK).tolist(),
        )
        begins = np.cumsum([0] + [len(word) + 1 for word in said])  # of words among the tokens
        return cls(
            log_probs=values,
            path=np.where(found.path == values.shape[1], BLANK, found.path),
            words=words_of(found, said, frame_ms=frame_ms, centre_ms=centre_ms),
            firsts=[found.tokens[at].first for at in begins[:-1]],
            lasts=[found.tokens[at - 2].last for at in begins[1:]],
            vocabulary=vocabulary,
            silent=silent,
            silence_frames=needed,
            power=np.array([float(np.dot(frame, frame)) for frame in frames]),
            frame_ms=frame_ms,
            centre_ms=centre_ms,
            duration_ms=1000 * len(samples) / rate,
        )

    def cuts(self) -> Iterator[Cut]:
        """Everything between silences outside words."""
        T = len(self.log_probs)
        margin = int(_MARGIN_MS / self.frame_ms)
        quiet = self.silent.copy()
        for first, last in zip(self.firsts, self.lasts, strict=True):
            quiet[first : last + 1] = False
        silences = [(b, e) for b, e in _runs(quiet) if e - b >= self.silence_frames]
        if not silences or silences[0][0] > 0:
            silences.insert(0, (0, 0))
        if silences[-1][1] < T:
            silences.append((T, T))
        for (b0, e0), (b1, e1) in pairwise(silences):
            earliest = 0 if b0 == 0 else self._quietest(b0, e0)
            latest = T if e1 == T else self._quietest(b1, e1)
            yield Cut(max(earliest, e0 - margin), e0, b1, min(latest, b1 + margin))

    def _quietest(self, begin: int, end: int) -> int:
        """The middle of the quietest half of some frames; of equals, of the one in the middle."""
        half = (end - begin) // 4 * 2 or 1
        heard = np.cumsum(np.append(0.0, self.power[begin:end]))
        halves = heard[half:] - heard[:-half]
        quietest = np.flatnonzero(halves == halves.min())
        middle = (len(halves) - 1) / 2
        return begin + int(quietest[np.abs(quietest - middle).argmin()]) + half // 2

    def segment(self, cut: Cut) -> Segment:
        """What the text says between two cuts, and what the model thinks of it."""
        frames = np.arange(cut.begin, cut.end)
        words = self.words[bisect_left(self.firsts, cut.begin) : bisect_left(self.firsts, cut.end)]
        text = " ".join(word.text for word in words)
        heard = greedy_text(
            self.log_probs[cut.begin : cut.end], self.vocabulary, frame_ms=self.frame_ms
        )
        return Segment(
            start_ms=self._border(cut.start),
            end_ms=self._border(cut.stop),
            text=text,
            heard=heard,
            words=words,
            cost=-float(self.log_probs[frames, self.path[frames]].sum()) / max(1, len(text)),
            error_rate=character_errors(text, heard).rate,
            cut=cut,
        )

    def _border(self, frame: int) -> float:
        """The time between the frame before and this one."""
        if frame in (0, len(self.log_probs)):
            return 0.0 if frame == 0 else self.duration_ms
        return self.centre_ms + self.frame_ms * (frame - 0.5)


def _silent(log_probs: NDArray[np.float64], vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Where the model's own best symbol is the blank or a space."""
    spaces = [n for n, symbol in enumerate(vocabulary.symbols, start=1) if symbol.isspace()]
    return np.isin(log_probs.argmax(axis=1), [BLANK, *spaces])


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]
