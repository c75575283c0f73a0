"""Recordings played to a server over many connections, and what that says about its delays."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nearfuture.client.connection import Connect
from nearfuture.client.conversation import Timing, converse
from nearfuture.client.distribution import Distribution
from nearfuture.client.failure import ServerError
from nearfuture.client.playback import CHUNK_MS
from nearfuture.client.protocol import Protocol
from nearfuture.client.recording import Recording
from nearfuture.client.shown import Shown
from nearfuture.client.word_count import WordCount
from nearfuture.error import NearfutureError
from nearfuture.text.error_rate import align

RETRY_S = 0.5  # after a failure: a server that refuses is not stormed
STAGGER_S = 1.0  # connections begin within so long: people do not begin to speak all at once

FIGURES = {
    "connect": "address → server ready for audio",
    "first token": "start of speech → first text",
    "partial lag": "sound spoken → text that has heard it",
    "word shown": "end of a word → word shown",
    "word settled": "end of a word → word shown for good",
    "text complete": "end of speech → text as it stays",
    "finalisation": "end of audio → server has said everything",
}
"""The times that are measured, in ms, with a few words on each; docs/measure.md defines them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Played:
    """One recording played over one connection.

    Attributes:
        recording: what was played.
        connection: number of the connection, from 0.
        began_s: since the measurement began.
        connect_s: until the server was ready for audio.
        lasted_s: from the attempt to connect to the end, or to the failure.
        timing: None if it is not complete.
        shown: what the server showed.
        failure: why it is not complete; "" if it is.
    """

    recording: Recording
    connection: int
    began_s: float
    connect_s: float
    lasted_s: float
    timing: Timing | None
    shown: Shown
    failure: str = ""

    def figures(self) -> dict[str, list[float]]:
        """The values in ms of each of `FIGURES`; none of those that are not known.

        >>> list(FIGURES)[:3]
        ['connect', 'first token', 'partial lag']
        """
        found: dict[str, list[float]] = {name: [] for name in FIGURES}
        if self.timing is None:
            return found
        shown, speech = self.shown, self.recording.speech
        found["connect"].append(1000 * self.connect_s)
        found["finalisation"].append(1000 * (self.timing.ended_s - self.timing.duration_s))
        found["partial lag"] = [1000 * lag for lag in shown.lags_s]
        if speech is not None and shown.first_s is not None and shown.complete_s is not None:
            found["first token"].append(1000 * shown.first_s - speech.begins_ms)
            found["text complete"].append(1000 * shown.complete_s - speech.ends_ms)
        for end_ms, first_s, settled_s in _matched(self.recording, shown):
            found["word shown"].append(1000 * first_s - end_ms)
            found["word settled"].append(1000 * settled_s - end_ms)
        return found

    def words(self) -> WordCount | None:
        """Lost and repeated words; None without a reference, or where it is not complete."""
        if self.recording.text is None or self.failure:
            return None
        return WordCount.of(self.recording.text.split(), [one.text for one in self.shown.words])


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """Everything that was played, and its figures.

    Attributes:
        played: in the order in which they ended.
        chunk_ms: how much audio was sent at once.
    """

    played: Sequence[Played]
    chunk_ms: float

    @property
    def complete(self) -> list[Played]:
        """What was played to its end."""
        return [one for one in self.played if not one.failure]

    @property
    def failures(self) -> Counter[str]:
        """How often each reason ended one too early."""
        return Counter(one.failure for one in self.played if one.failure)

    def figures(self) -> dict[str, Distribution | None]:
        """The distribution of each of `FIGURES`, None where nothing is known."""
        values: dict[str, list[float]] = {name: [] for name in FIGURES}
        for one in self.played:
            for name, found in one.figures().items():
                values[name] += found
        return {name: Distribution.of(found) for name, found in values.items()}

    @property
    def words(self) -> WordCount | None:
        """Lost and repeated words of all that have a reference; None if none has."""
        counts = [found for one in self.complete if (found := one.words()) is not None]
        return sum(counts, WordCount()) if counts else None

    @property
    def speech_by(self) -> Counter[str]:
        """How the place of the speech was known, by number of recordings played."""
        speeches = (one.recording.speech for one in self.complete)
        return Counter("none" if speech is None else speech.by for speech in speeches)

    def late_ms(self) -> Distribution | None:
        """The client's own delay in sending, of every chunk."""
        timings = (one.timing for one in self.played if one.timing is not None)
        return Distribution.of(late for timing in timings for late in timing.pace.late_ms)

    @property
    def kept_pace(self) -> bool:
        """Whether 99 % of the chunks were sent within a chunk's length of their time.

        If not, the client was too slow, and every delay may be the client's.
        """
        late = self.late_ms()
        return late is None or late.p99 <= self.chunk_ms

    def held_s(self) -> float:
        """How long connections refused to take audio, all together: the server did not keep up."""
        timings = (one.timing for one in self.played if one.timing is not None)
        return sum(timing.pace.held_ms for timing in timings) / 1000


