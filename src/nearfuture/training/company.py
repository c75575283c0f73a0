"""Processes of this machine that share the work of one, and how that one is asked to stop."""

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
from nearfuture.training.distributed import join
from nearfuture.training.request import Request
from nearfuture.training.session import train

_WISHES = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Company:
    """The other processes of this machine, and the file at which all meet.

    Attributes:
        meeting: the file; None where there are no others.
        processes: the others.
    """

    meeting: Path | None = None
    processes: tuple[BaseProcess, ...] = ()

    def lost(self) -> bool:
        """Whether one of them ended before its time."""
        return any(one.exitcode not in (None, 0) for one in self.processes)

    def dismiss(self) -> None:
        """End them."""
        for one in self.processes:
            one.terminate()
            one.join()


@contextlib.contextmanager
def company(request: Request, processes: int) -> Iterator[Company]:
    """Processes that share the work of this one, until it is done."""
    if processes == 1:
        yield Company()
        return
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="nearfuture-") as folder:
        meeting = Path(folder) / "meeting"
        others = tuple(
            context.Process(target=_follow, args=(request, rank, processes, meeting), daemon=True)
            for rank in range(1, processes)
        )
        all_of_them = Company(meeting, others)
        # Ctrl-C reaches every process of a terminal; what is ignored here is ignored there too.
        heeded = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for other in others:
            other.start()
        signal.signal(signal.SIGINT, heeded)
        try:
            yield all_of_them
            for other in others:
                other.join()
        finally:
            all_of_them.dismiss()


def _follow(request: Request, rank: int, ranks: int, meeting: Path) -> None:
    """The body of a process that shares the work; it ends with the one that started it."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    with (
        contextlib.suppress(NearfutureError),  # the first process meets it as well, and says so
        join(rank=rank, ranks=ranks, meeting=meeting) as group,
    ):
        train(request, group)


@contextlib.contextmanager
def gently(told: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Within, Ctrl-C is a wish that is noted; after it this process is about to end.

    The third one within ends it at once, also where it hangs in a call of C.
    """
    asked = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if not asked:
            told()
        asked = True

    before = {one: signal.signal(one, handle) for one in _WISHES}
    read, write = os.pipe()
    os.set_blocking(write, False)
    others = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_end_at_the_third, args=(read,), daemon=True).start()
    try:
        yield lambda: asked
    finally:
        for one, heeded in before.items():
            # Impatience must not cost a checkpoint. A handler would not last until the very end.
            signal.signal(one, signal.SIG_IGN if asked else heeded)
        signal.set_wakeup_fd(others)
        os.close(write)


def _end_at_the_third(pipe: int) -> None:
    """Count the wishes to end in a thread: the main one may wait for ever, in a call of C."""
    wishes = 0
    while arrived := os.read(pipe, 1):
        wishes += arrived[0] in _WISHES
        if wishes == 3:
            os._exit(130)
    os.close(pipe)
