"""One live stream as a protocol sees it: audio in at any pace, updates out, for one connection."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from nearfuture.budget import Latency
from nearfuture.decoding import Endpoint, Word
from nearfuture.error import NearfutureError
from nearfuture.runtime import Budget, Busy, Dispatcher, Event, LiveStream
from nearfuture.serving.errors import RequestError
from nearfuture.serving.event_queue import EventQueue
from nearfuture.serving.limits import ServerLimits

_PIECE_S = 0.2  # of audio are resampled at once: meanwhile no other client is served


@dataclass(frozen=True, kw_only=True)
class Update:
    """The text of one utterance at one moment.

    Attributes:
        utterance: counted from 0.
        committed: its settled text, no space at either end.
        provisional: what probably follows, with a space in front where a new word begins.
        final: whether this utterance has ended.
        ended: whether the stream has.
        words: the committed ones; times count from the start of the stream.
        audio_ms: of the stream, computed so far.
        compute_ms: from the audio being complete to this text.
        continues: whether it begins in the middle of the last word of the utterance before.
    """

    utterance: int
    committed: str
    provisional: str
    final: bool
    ended: bool
    words: tuple[Word, ...]
    audio_ms: float
    compute_ms: float
    continues: bool = False


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """The options of a session.

    Attributes:
        rate: samples per second of its audio; by default the model's own.
        budget_ms: worst-case algorithmic latency allowed; by default the largest lookahead.
        endpoint: divides the text into utterances; by default it is one.
        limits: of the server.
    """

    rate: int | None = None
    budget_ms: float | None = None
    endpoint: Endpoint | None = None
    limits: ServerLimits = field(default_factory=ServerLimits)


class Session:
    """One live stream of one connection; made by `Service.session` in the event loop that uses it.

    One task brings audio, another takes the updates. Close it, or use it as an async context
    manager: its place is free at once, whatever it was doing.

    Args:
        dispatcher: of the model.
        options: rate, budget, endpoint and limits.
        on_final: called with the last update of each utterance.
        on_close: called once, when it closes.
        loop: the event loop that will use it; by default the running one.

    Attributes:
        latency: algorithmic, itemised, for this rate.
        budget: the promise.
        rate: samples per second.
        received_s: seconds of audio it accepted.
        final_ms: from the end of the audio, or a flush, to the final text; None before.
        ended: whether its last update has been taken.
        interrupted: whether the server has ended it, see `interrupt`.
        audio_dropped: whether audio came after that.

    Raises:
        Busy: if there is no room.
        NearfutureError: for a rate that cannot be resampled or a budget that cannot be kept.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        options: SessionOptions | None = None,
        *,
        on_final: Callable[[Update], None] | None = None,
        on_close: Callable[[Session], None] | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._options = options = SessionOptions() if options is None else options
        self._on_final, self._on_close = on_final, on_close
        self.rate = dispatcher.manifest.rate if options.rate is None else options.rate
        self._loop = asyncio.get_running_loop() if loop is None else loop
        self._events = EventQueue(self._loop)
        self.received_s = 0.0
        self.final_ms: float | None = None
        self._end_requested_s: float | None = None  # on the loop's clock
        self._in_order = asyncio.Lock()  # accept, flush and finish keep their order
        self._ends_requested = self._ends_answered = 0
        self._audio_since_end = True
        self._unread = 0
        self._flushed_ms, self._flushed_utterances = 0.0, 0
        self._progress = asyncio.Event()  # less may wait or be unread than before
        self._needs_room = False  # whether a task waits for that
        self._drained = asyncio.Event()  # the last event of the dispatcher's stream is out
        self.ended = self.interrupted = self.audio_dropped = False
        self._finished = self._closed = False
        # Last: the engine's thread may call back before this returns.
        self._live = dispatcher.open(
            rate=self.rate,
            budget_ms=options.budget_ms,
            endpoint=options.endpoint,
            on_event=self._deliver,
            on_error=self._deliver,
        )
        self._flushed = False  # whether that stream was ended by a flush
        self.latency: Latency = self._live.latency
        self.budget: Budget = self._live.budget

    @property
    def complete(self) -> bool:
        """Whether all its audio has its text: it has ended, or was flushed and got no more."""
        return not self._audio_since_end and self._ends_answered == self._ends_requested

    @property
    def waiting_s(self) -> float:
        """Seconds of audio that are not computed yet."""
        return self._live.waiting_s

    async def accept(self, samples: ArrayLike) -> None:
        """Accept more samples; waits while too much waits. Those after an interrupt are dropped.

        Args:
            samples: (n,) floating point in [-1, 1] or int16, any n ≥ 0.

        Raises:
            RequestError: for samples of another kind or not finite, for more audio than one stream
                may have, and if the engine failed.
            NearfutureError: after `finish` or `close`.
        """
        array = np.asarray(samples)
        async with self._in_order:
            if self.interrupted:
                self.audio_dropped = self.audio_dropped or len(array) > 0
                return
            self._refuse_if_over()
            max_s = self._options.limits.max_stream_s
            if self.received_s + len(array) / self.rate > max_s:
                raise RequestError(
                    "too_long",
                    f"a stream may have {max_s:g} s of audio: finish it and open another one",
                )
            piece = max(1, int(self.rate * _PIECE_S))
            for begin in range(0, len(array), piece):
                if begin:
                    await asyncio.sleep(0)  # others are served between the pieces
                await self._accept_piece(array[begin : begin + piece])

    async def flush(self) -> None:
        """End the current utterance here, without ending the stream; waits while too much waits.

        Exactly one final update follows, whatever was accepted. Its text is that of a stream that
        ends here, to the last character, and what follows is the text of a stream that begins here.
        After an interrupt it does nothing.

        Raises:
            RequestError: if the engine failed.
            NearfutureError: after `finish` or `close`.
        """
        async with self._in_order:
            if not await self._wait_for_room():
                return
            self._drained.clear()
            self._end()
            await self._drained.wait()
            self._flushed = True

    async def finish(self) -> None:
        """End the stream: an update with `ended` follows, with all that waited for a future.

        After an interrupt it does nothing.

        Raises:
            RequestError: if the engine failed.
            NearfutureError: after `finish` or `close`.
        """
        async with self._in_order:
            if self.interrupted:
                return
            self._refuse_if_over()
            self._finished = True
            self._end()

    async def updates(self) -> AsyncIterator[Update]:
        """Yield updates, the last one with `ended`; a newer one replaces one that is not final.

        Raises:
            RequestError: if the engine failed.
        """
        while not self._closed:
            await self._events.filled.wait()
            taken = self._events.take()
            self._unread = sum(isinstance(event, Event) and event.ends for event, _ in taken)
            for event, last in taken:
                if isinstance(event, Exception):
                    raise _engine_failed(event)
                update = self._update(event, ended=last)
                if event.final:
                    self._end_answered(update)
                if update.final and self._on_final is not None:
                    self._on_final(update)
                yield update
                self._unread -= update.final
                self._progress.set()
                if update.ended:
                    return

    def interrupt(self) -> None:
        """Finish the stream now, for the server must stop; audio from now on is dropped.

        What was accepted until now still has its text, and the last update its exact tail.
        """
        self.interrupted = True
        self._progress.set()
        if not self._finished and not self._closed:
            self._finished = True
            with contextlib.suppress(NearfutureError):  # a flush has just asked for it
                self._end()

    def close(self) -> None:
        """Drop the stream at once; closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        self._live.close()
        self._drained.set()
        self._progress.set()
        self._events.filled.set()
        if self._on_close is not None:
            self._on_close(self)

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()

    def _deliver(self, event: Event | Exception) -> None:
        """Take an event in the engine's thread."""
        last = isinstance(event, Exception) or event.final
        # Between a flush and its last event nothing else can be asked for, see `_in_order`.
        self._events.put(event, last=last and self._finished)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits any more
            if self._needs_room:
                self._loop.call_soon_threadsafe(self._progress.set)
            if last:
                self._loop.call_soon_threadsafe(self._drained.set)

    def _end(self) -> None:
        """End the dispatcher's stream: for a flush, or for good."""
        live = self._reopened()
        self._end_requested_s = self._loop.time()
        self._ends_requested, self._audio_since_end = self._ends_requested + 1, False
        try:
            live.finish()
        except NearfutureError as error:
            raise _engine_failed(live.error or error) from error

    def _reopened(self) -> LiveStream:
        """Return the dispatcher's stream; another one after a flush."""
        if self._flushed:
            try:
                self._live = self._live.reopen()
            except Busy:
                raise
            except NearfutureError as error:
                raise _engine_failed(error) from error
            self._flushed = False
        return self._live

    async def _wait_for_room(self, seconds: float = 0.0) -> bool:
        """Wait while more audio, or an end, would be too much; False after an interrupt."""
        limits = self._options.limits
        while not self.interrupted:
            self._refuse_if_over()
            # Before looking: what the engine's thread computes meanwhile is not missed.
            self._progress.clear()
            self._needs_room = True
            if (
                self.waiting_s + seconds <= limits.max_waiting_s
                and self._unread + self._events.ends <= limits.max_unread
            ):
                self._needs_room = False
                return True
            await self._progress.wait()
        return False

    async def _accept_piece(self, samples: np.ndarray) -> None:
        seconds = len(samples) / self.rate
        if not await self._wait_for_room(seconds):
            self.audio_dropped = True
            return
        live = self._reopened()
        try:
            live.accept(samples)
        except NearfutureError as error:
            if live.error is not None:
                raise _engine_failed(live.error) from error
            raise RequestError("bad_audio", str(error)) from error
        self.received_s += seconds
        self._audio_since_end = True

    def _update(self, event: Event, *, ended: bool) -> Update:
        offset_ms = self._flushed_ms
        words = event.words
        if offset_ms:
            words = tuple(
                dataclasses.replace(
                    word, start_ms=word.start_ms + offset_ms, end_ms=word.end_ms + offset_ms
                )
                for word in words
            )
        return Update(
            utterance=self._flushed_utterances + event.utterance,
            committed=event.committed.strip(),
            provisional=event.provisional if event.committed else event.provisional.lstrip(),
            final=event.ends,
            ended=ended,
            words=words,
            audio_ms=offset_ms + event.audio_ms,
            compute_ms=event.compute_ms,
            continues=event.continues,
        )

    def _end_answered(self, update: Update) -> None:
        """Account for the end of a dispatcher's stream: because of a flush, or for good."""
        if self._end_requested_s is not None:
            self.final_ms = 1000 * (self._loop.time() - self._end_requested_s)
        self.ended = update.ended
        self._ends_answered += 1
        self._flushed_ms, self._flushed_utterances = update.audio_ms, update.utterance + 1

    def _refuse_if_over(self) -> None:
        if self._closed:
            raise NearfutureError("this session is closed: open another one", code="internal")
        if self._finished:
            raise NearfutureError(
                "this stream has been finished: open another one", code="internal"
            )


def _engine_failed(error: Exception) -> RequestError:
    return RequestError("internal", f"the engine failed: {error}")
