"""Processes of this machine that share a training, and how it is interrupted gracefully."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

from nearfuture.error import NearfutureError
from nearfuture.training.distributed import Group, init_group

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class WorkerGroup:
    """The other processes of this machine, and the file where all of them meet.

    Attributes:
        rendezvous: The file; None where there are no others.
        processes: The others.
    """

    rendezvous: Path | None = None
    processes: tuple[BaseProcess, ...] = ()

    def failed(self) -> bool:
        """Whether a worker ended before the training did."""
        return any(process.exitcode not in (None, 0) for process in self.processes)

    def terminate(self) -> None:
        """End them."""
        for process in self.processes:
            process.terminate()
            process.join()


@contextlib.contextmanager
def worker_group(work: Callable[[Group], object], processes: int) -> Iterator[WorkerGroup]:
    """Start the processes that share the work of this one, until it is done.

    Args:
        work: What each of them does; it is pickled.
        processes: How many there are, this one included.
    """
    if processes == 1:
        yield WorkerGroup()
        return
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="nearfuture-") as folder:
        rendezvous = Path(folder) / "rendezvous"
        others = tuple(
            context.Process(target=_work, args=(work, rank, processes, rendezvous), daemon=True)
            for rank in range(1, processes)
        )
        workers = WorkerGroup(rendezvous, others)
        # Ctrl-C reaches every process of a terminal; what is ignored here is ignored there too.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for other in others:
            other.start()
        signal.signal(signal.SIGINT, handler)
        try:
            yield workers
            for other in others:
                other.join()
        finally:
            workers.terminate()


def _work(work: Callable[[Group], object], rank: int, world_size: int, rendezvous: Path) -> None:
    """Work in a process that ends with the one that started it."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    with (
        contextlib.suppress(NearfutureError),  # the main process meets it as well, and reports it
        init_group(rank=rank, world_size=world_size, rendezvous=rendezvous) as group,
    ):
        work(group)


@contextlib.contextmanager
def graceful_interrupt(on_request: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C within the context into a request to stop at the next step.

    The third Ctrl-C ends the process at once, also where it hangs in a call of C.

    Args:
        on_request: Called with the first Ctrl-C.
    """
    requested = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        if not requested:
            on_request()
        requested = True

    handlers = {number: signal.signal(number, handle) for number in _SIGNALS}
    read, write = os.pipe()
    os.set_blocking(write, False)
    others = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_exit_at_the_third, args=(read,), daemon=True).start()
    try:
        yield lambda: requested
    finally:
        for number, handler in handlers.items():
            # Impatience must not cost a checkpoint. A handler would not last until the very end.
            signal.signal(number, signal.SIG_IGN if requested else handler)
        signal.set_wakeup_fd(others)
        os.close(write)


def _exit_at_the_third(pipe: int) -> None:
    """Count signals in a thread: the main one may wait for ever, in a call of C."""
    signals = 0
    while arrived := os.read(pipe, 1):
        signals += arrived[0] in _SIGNALS
        if signals == 3:
            os._exit(130)
    os.close(pipe)
