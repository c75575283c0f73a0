"""An hour of streamed attention: time and memory, against computing the window again.

Transformer blocks of chunked attention read 40 ms frames, a chunk at a time. Streamed, each block
keeps the keys and values of its window. Without a state, the same outputs need the whole receptive
field of the stack, computed again for each chunk. Both give the same outputs, which is checked.

    python benchmarks/attention_stream.py [--minutes 60] [--blocks 2]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from _report import emit
from rich.progress import track
from rich.table import Table
from torch import Tensor

from nearfuture.layers import ChunkedMask, RotaryPositions, SelfAttention, Serial, TransformerBlock
from nearfuture.layers.state import flatten

DIM, HEADS, FRAME_MS = 192, 4, 40
MASK = ChunkedMask(chunk=4, left_chunks=16)
SAMPLE = 200
"""Steps of which a median is taken."""


def resident_mib() -> float:
    """The memory that this process holds now."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 2**10


def median_ms(steps: int, step: Callable[[], object]) -> float:
    """Milliseconds of processor time, which other programs do not add to."""
    times = []
    for _ in range(steps):
        begin = time.process_time()
        step()
        times.append(1000 * (time.process_time() - begin))
    return statistics.median(times)


@torch.inference_mode()
def measure(minutes: float, blocks: int) -> dict[str, float]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Serial(
        *(
            TransformerBlock(SelfAttention(DIM, HEADS, mask=MASK, positions=RotaryPositions()))
            for _ in range(blocks)
        )
    ).eval()
    chunk = MASK.chunk
    window = int(model.field.left) + 1  # frames that a chunk's outputs depend on
    frames = torch.randn(1, window, DIM)
    assert window % chunk == 0
    n, whole = torch.tensor([chunk]), torch.tensor([window])
    state = model.start(1)
    fed = 0

    def step() -> Tensor:
        nonlocal state, fed
        place = fed % window
        y, _, state = model.step(frames[:, place : place + chunk], n, state)
        fed += chunk
        return y

    def again() -> Tensor:
        """The last chunk's outputs from the window that ends with it."""
        recent = frames.roll(-(fed % window), dims=1)
        return model(recent, whole)[0][:, -chunk:]

    total = int(minutes * 60_000 / FRAME_MS)
    for _ in range(2 * window // chunk):  # the window is full, the allocator warm
        step()
    start_ms = median_ms(SAMPLE, step)
    again_ms = median_ms(SAMPLE // 4, again)
    before = resident_mib()
    begin = time.process_time()
    steps = (total - fed) // chunk - SAMPLE
    for _ in track(range(steps), description="streaming"):
        step()
    streaming_s = time.process_time() - begin
    off = (step() - again()).abs().max().item()
    assert off < 1e-4, off
    later_ms = median_ms(SAMPLE, step)
    return {
        "frames": fed,
        "window_frames": window,
        "state_kib": sum(leaf.nbytes for leaf in flatten(state)) / 2**10,
        "step_at_start_ms": start_ms,
        "step_after_ms": later_ms,
        "later_to_start": later_ms / start_ms,
        "recomputed_ms": again_ms,
        "recomputed_to_streamed": again_ms / start_ms,
        "frames_per_second": steps * chunk / streaming_s,
        "resident_before_mib": before,
        "resident_after_mib": resident_mib(),
        "largest_difference": off,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="of audio to stream")
    parser.add_argument("--blocks", type=int, default=2, help="Transformer blocks of the stack")
    options = parser.parse_args()
    results = measure(options.minutes, options.blocks)
    table = Table("what", "figure", title=f"{options.blocks} blocks, {options.minutes:g} minutes")
    table.add_row("step of a chunk at the start, ms", f"{results['step_at_start_ms']:.3f}")
    table.add_row("step of a chunk at the end, ms", f"{results['step_after_ms']:.3f}")
    table.add_row("end / start", f"{results['later_to_start']:.2f}")
    table.add_row("the window computed again, ms", f"{results['recomputed_ms']:.3f}")
    table.add_row("computed again / streamed", f"{results['recomputed_to_streamed']:.1f}")
    table.add_row("frames a second", f"{results['frames_per_second']:.0f}")
    table.add_row("state of a stream, KiB", f"{results['state_kib']:.0f}")
    table.add_row("resident before, MiB", f"{results['resident_before_mib']:.1f}")
    table.add_row("resident after, MiB", f"{results['resident_after_mib']:.1f}")
    table.add_row("largest difference", f"{results['largest_difference']:.1e}")
    emit(table, results)


if __name__ == "__main__":
    main()
