"""A recording that is played on the terminal: in real time, its text as it grows."""

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfuture.runtime import Event


def in_real_time(
    blocks: Iterable["NDArray[np.float32]"], rate: int
) -> Iterator["NDArray[np.float32]"]:
    """Yield each block of samples (n,) when a microphone would have recorded it."""
    began, samples = time.perf_counter(), 0
    for block in blocks:
        samples += len(block)
        time.sleep(max(0.0, began + samples / rate - time.perf_counter()))
        yield block


def styled(event: "Event") -> Text:
    """Show committed text bold and provisional text dim."""
    return Text.assemble((event.committed, "bold"), (event.provisional, "dim italic"))
