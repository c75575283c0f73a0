"""What one 40 ms quantum costs the bundled model on one core: p50, p99, real-time factor.

Also the cost after an hour of audio beside the cost at the start, in one run.

    python benchmarks/quantum.py
"""

import time

import numpy as np
from _report import emit
from rich.table import Table

from nearfuture.runtime import Stream, load

MINUTES = 60
WINDOW = 2500  # quanta: 100 s of audio


def timed(stream: Stream, quanta: int, rng: np.random.Generator) -> np.ndarray:
    took = np.empty(quanta)
    for i in range(quanta):
        samples = rng.normal(0.0, 0.05, 320).astype(np.float32)
        began = time.perf_counter()
        stream.accept(samples)
        took[i] = 1000 * (time.perf_counter() - began)
    return took


def main() -> None:
    rng = np.random.default_rng(0)
    model = load("digits")
    stream = model.stream()
    timed(stream, 50, rng)  # warm up
    hour = timed(stream, MINUTES * 60 * 25, rng)
    start, end = hour[:WINDOW], hour[-WINDOW:]
    ratio = float(np.median(end) / np.median(start))
    results = {
        "p50_ms": float(np.median(hour)),
        "p99_ms": float(np.percentile(hour, 99)),
        "real_time_factor": float(hour.sum() / (40 * len(hour))),
        "hour_over_start": ratio,
    }
    table = Table("figure", "value", title=f"one stream, one core, {len(hour)} quanta of 40 ms")
    table.add_row("compute p50", f"{results['p50_ms']:.3f} ms")
    table.add_row("compute p99", f"{results['p99_ms']:.3f} ms")
    table.add_row("real-time factor", f"{results['real_time_factor']:.4f}")
    table.add_row("cost after an hour / at the start", f"{ratio:.3f}")
    emit(table, results)


if __name__ == "__main__":
    main()
