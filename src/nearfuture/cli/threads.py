"""How many threads a process computes with, and what those do that have nothing to do."""

import os


def idle_quietly() -> None:
    """Let waiting threads sleep; it has an effect only before torch is loaded.

    Those of OpenMP turn in a loop for a while instead, which is faster on a machine that does
    nothing else, and takes a core from whoever shares one. What the environment says is left.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("KMP_BLOCKTIME", "0")  # Intel's and LLVM's own word for it


def threads_asked_for(threads: int | None) -> int:
    """So many as are told, or else those of OMP_NUM_THREADS, or else 1: processes use the cores.

    >>> threads_asked_for(3)
    3
    """
    if threads is not None:
        return threads
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # "4,2": of nested regions
    return max(1, int(first)) if first.isdecimal() else 1
