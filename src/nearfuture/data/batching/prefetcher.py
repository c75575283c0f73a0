"""The batch of the next step, made while the model trains on this one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread

from nearfuture.data.batching.batch import Batch

MakeBatch = Callable[[int, int, int], Batch]


class Prefetcher:
    """Makes the batch of the next step in a thread; decoding and FFTs release the interpreter lock.

    There is one thread at most; it ends with its batch, so that there is nothing to close. A step
    that was not expected is made when it is requested, after the thread has ended: no two batches
    are ever made at once. Request from one thread at a time.

    >>> prefetcher, make = Prefetcher(), lambda step, rank, world_size: Batch(epoch=step)
    >>> [prefetcher.batch(make, step, 0, 1).epoch for step in (0, 1, 5)]
    [0, 1, 5]
    """

    def __init__(self) -> None:
        self._thread: Thread | None = None
        self._key: tuple[int, int, int] | None = None
        self._next: Future[Batch] = Future()

    def batch(self, make: MakeBatch, step: int, rank: int, world_size: int) -> Batch:
        """The batch that `make(step, rank, world_size)` returns, or the error that it raises.

        Args:
            make: a pure function.
            step: the requested one.
            rank: of this process.
            world_size: how many processes there are.
        """
        if self._thread is not None:
            self._thread.join()
        self._thread = None
        if self._key == (step, rank, world_size):
            self._key = None
            batch = self._next.result()
        else:
            batch = make(step, rank, world_size)
        self._start(make, (step + 1, rank, world_size))
        return batch

    def _start(self, make: MakeBatch, key: tuple[int, int, int]) -> None:
        future: Future[Batch] = Future()
        name = f"nearfuture: batch of step {key[0]}"
        self._key, self._next = key, future
        self._thread = Thread(target=_fill, args=(future, make, key), name=name)
        self._thread.start()


def _fill(future: Future[Batch], make: MakeBatch, key: tuple[int, int, int]) -> None:
    try:
        future.set_result(make(*key))
    except BaseException as error:  # raised where the batch is requested
        future.set_exception(error)
