"""Turns of uploaded recordings: nobody's hours stand before somebody else's seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from nearfuture.serving.limits import Refused

T = TypeVar("T")

TURNS = 4
"""Recordings that are decoded at the same time; others wait, on disk, for their turn."""

_TURN_S = 10.0  # of audio; then whoever waits has a turn first
_STUCK_S = 30.0


class Uploads:
    """The recordings that a server has taken in, and whose turn it is.

    A turn is `_TURN_S` of audio. Then a recording goes to the end of the queue, if there is one: a
    short recording waits for a turn of those before it, never for their whole length.

    Args:
        most: recordings whose text has begun; each has a place among the streams.
        clock: in seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Their own threads: those of the event loop open live streams, and what an upload makes a
        # decoder do cannot be interrupted, not even when its client has left.
        self._threads = ThreadPoolExecutor(TURNS, "nearfuture-upload")
        self._begun = asyncio.Semaphore(max(TURNS, most))
        self._turns = asyncio.Semaphore(TURNS)  # first come, first served
        self._waiting: dict[Upload, float] = {}  # for their first turn, since when
        self._running: dict[Upload, float] = {}  # when it last got on

    @property
    def waiting(self) -> int:
        """How many wait for their first turn."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """How many are being decoded just now."""
        return len(self._running)

    @property
    def waited_s(self) -> float:
        """How long the first of those that wait has waited."""
        now = self._clock()
        return now - min(self._waiting.values(), default=now)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """What it gives, done where neither the event loop nor a live stream waits for it."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def why_not(self) -> Refused | None:
        """Why another recording had better go to another server; None if it need not."""
        if self.waited_s > _STUCK_S:
            return Refused(
                "busy",
                f"{self.waiting} uploads wait, the first for {self.waited_s:.0f} s: try again "
                f"later, or ask another server",
            )
        now = self._clock()
        silent_s = now - max(self._running.values(), default=now)
        if self.running >= TURNS and silent_s > _STUCK_S:
            return Refused(
                "busy",
                f"the {self.running} uploads that are being decoded have not got on for "
                f"{silent_s:.0f} s: ask another server",
            )
        return None

    @asynccontextmanager
    async def entered(self) -> AsyncGenerator[Upload]:
        """One more recording, from the moment when it has its first turn."""
        upload = Upload(self)
        self._waiting[upload] = self._clock()
        begun = False
        try:
            await self._begun.acquire()
            begun = True
            await upload.take()
            del self._waiting[upload]
            yield upload
        finally:
            self._waiting.pop(upload, None)
            upload.give()
            if begun:
                self._begun.release()


class Upload:
    """One recording; made by `Uploads.entered`."""

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads
        self.in_thread = uploads.in_thread
        self._has_turn = False
        self._left_s = _TURN_S

    async def take(self) -> None:
        """Wait for a turn."""
        await self._uploads._turns.acquire()
        self._has_turn, self._left_s = True, _TURN_S
        self.gets_on()

    def give(self) -> None:
        """Let others have the turn."""
        if self._has_turn:
            self._has_turn = False
            del self._uploads._running[self]
            self._uploads._turns.release()

    def gets_on(self) -> None:
        """Note that the decoder has given something."""
        self._uploads._running[self] = self._uploads._clock()

    async def has_heard(self, seconds: float) -> None:
        """Note audio that was decoded; where the turn is over, wait for the next."""
        self._left_s -= seconds
        self.gets_on()
        if self._left_s <= 0:
            self.give()
            await self.take()