async def measure(
    recordings: Sequence[Recording],
    connect: Connect,
    protocol: Callable[[int], Protocol],
    *,
    connections: int = 1,
    seconds: float | None = None,
    chunk_ms: float = CHUNK_MS,
    patience_s: float = 30.0,
    on_played: Callable[[Played], None] | None = None,
) -> Measurement:
    """Play recordings in real time over some connections at once.

    Each connection is used for one recording; the next one opens when it is done. Every connection
    begins with another recording, within the first second. A failure is noted, and after half a
    second comes the next recording.

    Args:
        recordings: at the rate of the protocol.
        connect: opens a connection.
        protocol: makes the client's side of one, for a rate.
        connections: so many at once.
        seconds: no recording begins after so long; those that play then go on to their end. Each
            connection plays every recording once unless given.
        chunk_ms: how much audio is sent at once.
        patience_s: how long the server may take after the end of a recording.
        on_played: called after each.

    Raises:
        NearfutureError: without recordings, or for numbers that make no sense.
    """
    if not recordings:
        raise NearfutureError("there are no recordings to play: name files, or --data SOURCE")
    if connections < 1:
        raise NearfutureError(f"--connections is a number from 1, not {connections}")
    if seconds is not None and not seconds > 0:
        raise NearfutureError(f"--seconds is a time above 0, not {seconds:g}")
    if not 1 <= chunk_ms <= 10_000:
        raise NearfutureError(f"--chunk-ms is a length of 1 to 10000 ms, not {chunk_ms:g}")
    if not 0 < patience_s < math.inf:
        raise NearfutureError(f"--patience-s is a time above 0, not {patience_s:g}")
    clock = asyncio.get_running_loop().time
    began = clock()
    played: list[Played] = []

    async def use(number: int) -> None:
        await asyncio.sleep(STAGGER_S * number / connections)
        turn = number
        while turn < number + len(recordings) if seconds is None else clock() - began < seconds:
            recording = recordings[turn % len(recordings)]
            one = await _play(recording, connect, protocol, number, began, chunk_ms, patience_s)
            played.append(one)
            if on_played is not None:
                on_played(one)
            if one.failure:
                await asyncio.sleep(RETRY_S)
            turn += 1

    async with asyncio.TaskGroup() as group:
        for number in range(connections):
            group.create_task(use(number))
    return Measurement(played=played, chunk_ms=chunk_ms)


async def _play(
    recording: Recording,
    connect: Connect,
    protocol: Callable[[int], Protocol],
    number: int,
    began: float,
    chunk_ms: float,
    patience_s: float,
) -> Played:
    clock = asyncio.get_running_loop().time
    opening = clock()
    shown = Shown()
    connect_s, failure = 0.0, ""
    timing: Timing | None = None
    try:
        async with connect() as connection:
            connect_s = clock() - opening
            timing = await converse(
                connection,
                protocol(recording.rate),
                recording.pcm,
                on_caption=shown.see,
                chunk_ms=chunk_ms,
                patience_s=patience_s,
            )
        connect_s += timing.greeted_s
    except ServerError as error:
        failure = str(error)
    return Played(
        recording=recording,
        connection=number,
        began_s=opening - began,
        connect_s=connect_s,
        lasted_s=clock() - opening,
        timing=timing,
        shown=shown,
        failure=failure,
    )


def _matched(recording: Recording, shown: Shown) -> list[tuple[float, float, float]]:
    """End (ms), first and settled (s) of the words that are right and whose times are known."""
    words = shown.words
    pairs = align([word.text for word in recording.words], [word.text for word in words])
    found, said, written = [], 0, 0
    for left, right in pairs:
        if left is not None and left == right:
            word = words[written]
            found.append((recording.words[said].end_ms, word.first_s, word.settled_s))
        said += left is not None
        written += right is not None
    return found
