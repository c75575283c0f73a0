"""One live stream as a protocol sees it: audio in at any pace, updates out, for one connection."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from types import TracebackType

import numpy as np
from numpy.typing import ArrayLike

from nearfuture.budget import Latency
from nearfuture.decoding import Endpoint, Word
from nearfuture.error import NearfutureError
from nearfuture.runtime import Budget, Busy, Dispatcher, Event, LiveStream
from nearfuture.serving.limits import Limits, Refused
from nearfuture.serving.mailbox import Mailbox

_PIECE_S = 0.2  # of audio are resampled at once: meanwhile nobody else is served


@dataclass(frozen=True, kw_only=True)
class Update:
    """What is to be shown of one utterance.

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


class Session:
    """One live stream of one connection; made by `Service.session` in the event loop that uses it.

    One task hears, another takes the updates. Close it, or use it as an async context manager: its
    place is free at once, whatever it was doing.

    Args:
        dispatcher: of the model.
        rate: samples per second of what it will hear; the model's own unless given.
        budget_ms: worst-case algorithmic latency allowed; the largest lookahead unless given.
        endpoint: divides what is said into utterances; it is one unless given.
        limits: of the server.
        on_final: called with the last update of each utterance.
        on_close: called once, when it closes.
        loop: the event loop that will use it; the running one unless given.

    Attributes:
        latency: algorithmic, itemised, for this rate.
        budget: the promise.
        rate: samples per second.
        heard_s: seconds of audio it was given.
        final_ms: from the end of the audio, or a flush, to the final text; None before.
        ended: whether its last update has been taken.
        cut_off: whether the server has ended it, see `cut`.
        dropped: whether audio came after that.

    Raises:
        Busy: if there is no room.
        NearfutureError: for a rate that cannot be resampled or a budget that cannot be kept.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        rate: int | None = None,
        budget_ms: float | None = None,
        endpoint: Endpoint | None = None,
        limits: Limits | None = None,
        on_final: Callable[[Update], None] | None = None,
        on_close: Callable[[Session], None] | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._limits = Limits() if limits is None else limits
        self._on_final, self._on_close = on_final, on_close
        self.rate = dispatcher.manifest.rate if rate is None else rate
        self._loop = asyncio.get_running_loop() if loop is None else loop
        self._mailbox = Mailbox(self._loop)
        self.heard_s = 0.0
        self.final_ms: float | None = None
        self._asked_s: float | None = None  # when an end was asked for, on the loop's clock
        self._one_at_a_time = asyncio.Lock()  # hear, flush and finish keep their order
        self._asked = self._answered = 0  # ends
        self._fresh = True  # no end was asked for since the audio
        self._unread = 0
        self._base_ms, self._base_utterance = 0.0, 0  # of what was flushed
        self._progress = asyncio.Event()  # less may wait or be unread than before
        self._needs_room = False  # whether somebody waits for that
        self._over = asyncio.Event()  # the last event of the dispatcher's stream is out
        self.ended = self.cut_off = self.dropped = self._finished = self._closed = False
        # Last: the engine's thread may call back before this returns.
        self._live = dispatcher.open(
            rate=self.rate,
            budget_ms=budget_ms,
            endpoint=endpoint,
            on_event=self._delivered,
            on_error=self._delivered,
        )
        self._flushed = False  # whether that stream was ended by a flush
        self.latency: Latency = self._live.latency
        self.budget: Budget = self._live.budget

    @property
    def complete(self) -> bool:
        """Whether all it was given has its text: it has ended, or was flushed and given no more."""
        return not self._fresh and self._answered == self._asked

    @property
    def waiting_s(self) -> float:
        """Seconds of audio that are not computed yet."""
        return self._live.waiting_s

    async def hear(self, samples: ArrayLike) -> None:
        """Hear more samples; waits while too much waits. What comes after a cut is dropped.

        Args:
            samples: (n,) floating point in [-1, 1] or int16, any n ≥ 0.

        Raises:
            Refused: for samples of another kind or not finite, for more audio than one stream may
                have, and if the engine failed.
            NearfutureError: after `finish` or `close`.
        """
        array = np.asarray(samples)
        async with self._one_at_a_time:
            if self.cut_off:
                self.dropped = self.dropped or len(array) > 0
                return
            self._refuse_if_over()
            if self.heard_s + len(array) / self.rate > self._limits.most_seconds:
                raise Refused(
                    "too_long",
                    f"a stream may have {self._limits.most_seconds:g} s of audio: finish it and "
                    f"open another one",
                )
            piece = max(1, int(self.rate * _PIECE_S))
            for at in range(0, len(array), piece):
                if at:
                    await asyncio.sleep(0)  # others are served between the pieces
                await self._bring(array[at : at + piece])

    async def flush(self) -> None:
        """End the utterance at hand here, without ending the stream; waits while too much waits.

        Exactly one final update follows, whatever was heard. Its text is that of a stream that ends
        here, to the last character, and what follows is the text of a stream that begins here.
        After a cut it does nothing.

        Raises:
            Refused: if the engine failed.
            NearfutureError: after `finish` or `close`.
        """
        async with self._one_at_a_time:
            if not await self._has_room():
                return
            self._over.clear()
            self._end()
            await self._over.wait()
            self._flushed = True

    async def finish(self) -> None:
        """End the stream: an update with `ended` follows, with all that waited for a future.

        After a cut it does nothing.

        Raises:
            Refused: if the engine failed.
            NearfutureError: after `finish` or `close`.
        """
        async with self._one_at_a_time:
            if self.cut_off:
                return
            self._refuse_if_over()
            self._finished = True
            self._end()

    async def updates(self) -> AsyncIterator[Update]:
        """The updates, the last one with `ended`; one that is not final is dropped for a newer one.

        Raises:
            Refused: if the engine failed.
        """
        while not self._closed:
            await self._mailbox.filled.wait()
            taken = self._mailbox.take()
            self._unread = sum(isinstance(event, Event) and event.ends for event, _ in taken)
            for event, last in taken:
                if isinstance(event, Exception):
                    raise _broken(event)
                update = self._update(event, ended=last)
                if event.final:
                    self._turn_over(update)
                if update.final and self._on_final is not None:
                    self._on_final(update)
                yield update
                self._unread -= update.final
                self._progress.set()
                if update.ended:
                    return

    def cut(self) -> None:
        """Finish the stream now, for the server must stop; what comes from now on is dropped.

        What was heard until now still has its text, and the last update its exact tail.
        """
        self.cut_off = True
        self._progress.set()
        if not self._finished and not self._closed:
            self._finished = True
            with contextlib.suppress(NearfutureError):  # a flush has just asked for it
                self._end()

    def close(self) -> None:
        """Forget the stream at once; closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        self._live.close()
        self._over.set()
        self._progress.set()
        self._mailbox.filled.set()
        if self._on_close is not None:
            self._on_close(self)

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _delivered(self, event: Event | Exception) -> None:
        """Take an event in the engine's thread."""
        over = isinstance(event, Exception) or event.final
        # Between a flush and its last event nothing else can be asked for, see `_one_at_a_time`.
        self._mailbox.put(event, last=over and self._finished)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            if self._needs_room:
                self._loop.call_soon_threadsafe(self._progress.set)
            if over:
                self._loop.call_soon_threadsafe(self._over.set)

    def _end(self) -> None:
        """End the dispatcher's stream: for a flush, or for good."""
        live = self._again()
        self._asked_s = self._loop.time()
        self._asked, self._fresh = self._asked + 1, False
        try:
            live.finish()
        except NearfutureError as error:
            raise _broken(live.error or error) from error

    def _again(self) -> LiveStream:
        """The dispatcher's stream; another one after a flush."""
        if self._flushed:
            try:
                self._live = self._live.reopen()
            except Busy as error:
                raise Refused("busy", str(error)) from error
            except NearfutureError as error:
                raise _broken(error) from error
            self._flushed = False
        return self._live

    async def _has_room(self, seconds: float = 0.0) -> bool:
        """Wait while more audio, or an end, would be too much; False once the stream is cut."""
        while not self.cut_off:
            self._refuse_if_over()
            # Before looking: what the engine's thread computes meanwhile is not missed.
            self._progress.clear()
            self._needs_room = True
            if (
                self.waiting_s + seconds <= self._limits.most_waiting_s
                and self._unread + self._mailbox.ends <= self._limits.most_unread
            ):
                self._needs_room = False
                return True
            await self._progress.wait()
        return False

    async def _bring(self, samples: np.ndarray) -> None:
        seconds = len(samples) / self.rate
        if not await self._has_room(seconds):
            self.dropped = True
            return
        live = self._again()
        try:
            live.accept(samples)
        except NearfutureError as error:
            if live.error is not None:
                raise _broken(live.error) from error
            raise Refused("bad_audio", str(error)) from error
        self.heard_s += seconds
        self._fresh = True

    def _update(self, event: Event, *, ended: bool) -> Update:
        text = event.committed
        words = event.words
        if self._base_ms:
            words = tuple(
                dataclasses.replace(
                    word,
                    start_ms=word.start_ms + self._base_ms,
                    end_ms=word.end_ms + self._base_ms,
                )
                for word in words
            )
        return Update(
            utterance=self._base_utterance + event.utterance,
            committed=text.strip(),
            provisional=event.provisional if text else event.provisional.lstrip(),
            final=event.ends,
            ended=ended,
            words=words,
            audio_ms=self._base_ms + event.audio_ms,
            compute_ms=event.compute_ms,
            continues=event.continues,
        )

    def _turn_over(self, update: Update) -> None:
        """A stream of the dispatcher has ended: because of a flush, or for good."""
        if self._asked_s is not None:
            self.final_ms = 1000 * (self._loop.time() - self._asked_s)
        self.ended = update.ended
        self._answered += 1
        self._base_ms, self._base_utterance = update.audio_ms, update.utterance + 1

    def _refuse_if_over(self) -> None:
        if self._closed:
            raise NearfutureError("this session is closed: open another one")
        if self._finished:
            raise NearfutureError("this stream has been finished: open another one")


def _broken(error: Exception) -> Refused:
    return Refused("internal", f"the engine failed: {error}")
