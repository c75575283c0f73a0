"""Two streams of one model and its bidirectional twin on one recording: when each can write what.

An event of a stream exists once its quantum of sound is complete, and after the time that computing
it took; a letter is written at the first event whose committed text has it. The twin writes all of
them at the end, after its computation.

Shapes: `n` samples.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nearfuture.lab.recording import decode
from nearfuture.lab.recordings import STREAMING, TWIN, audio, recordings
from nearfuture.text import edit_alignment, word_errors

if TYPE_CHECKING:
    from nearfuture.runtime import Model

RECORDINGS = 6

_BLOCKS_S = 100  # so many a second: sound comes in pieces of 10 ms

Samples = NDArray[np.float32]


@dataclass(frozen=True)
class Clip:
    """Recordings one behind another: (n,) samples, their rate, and what is said."""

    samples: Samples
    rate: int
    text: str

    @property
    def ms(self) -> float:
        """The duration in ms."""
        return 1000 * len(self.samples) / self.rate


@dataclass(frozen=True)
class Spoken:
    """A word of the transcript, and where it is spoken."""

    text: str
    start_ms: float
    end_ms: float


@dataclass(frozen=True)
class Lane:
    """What one model writes.

    Attributes:
        text: all of it.
        written_ms: for each character, when it is on the screen.
        compute_ms: the time that computing took, all together.
        errors: words that are wrong, missing or too many; None where nobody knows what was said.
        wrong: for each word of the text, whether it is.
        waits_ms: for each spoken word that is right, from its end to its last letter; None for the
            others.
        mean_wait_ms: of those that are right; None where no word is.
        longest_wait_ms: of those that are right.
    """

    text: str
    written_ms: list[float]
    compute_ms: float
    errors: int | None
    wrong: list[bool]
    waits_ms: list[float | None]
    mean_wait_ms: float | None
    longest_wait_ms: float | None


@cache
def model(lookahead: int | None) -> Model:
    """The bundled model with this lookahead, whatever the rate of the sound, or its twin."""
    from nearfuture.audio import LiveResampler
    from nearfuture.runtime import load

    if lookahead is None:
        return load(TWIN)
    heads = load(STREAMING).budgets
    resampler_ms = LiveResampler(48_000, 8_000).right_ms
    return load(STREAMING, budget_ms=heads[lookahead].worst_ms + resampler_ms)


def one_clip(number: int) -> Clip:
    """One of the recordings of people, counted from 1.

    >>> one_clip(1).text, one_clip(1).rate, round(one_clip(1).ms)
    ('seven five four two three', 8000, 4330)
    """
    recording = recordings()[number - 1]  # people come first
    sound = audio(recording)
    return Clip(sound.samples, sound.rate, recording.text)


def clip(count: int) -> Clip:
    """The first recordings of people, one behind another.

    >>> clip(1).text, clip(1).rate, round(clip(2).ms)
    ('seven five four two three', 8000, 8309)
    """
    clips = [one_clip(number) for number in range(1, count + 1)]
    samples = np.concatenate([each.samples for each in clips])
    return Clip(samples, clips[0].rate, " ".join(each.text for each in clips))


def stretch(seconds: float) -> tuple[Clip, list[Spoken]]:
    """So much of the recordings, one behind another and again from the first, cut between words.

    It is at most so long, and a word at least.

    >>> clip, words = stretch(6)
    >>> clip.text, round(clip.ms), len(words)
    ('seven five four two three zero', 5408, 6)
    """
    samples, words, at_ms = [], list[Spoken](), 0.0
    for number in itertools.cycle(range(1, RECORDINGS + 1)):
        clip, said = one_clip(number), _spoken_in(number)
        ends = [(word.end_ms + after.start_ms) / 2 for word, after in pairwise(said)] + [clip.ms]
        count = sum(at_ms + end <= 1000 * seconds for end in ends)
        count = max(count, 0 if words else 1)  # a word at least
        if count:
            samples.append(clip.samples[: round(ends[count - 1] * clip.rate / 1000)])
        words += [
            Spoken(word.text, at_ms + word.start_ms, at_ms + word.end_ms) for word in said[:count]
        ]
        if count < len(said):
            break
        at_ms += clip.ms
    text = " ".join(word.text for word in words)
    return Clip(np.concatenate(samples), clip.rate, text), words


@cache
def _spoken_in(number: int) -> list[Spoken]:
    return spoken(one_clip(number))


def own_clip(body: bytes) -> Clip:
    """A recording of one's own, and as its text what the twin hears in it.

    Raises:
        Refusal: for what is no recording, or too long.
    """
    samples, rate = decode(body)
    return Clip(samples, rate, model(None).transcribe(samples, rate, endpoint=None).text)


def spoken(clip: Clip) -> list[Spoken]:
    """Find where each word is spoken: the transcript, aligned by the twin."""
    from nearfuture.decoding import align_words

    if not clip.text:
        return []
    manifest = model(None).manifest
    log_probs = model(None).log_probs(clip.samples, clip.rate)
    words = align_words(
        log_probs, clip.text, manifest.vocabulary, manifest.frame_ms, manifest.centre_ms
    )
    return [Spoken(word.text, word.start_ms, word.end_ms) for word in words]


def lane(
    clip: Clip, lookahead: int | None, words: Sequence[Spoken], *, judged: bool = True
) -> Lane:
    """Run a model on a clip: that with this lookahead live, the twin after the end.

    Where it is not `judged`, nobody knows what was said: nothing is called wrong, and waits are
    those of the words that the twin hears too.

    >>> short = clip(1)
    >>> twin = lane(short, None, spoken(short))
    >>> twin.text, twin.errors, min(twin.written_ms) > short.ms
    ('seven five four two three', 0, True)
    >>> live = lane(short, 8, spoken(short))
    >>> len(live.written_ms) == len(live.text), live.written_ms[0] < short.ms
    (True, True)
    """
    began = perf_counter()
    written: list[float] = []
    if lookahead is None:
        text = model(None).transcribe(clip.samples, clip.rate, endpoint=None).text
        compute_ms = 1000 * (perf_counter() - began)
        written = [clip.ms + compute_ms] * len(text)
    else:
        text, compute_ms = "", 0.0
        for committed, at_ms, took_ms in _events(clip, lookahead):
            compute_ms += took_ms
            written += [at_ms] * (len(committed) - len(text))
            text = committed
        # A text never ends with the space that a pause has put behind its last word.
        text = text.rstrip()
        written = written[: len(text)]
    waits, wrong = _judge(words, text, written)
    right = [wait for wait in waits if wait is not None]
    return Lane(
        text=text,
        written_ms=written,
        compute_ms=compute_ms,
        errors=word_errors(clip.text, text).errors if judged else None,
        wrong=wrong if judged else [False] * len(wrong),
        waits_ms=waits,
        mean_wait_ms=fmean(right) if right else None,
        longest_wait_ms=max(right, default=None),
    )


def _events(clip: Clip, lookahead: int) -> Iterator[tuple[str, float, float]]:
    """Yield the committed text, when it exists and how long that took, quantum by quantum."""
    stream = model(lookahead).stream(clip.rate)
    size = max(1, clip.rate // _BLOCKS_S)
    done_ms = 0.0  # a quantum waits for the one before it, if that took longer than its sound
    for at in range(0, len(clip.samples), size):
        block = clip.samples[at : at + size]
        arrived_ms = 1000 * (at + len(block)) / clip.rate
        for event in stream.accept(block):
            done_ms = max(done_ms, arrived_ms) + event.compute_ms
            yield event.committed, done_ms, event.compute_ms
    last = stream.finish()
    yield last.committed, max(done_ms, clip.ms) + last.compute_ms, last.compute_ms


def _judge(
    words: Sequence[Spoken], text: str, written: Sequence[float]
) -> tuple[list[float | None], list[bool]]:
    """Return the wait of each spoken word, None if it was not understood, and each wrong word."""
    waits: list[float | None] = []
    wrong: list[bool] = []
    end = -1  # of the last word, in characters of the text
    for said, heard in edit_alignment([word.text for word in words], text.split()):
        if heard is not None:
            end += len(heard) + bool(wrong)  # a space between two words
            wrong.append(said != heard)
        if said is not None:
            wait = written[end] - words[len(waits)].end_ms if said == heard else None
            waits.append(wait)
    return waits, wrong
