"""Recordings played to a server over many connections, and the delays that come of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from nearfuture.client.connection import Connect, ServerError
from nearfuture.client.measure.distribution import Distribution
from nearfuture.client.measure.recording import ReferenceRecording
from nearfuture.client.measure.timeline import CaptionTimeline
from nearfuture.client.measure.word_errors import WordErrors
from nearfuture.client.options import MeasureOptions
from nearfuture.client.playback import Pacing
from nearfuture.client.protocols import StreamProtocol
from nearfuture.client.streaming import StreamOptions, Timing, stream_audio
from nearfuture.error import NearfutureError
from nearfuture.text import edit_alignment

RETRY_S = 0.5  # after a failure: a server that refuses is not stormed
STAGGER_S = 1.0  # connections begin within so long: people do not begin to speak all at once

METRICS = {
    "connect": "address → server ready for audio",
    "first token": "start of speech → first text",
    "partial lag": "sound spoken → text that covers it",
    "word shown": "end of a word → word shown",
    "word settled": "end of a word → word shown for good",
    "text complete": "end of speech → text as it stays",
    "finalisation": "end of audio → last message with text",
}
"""The times that are measured, in ms, with a few words on each; docs/measure.md defines them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PlayedRecording:
    """One recording played over one connection.

    Attributes:
        recording: what was played.
        connection: number of the connection, from 0.
        began_s: since the measurement began.
        connect_s: until the server was ready for audio.
        lasted_s: from the attempt to connect to the end, or to the failure.
        timing: None if it is not complete.
        timeline: what the server showed.
        failure: why it is not complete; "" if it is.
    """

    recording: ReferenceRecording
    connection: int
    began_s: float
    connect_s: float
    lasted_s: float
    timing: Timing | None
    timeline: CaptionTimeline
    failure: str = ""

    def metrics(self) -> dict[str, list[float]]:
        """Return the values in ms of each of `METRICS`; none of those that are not known.

        >>> list(METRICS)[:3]
        ['connect', 'first token', 'partial lag']
        """
        values: dict[str, list[float]] = {name: [] for name in METRICS}
        if self.timing is None:
            return values
        timeline, speech = self.timeline, self.recording.speech
        values["connect"].append(1000 * self.connect_s)
        values["finalisation"].append(1000 * (self.timing.ended_s - self.timing.duration_s))
        values["partial lag"] = [1000 * lag for lag in timeline.lags_s]
        if speech is not None and timeline.first_s is not None and timeline.complete_s is not None:
            values["first token"].append(1000 * timeline.first_s - speech.start_ms)
            values["text complete"].append(1000 * timeline.complete_s - speech.end_ms)
        for end_ms, first_s, settled_s in _correct_words(self.recording, timeline):
            values["word shown"].append(1000 * first_s - end_ms)
            values["word settled"].append(1000 * settled_s - end_ms)
        return values

    def word_errors(self) -> WordErrors | None:
        """Return its word errors; None without a reference, or where it is not complete."""
        if self.recording.text is None or self.failure:
            return None
        final = [word.text for word in self.timeline.words]
        return WordErrors.of(self.recording.text.split(), final)


@dataclass(frozen=True, kw_only=True, eq=False)
class ServerMeasurement:
    """Everything that was played, and its metrics.

    Attributes:
        played: in the order in which they ended.
        chunk_ms: how much audio was sent at once.
    """

    played: Sequence[PlayedRecording]
    chunk_ms: float

    @property
    def complete(self) -> list[PlayedRecording]:
        """The recordings that were played to their end."""
        return [played for played in self.played if not played.failure]

    @property
    def failures(self) -> Counter[str]:
        """The number of recordings that failed for each reason."""
        return Counter(played.failure for played in self.played if played.failure)

    def metrics(self) -> dict[str, Distribution | None]:
        """Return the distribution of each of `METRICS`, None where nothing is known."""
        metrics = [played.metrics() for played in self.played]
        return {
            name: Distribution.of([value for values in metrics for value in values[name]])
            for name in METRICS
        }

    @property
    def word_errors(self) -> WordErrors | None:
        """The word errors of all that have a reference; None if none has."""
        errors = [e for played in self.complete if (e := played.word_errors()) is not None]
        return sum(errors, WordErrors()) if errors else None

    @property
    def speech_by(self) -> Counter[str]:
        """The number of recordings for each source of the times of speech."""
        spans = (played.recording.speech for played in self.complete)
        return Counter("none" if span is None else span.by for span in spans)

    def late_ms(self) -> Distribution | None:
        """Return the client's own delay in sending, of every chunk."""
        return Distribution.of([late for pacing in self._pacings() for late in pacing.late_ms])

    @property
    def kept_pace(self) -> bool:
        """Whether 99 % of the chunks were sent within a chunk's length of their time.

        If not, the client was too slow, and every delay may be the client's.
        """
        late = self.late_ms()
        return late is None or late.p99 <= self.chunk_ms

    def blocked_s(self) -> float:
        """Return how long connections did not take audio, in all: the server did not keep up."""
        return sum(pacing.blocked_ms for pacing in self._pacings()) / 1000

    def _pacings(self) -> Iterator[Pacing]:
        return (played.timing.pacing for played in self.played if played.timing is not None)


