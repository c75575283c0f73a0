"""Events from the engine's thread to the event loop, in bounded memory."""

from __future__ import annotations

import asyncio
import threading
from collections import deque

from nearfuture.runtime import Event


class EventQueue:
    """A queue that the engine's thread fills and the event loop empties.

    An event that ends no utterance is replaced by the next one unless it was taken: a slow
    reader misses what would have been overwritten on the screen anyway, and never an end.

    Args:
        loop: the one that takes.

    >>> async def main():
    ...     queue = EventQueue(asyncio.get_running_loop())
    ...     for text, ends in (("o", False), ("one", False), ("one", True), ("t", False)):
    ...         queue.put(Event(text, "", False, 0.0, (), 0, 0.0, ends=ends))
    ...     await queue.filled.wait()
    ...     return [(event.committed, event.ends) for event, last in queue.take()]
    >>> asyncio.run(main())
    [('one', True), ('t', False)]
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.filled = asyncio.Event()
        self._loop = loop
        self._lock = threading.Lock()
        self._events: deque[tuple[Event | Exception, bool]] = deque()
        self._notified = False

    @property
    def ends(self) -> int:
        """The number of ended utterances in the queue."""
        with self._lock:
            return sum(isinstance(event, Event) and event.ends for event, _ in self._events)

    def put(self, event: Event | Exception, *, last: bool = False) -> None:
        """Add an event, or the error that ends the stream; from any thread, never waits.

        Args:
            event: what happened.
            last: whether nothing follows.
        """
        with self._lock:
            before = self._events[-1][0] if self._events else None
            if isinstance(before, Event) and not before.ends:
                self._events.pop()
            self._events.append((event, last))
            notified, self._notified = self._notified, True
        if not notified:
            try:
                self._loop.call_soon_threadsafe(self.filled.set)
            except RuntimeError:
                return  # the loop is closed: nothing waits any more

    def take(self) -> list[tuple[Event | Exception, bool]]:
        """Remove all events, oldest first, each with whether it is the last; in the loop only."""
        with self._lock:
            events = list(self._events)
            self._events.clear()
            self._notified = False
        self.filled.clear()
        return events
