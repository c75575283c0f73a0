"""N live streams in real time through one dispatcher, and what they saw."""

import heapq
import math
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nearfuture.error import NearfutureError
from nearfuture.runtime import Dispatcher, Event, LiveStream

LIMIT_MS = 67.0  # Deep Speech 2: p98 of 10 streams on one GPU
WARM_UP_S = 1.5
CHUNK_MS = 40


@dataclass
class Run:
    """What N streams saw. Times in ms."""

    precision: str
    streams: int
    compute_p50: float = math.nan
    compute_p98: float = math.nan
    final_p50: float = math.nan
    final_p98: float = math.nan
    finals: int = 0
    events: int = 0
    load: float = math.nan
    behind_s: float = 0.0
    feeder_late_p98: float = math.nan
    rss_mb: float = math.nan
    batch_sizes: dict[int, int] = field(default_factory=dict)
    share: dict[str, float] = field(default_factory=dict)

    @property
    def keeps_up(self) -> bool:
        # No stream may have ended in so short a time.
        return self.compute_p98 < LIMIT_MS and not self.final_p98 >= LIMIT_MS


class Speaker:
    """Feeds one place: an utterance, its end, at once another utterance."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        tape: np.ndarray,
        utterance_s: tuple[float, float],
        random: np.random.Generator,
    ) -> None:
        self.dispatcher, self.tape, self.random = dispatcher, tape, random
        self.utterance_s = utterance_s
        self.compute_ms: list[tuple[float, float]] = []
        self.final_ms: list[tuple[float, float]] = []
        self.stream = self._next()

    def _next(self) -> LiveStream:
        rate = self.dispatcher.manifest.rate
        self.left = int(self.random.uniform(*self.utterance_s) * rate)
        self.at = int(self.random.integers(len(self.tape) - self.left))
        return self.dispatcher.open(on_event=self._heard)

    def _heard(self, event: Event) -> None:
        kept = self.final_ms if event.final else self.compute_ms
        kept.append((time.perf_counter(), event.compute_ms))

    def speak(self, samples: int) -> None:
        samples = min(samples, self.left)
        self.stream.accept(self.tape[self.at : self.at + samples])
        self.at += samples
        self.left -= samples
        if self.left == 0:
            self.stream.finish()
            self.stream = self._next()


def real_time(
    dispatcher: Dispatcher, streams: int, seconds: float, utterance_s: tuple[float, float]
) -> Run:
    """N streams for so long, each chunk at its time."""
    random = np.random.default_rng(streams)
    rate = dispatcher.manifest.rate
    tape = (0.1 * random.standard_normal(int(3 * utterance_s[1] * rate))).astype(np.float32)
    chunk = rate * CHUNK_MS // 1000
    run = Run(dispatcher.precision, streams)
    # The first utterance of each begins somewhere in its middle: ends come evenly from the start.
    speakers = [Speaker(dispatcher, tape, utterance_s, random) for _ in range(streams)]
    for speaker in speakers:
        speaker.left = int(speaker.left * random.uniform(0.1, 1))
    began = time.perf_counter()
    due = [(began + random.uniform(0, CHUNK_MS / 1000), n) for n in range(streams)]
    heapq.heapify(due)
    late: list[float] = []
    before = None
    while due[0][0] < began + WARM_UP_S + seconds:
        at, n = due[0]
        wait = at - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        late.append(max(0.0, time.perf_counter() - at))
        if before is None and at > began + WARM_UP_S:
            before = dispatcher.stats()
        try:
            speakers[n].speak(chunk)
        except NearfutureError:  # more than max_waiting_s of it waits: hopelessly behind
            run.compute_p98 = run.final_p98 = math.inf
            break
        heapq.heapreplace(due, (at + CHUNK_MS / 1000, n))
    after = dispatcher.stats()
    for speaker in speakers:
        speaker.stream.close()
    if before is None:
        return run
    from_s = began + WARM_UP_S
    compute = [ms for s in speakers for at, ms in s.compute_ms if at > from_s]
    final = [ms for s in speakers for at, ms in s.final_ms if at > from_s]
    run.events, run.finals = len(compute), len(final)
    if compute:
        run.compute_p50, run.compute_p98 = np.percentile(compute, (50, 98)).tolist()
    if final:
        run.final_p50, run.final_p98 = np.percentile(final, (50, 98)).tolist()
    run.load, run.behind_s = after.load, after.behind_s
    run.feeder_late_p98 = float(1000 * np.percentile(late, 98))
    run.rss_mb = resident_mb()
    counts = Counter(after.batch_sizes)
    counts.subtract(before.batch_sizes)
    run.batch_sizes = {size: count for size, count in sorted(counts.items()) if count}
    spent = {part: s - before.spent_s.get(part, 0.0) for part, s in after.spent_s.items()}
    run.share = {part: s / seconds for part, s in spent.items()}
    return run


def resident_mb() -> float:
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return math.nan
