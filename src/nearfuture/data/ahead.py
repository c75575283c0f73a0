"""The batch of the next step, made while this one is trained on."""

from __future__ import annotations

import threading
from collections.abc import Callable

from nearfuture.data.batches import Batch

Make = Callable[[int, int, int], Batch]


class Ahead:
    """Makes the batch of the next step in a thread; decoding and FFTs leave the others running.

    There is one thread at most; it ends with its batch, so that there is nothing to close. A step
    that was not expected is made when it is asked for, after the thread has ended: no two batches
    are ever in the making at once. Ask from one thread at a time.

    >>> ahead = Ahead()
    >>> [ahead.batch(lambda step, rank, ranks: Batch(epoch=step), n, 0, 1).epoch for n in (0, 1, 5)]
    [0, 1, 5]
    """

    def __init__(self) -> None:
        self._thread: _Making | None = None

    def batch(self, make: Make, step: int, rank: int, ranks: int) -> Batch:
        """The batch that `make(step, rank, ranks)` returns, or the error that it raises.

        Args:
            make: a pure function.
            step: the one that is asked for.
            rank: of this process.
            ranks: so many processes.
        """
        if self._thread is not None:
            self._thread.join()
        thread, self._thread = self._thread, None
        if thread is not None and thread.key == (step, rank, ranks):
            batch = thread.result()
        else:
            batch = make(step, rank, ranks)
        self._thread = _Making(make, (step + 1, rank, ranks))
        self._thread.start()
        return batch


class _Making(threading.Thread):
    """A batch in the making."""

    def __init__(self, make: Make, key: tuple[int, int, int]) -> None:
        super().__init__(name=f"nearfuture: batch of step {key[0]}")
        self.key = key
        self._make: Make | None = make
        self._batch: Batch | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        assert self._make is not None
        try:
            self._batch = self._make(*self.key)
        except BaseException as error:  # raised where the batch is asked for
            self._error = error
        self._make = None

    def result(self) -> Batch:
        """The batch, after `join`, or whatever went wrong with it."""
        if self._error is not None:
            raise self._error
        assert self._batch is not None
        return self._batch
