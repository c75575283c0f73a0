"""A server in a process of its own, and what it costs: memory, processor time, answers."""

import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nearfuture.audio import read
from nearfuture.runtime.bundle import MODELS

CLIPS = ("flite-slt-720", "flite-rms-991", "flite-rms-3602")
RATE = 8000
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass
class Served:
    """A server that runs; `log` is what it has written."""

    pid: int
    port: int
    log: list[str]

    def url(self, path: str = "/stream") -> str:
        return f"ws://127.0.0.1:{self.port}{path}"

    def rss_mb(self) -> float:
        for line in Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise OSError("this system does not tell how large a process is")

    def cpu_s(self) -> float:
        """Processor time so far, of all its threads."""
        fields = (
            Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        )
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def health_ms(self) -> float:
        began = time.perf_counter()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=60) as answer:
            assert answer.status == 200
        return 1000 * (time.perf_counter() - began)

    def failures(self) -> int:
        return sum("Traceback" in line or " error " in line for line in self.log)


@contextmanager
def served(*arguments: str, model: str | Path = "digits") -> Iterator[Served]:
    """A server of a model, with more arguments of `nearfuture serve`."""
    command = [sys.executable, "-m", "nearfuture", "serve", "--model", str(model), "--port", "0"]
    with subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        log: list[str] = []
        port = None
        for line in process.stderr:
            log.append(line)
            if line.startswith("nearfuture serves"):
                port = int(line.rsplit(":", 1)[1])
                break
        if port is None:
            raise RuntimeError("the server did not start:\n" + "".join(log))
        reading = threading.Thread(target=log.extend, args=(process.stderr,), daemon=True)
        reading.start()
        try:
            yield Served(process.pid, port, log)
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
            reading.join()


def speech(seconds: float, *, seed: int = 0) -> np.ndarray:
    """Bundled recordings and pauses at random, as int16 at 8 kHz."""
    random = np.random.default_rng(seed)
    clips = [read(MODELS.parent / "samples" / f"{name}.flac").samples for name in CLIPS]
    parts: list[np.ndarray] = []
    left = int(seconds * RATE)
    while left > 0:
        clip = clips[random.integers(len(clips))]
        parts += [clip, np.zeros(int(random.uniform(0.1, 1.5) * RATE), np.float32)]
        left -= len(parts[-2]) + len(parts[-1])
    joined = np.concatenate(parts)[: int(seconds * RATE)]
    return np.round(32767 * joined).astype("<i2")
