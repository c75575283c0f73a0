"""A long recording aligned with its text, and the segments between its silences.

1. Align the whole text with the whole recording (CTC forced alignment); inside a silence, a blank
   between two characters of one word costs extra, so that words are not torn apart.
2. Mark the silences: runs of frames whose best symbol is the blank or a space, outside words.
3. Between each two silences lies a segment; it is cut in the quietest half of each silence.

Example: frames `a b . . . . b a` with the text "ab ba" and silences from 4 frames on: the words
take frames 0-1 and 6-7, the silence is 2-5, and the segments are "ab" and "ba", cut at frame 4.

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

from nearfuture.audio import Audio
from nearfuture.decoding import AlignedWord, align, aligned_words, check_distributions, greedy_text
from nearfuture.text import BLANK, Vocabulary, character_errors

_COST_WITHIN_A_WORD = 1.0  # of each frame of a silence, in nats
_MARGIN_MS = 500.0  # of the silence around a segment, at most so much goes with it on each side


@dataclass(frozen=True)
class FrameSpan:
    """Frames of a segment: with its silence `start` to `stop`, without it `begin` to `end`."""

    start: int
    begin: int
    end: int
    stop: int


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A piece of a long recording; times are of the whole recording.

    Attributes:
        start_ms, end_ms: where to cut: in silence, half a second from its speech at most.
        text: the reference, as aligned there.
        hypothesis: what the model decodes there by itself (greedily).
        words: of the text, with their times.
        cost: `-log p(path)` of its frames for each character of its text, in nats.
        error_rate: character error rate of the hypothesis against the text.
        frames: the same piece in frames.
    """

    start_ms: float
    end_ms: float
    text: str
    hypothesis: str
    words: tuple[AlignedWord, ...]
    cost: float
    error_rate: float
    frames: FrameSpan

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return (self.end_ms - self.start_ms) / 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class Emissions:
    """The log-probabilities of a model for a recording, with their times.

    Attributes:
        log_probs: (T, V) natural logarithms.
        vocabulary: of the model.
        frame_ms: milliseconds from one frame to the next.
        centre_ms: milliseconds from the start of the audio to the centre of the window of frame 0.
    """

    log_probs: NDArray[np.floating]
    vocabulary: Vocabulary
    frame_ms: float
    centre_ms: float


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignedRecording:
    """A whole recording and its text, aligned."""

    log_probs: NDArray[np.float64]
    path: NDArray[np.int64]
    words: tuple[AlignedWord, ...]
    first_frames: list[int]  # of each word
    last_frames: list[int]
    emissions: Emissions
    silent: NDArray[np.bool_]  # where the best symbol is the blank or a space
    silence_frames: int  # in a row, of a silence
    power: NDArray[np.float64]  # of the samples of each frame
    duration_ms: float

    @classmethod
    def align(
        cls, emissions: Emissions, text: str, audio: Audio, *, silence_ms: float
    ) -> AlignedRecording:
        """Align the whole; arguments as for `nearfuture.data.segmentation.segment`.

        Each frame of a silence that lies between two characters of one word costs a nat. Without
        that, speech that the text lacks would often pull a word before or after it to pieces: some
        of its characters occur in there, too, and fit as well as its own.
        """
        vocabulary = emissions.vocabulary
        frame_ms, centre_ms = emissions.frame_ms, emissions.centre_ms
        log_probs, references = np.asarray(emissions.log_probs, np.float64), text.split()
        check_distributions(log_probs)
        silence_frames = math.ceil(silence_ms / frame_ms)
        silent = _silent(log_probs, vocabulary)
        within = log_probs[:, BLANK].copy()  # the blank between two characters of a word
        for begin, end in _runs(silent):
            within[begin:end] -= _COST_WITHIN_A_WORD * (end - begin >= silence_frames)
        characters = " ".join(references)
        letter = np.array([False, *(not character.isspace() for character in characters), False])
        blank_within = log_probs.shape[1]
        alignment = align(
            np.column_stack([log_probs, within]),
            vocabulary.encode(characters),
            np.where(letter[:-1] & letter[1:], blank_within, BLANK).tolist(),
        )
        begins = np.cumsum([0] + [len(word) + 1 for word in references])  # among the tokens
        return cls(
            log_probs=log_probs,
            path=np.where(alignment.path == blank_within, BLANK, alignment.path),
            words=aligned_words(alignment, references, frame_ms=frame_ms, centre_ms=centre_ms),
            first_frames=[alignment.tokens[at].first for at in begins[:-1]],
            last_frames=[alignment.tokens[at - 2].last for at in begins[1:]],
            emissions=emissions,
            silent=silent,
            silence_frames=silence_frames,
            power=_power(audio, len(log_probs), frame_ms, centre_ms),
            duration_ms=1000 * len(audio.samples) / audio.rate,
        )

    def spans(self) -> Iterator[FrameSpan]:
        """Everything between silences outside words."""
        T = len(self.log_probs)
        margin = int(_MARGIN_MS / self.emissions.frame_ms)
        quiet = self.silent.copy()
        for first, last in zip(self.first_frames, self.last_frames, strict=True):
            quiet[first : last + 1] = False
        silences = [(b, e) for b, e in _runs(quiet) if e - b >= self.silence_frames]
        if not silences or silences[0][0] > 0:
            silences.insert(0, (0, 0))
        if silences[-1][1] < T:
            silences.append((T, T))
        for (b0, e0), (b1, e1) in pairwise(silences):
            earliest = 0 if b0 == 0 else self._quietest(b0, e0)
            latest = T if e1 == T else self._quietest(b1, e1)
            yield FrameSpan(max(earliest, e0 - margin), e0, b1, min(latest, b1 + margin))

    def _quietest(self, begin: int, end: int) -> int:
        """The middle of the quietest half of some frames; of equals, of the one in the middle."""
        half = (end - begin) // 4 * 2 or 1
        energy = np.cumsum(np.append(0.0, self.power[begin:end]))
        halves = energy[half:] - energy[:-half]
        quietest = np.flatnonzero(halves == halves.min())
        middle = (len(halves) - 1) / 2
        return begin + int(quietest[np.abs(quietest - middle).argmin()]) + half // 2

    def segment(self, span: FrameSpan) -> Segment:
        """The text and the hypothesis of a span, and how well they agree."""
        frames = np.arange(span.begin, span.end)
        first, last = (bisect_left(self.first_frames, at) for at in (span.begin, span.end))
        words = self.words[first:last]
        text = " ".join(word.text for word in words)
        log_probs, emissions = self.log_probs[span.begin : span.end], self.emissions
        hypothesis = greedy_text(log_probs, emissions.vocabulary, frame_ms=emissions.frame_ms)
        return Segment(
            start_ms=self._border_ms(span.start),
            end_ms=self._border_ms(span.stop),
            text=text,
            hypothesis=hypothesis,
            words=words,
            cost=-float(self.log_probs[frames, self.path[frames]].sum()) / max(1, len(text)),
            error_rate=character_errors(text, hypothesis).rate,
            frames=span,
        )

    def _border_ms(self, frame: int) -> float:
        """The time between the frame before and this one."""
        if frame in (0, len(self.log_probs)):
            return 0.0 if frame == 0 else self.duration_ms
        return self.emissions.centre_ms + self.emissions.frame_ms * (frame - 0.5)


def _power(audio: Audio, frames: int, frame_ms: float, centre_ms: float) -> NDArray[np.float64]:
    """The energy of the samples of each frame (T,)."""
    borders = (centre_ms + frame_ms * (np.arange(frames + 1) - 0.5)) * audio.rate / 1000
    cuts = np.clip(borders.round().astype(int), 0, len(audio.samples))
    pieces = np.split(np.asarray(audio.samples), cuts)[1:-1]
    return np.array([float(np.dot(piece, piece)) for piece in pieces])


def _silent(log_probs: NDArray[np.float64], vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Where the model's own best symbol is the blank or a space."""
    spaces = [n for n, symbol in enumerate(vocabulary.symbols, start=1) if symbol.isspace()]
    return np.isin(log_probs.argmax(axis=1), [BLANK, *spaces])


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]
