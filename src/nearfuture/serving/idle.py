"""Sockets that have no request: each has a deadline, and their number a limit."""

from __future__ import annotations

import asyncio


class IdleSockets:
    """New sockets, those whose headers are on their way, and those that are kept for the next one.

    Anyone can open one without a key. So each is closed after a while, and one more than the limit
    takes the place of the one that has waited longest: a client that sends its request at once is
    admitted, however many others send none.

    Args:
        max_sockets: that there may be.
        seconds: after which one is closed.

    >>> class Socket:
    ...     def abort(self):
    ...         print("closed", self.name)
    >>> async def main():
    ...     idle = IdleSockets(2, 15.0)
    ...     for name in "abc":
    ...         (socket := Socket()).name = name
    ...         idle.add(socket)
    ...     return len(idle)
    >>> asyncio.run(main())
    closed a
    2
    """

    def __init__(self, max_sockets: int, seconds: float) -> None:
        self._max_sockets, self._seconds = max_sockets, seconds
        self._deadlines: dict[asyncio.Transport, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def add(self, socket: asyncio.Transport) -> None:
        """Begin to wait for a request; again, if it waits already."""
        self.discard(socket)
        if len(self._deadlines) >= self._max_sockets:
            self.drop_oldest()
        loop = asyncio.get_running_loop()
        self._deadlines[socket] = loop.call_later(self._seconds, self._drop, socket)

    def discard(self, socket: asyncio.Transport) -> None:
        """Stop waiting: the socket has a request, or is gone."""
        if (deadline := self._deadlines.pop(socket, None)) is not None:
            deadline.cancel()

    def drop_oldest(self) -> None:
        """Close the one that has waited the longest, if there is one."""
        if self._deadlines:
            self._drop(next(iter(self._deadlines)))

    def _drop(self, socket: asyncio.Transport) -> None:
        self.discard(socket)
        socket.abort()