async def measure(
    recordings: Sequence[ReferenceRecording],
    connect: Connect,
    protocol: Callable[[int], StreamProtocol],
    options: MeasureOptions | None = None,
    *,
    on_played: Callable[[PlayedRecording], None] | None = None,
) -> ServerMeasurement:
    """Play recordings in real time over some connections at once.

    Each connection is used for one recording; the next one opens when it is done. Every connection
    begins with another recording, within the first second. A failure is recorded, and after half a
    second comes the next recording.

    Args:
        recordings: at the rate of the protocol.
        connect: opens a connection.
        protocol: makes the client's side of one, for a rate.
        options: by default one connection that plays each recording once.
        on_played: called after each.

    Raises:
        NearfutureError: without recordings.
    """
    if not recordings:
        raise NearfutureError("there are no recordings to play: name files, or a source in `data`")
    options = MeasureOptions() if options is None else options
    clock = asyncio.get_running_loop().time
    began = clock()
    done: list[PlayedRecording] = []

    async def use(number: int) -> None:
        await asyncio.sleep(STAGGER_S * number / options.connections)
        turn = number
        while (
            turn < number + len(recordings)
            if options.seconds is None
            else clock() - began < options.seconds
        ):
            recording = recordings[turn % len(recordings)]
            played = await _play(
                recording,
                connect,
                protocol(recording.rate),
                options,
                connection=number,
                began_s=clock() - began,
            )
            done.append(played)
            if on_played is not None:
                on_played(played)
            if played.failure:
                await asyncio.sleep(RETRY_S)
            turn += 1

    async with asyncio.TaskGroup() as group:
        for number in range(options.connections):
            group.create_task(use(number))
    return ServerMeasurement(played=done, chunk_ms=options.chunk_ms)


async def _play(
    recording: ReferenceRecording,
    connect: Connect,
    protocol: StreamProtocol,
    options: MeasureOptions,
    *,
    connection: int,
    began_s: float,
) -> PlayedRecording:
    clock = asyncio.get_running_loop().time
    begin = clock()
    timeline = CaptionTimeline()
    connect_s, failure = 0.0, ""
    timing: Timing | None = None
    streaming = StreamOptions(chunk_ms=options.chunk_ms, finish_timeout_s=options.finish_timeout_s)
    try:
        async with connect() as opened:
            connect_s = clock() - begin
            timing = await stream_audio(opened, protocol, recording.pcm, timeline.add, streaming)
        connect_s += timing.ready_s
    except ServerError as error:
        failure = str(error)
    return PlayedRecording(
        recording=recording,
        connection=connection,
        began_s=began_s,
        connect_s=connect_s,
        lasted_s=clock() - begin,
        timing=timing,
        timeline=timeline,
        failure=failure,
    )


def _correct_words(
    recording: ReferenceRecording, timeline: CaptionTimeline
) -> Iterator[tuple[float, float, float]]:
    """Yield end (ms), first and settled (s) of the words that are right and have known times."""
    words = timeline.words
    reference, displayed = iter(recording.words), iter(words)
    for left, right in edit_alignment(
        [word.text for word in recording.words], [word.text for word in words]
    ):
        spoken = next(reference) if left is not None else None
        shown = next(displayed) if right is not None else None
        if spoken is not None and shown is not None and left == right:
            yield spoken.end_ms, shown.first_s, shown.settled_s
