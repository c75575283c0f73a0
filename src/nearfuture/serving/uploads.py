"""Uploaded recordings decoded in turns: no long recording delays a short one by its length."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from nearfuture.serving.errors import RequestError

T = TypeVar("T")

CONCURRENT = 4
"""Recordings that are decoded at the same time; others wait, on disk, for their turn."""

_TURN_S = 10.0  # of audio; then a recording that waits has a turn first
_STUCK_S = 30.0


class UploadScheduler:
    """The recordings that a server has received, and whose turn it is.

    A turn is `_TURN_S` of audio. Then a recording goes to the end of the queue, if there is one: a
    short recording waits for a turn of those before it, never for their whole length.

    Args:
        max_started: recordings whose text has begun; each has a place among the streams.
        clock: in seconds.
    """

    def __init__(self, max_started: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Their own threads: those of the event loop open live streams, and what an upload makes a
        # decoder do cannot be interrupted, not even when its client has left.
        self._threads = ThreadPoolExecutor(CONCURRENT, "nearfuture-upload")
        self._starts = asyncio.Semaphore(max(CONCURRENT, max_started))
        self._turns = asyncio.Semaphore(CONCURRENT)  # first come, first served
        self._waiting: dict[Upload, float] = {}  # for their first turn, since when
        self._running: dict[Upload, float] = {}  # when it last made progress

    @property
    def waiting(self) -> int:
        """The number of uploads that wait for their first turn."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """The number of uploads that are being decoded."""
        return len(self._running)

    @property
    def waited_s(self) -> float:
        """The time for which the first upload in the queue has waited."""
        now = self._clock()
        return now - min(self._waiting.values(), default=now)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run work where neither the event loop nor a live stream waits for it."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def overload(self) -> RequestError | None:
        """Return why another recording should go to another server; None if it need not."""
        if self.waited_s > _STUCK_S:
            return RequestError(
                "busy",
                f"{self.waiting} uploads wait, the first for {self.waited_s:.0f} s: try again "
                f"later, or try another server",
            )
        now = self._clock()
        stalled_s = now - max(self._running.values(), default=now)
        if self.running >= CONCURRENT and stalled_s > _STUCK_S:
            return RequestError(
                "busy",
                f"the {self.running} uploads that are being decoded make no progress for "
                f"{stalled_s:.0f} s: try another server",
            )
        return None

    @asynccontextmanager
    async def admit(self) -> AsyncGenerator[Upload]:
        """Admit one more recording, from the moment when it has its first turn."""
        upload = Upload(self)
        self._waiting[upload] = self._clock()
        started = False
        try:
            await self._starts.acquire()
            started = True
            await upload.take_turn()
            del self._waiting[upload]
            yield upload
        finally:
            self._waiting.pop(upload, None)
            upload.release_turn()
            if started:
                self._starts.release()


class Upload:
    """One recording; made by `UploadScheduler.admit`."""

    def __init__(self, scheduler: UploadScheduler) -> None:
        self._scheduler = scheduler
        self.in_thread = scheduler.in_thread
        self._has_turn = False
        self._remaining_s = _TURN_S

    async def take_turn(self) -> None:
        """Wait for a turn."""
        await self._scheduler._turns.acquire()
        self._has_turn, self._remaining_s = True, _TURN_S
        self.record_progress()

    def release_turn(self) -> None:
        """Let others have the turn."""
        if self._has_turn:
            self._has_turn = False
            del self._scheduler._running[self]
            self._scheduler._turns.release()

    def record_progress(self) -> None:
        """Record that the decoder has produced something."""
        self._scheduler._running[self] = self._scheduler._clock()

    async def advance(self, seconds: float) -> None:
        """Record audio that was decoded; where the turn is over, wait for the next."""
        self._remaining_s -= seconds
        self.record_progress()
        if self._remaining_s <= 0:
            self.release_turn()
            await self.take_turn()
