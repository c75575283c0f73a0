"""/t/ or /d/: a row convolution of ones over made-up evidence, and a recogniser of one sound.

The row convolution adds the evidence of a frame and of the τ frames behind it; what it reads is
found out by changing one frame at a time. The recogniser was trained on synthesised plosives, with
a head for each τ, and answers at the frame of the burst.

Shapes: `T` frames, `n` samples.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.lab.graphs import open_session
from nearfuture.lab.page import ASSETS

if TYPE_CHECKING:
    from nearfuture.runtime import Model

FOLDER = ASSETS / "evidence"
LOOKAHEADS = range(7)


@dataclass(frozen=True)
class Decision:
    """What row convolutions of ones answer at the frame of a consonant.

    Attributes:
        t: the probability of /t/, by τ.
        reads: for each τ, whether each frame changes the answer, measured.
    """

    t: NDArray[np.float32]
    reads: NDArray[np.bool_]


@cache
def schedules() -> dict[str, Any]:
    """When the evidence comes: (for /t/, for /d/) of each frame, by name, and the frame in ms."""
    about: dict[str, Any] = json.loads((FOLDER / "adding.json").read_text(encoding="utf-8"))
    return about


@cache
def _adding(folder: Path) -> Any:
    return open_session(folder / "adding.onnx")


def decide(evidence: Sequence[Sequence[float]]) -> Decision:
    """Add up evidence (T, 2) with each lookahead, and decide at the first frame.

    >>> late = schedules()["schedules"]["late"]
    >>> [round(float(p), 3) for p in decide(late).t][:4]
    [0.881, 0.953, 0.953, 0.002]
    >>> decide(late).reads[3].tolist()
    [True, True, True, True, False, False, False]
    """
    x = np.asarray(evidence, np.float32)[None]
    t = _first(x)
    reads = np.zeros((len(t), x.shape[1]), np.bool_)
    for frame in range(x.shape[1]):
        changed = x.copy()
        changed[0, frame, 0] += 1
        reads[:, frame] = _first(changed) != t
    return Decision(t, reads)


def _first(evidence: NDArray[np.float32]) -> NDArray[np.float32]:
    (p,) = _adding(FOLDER).run(None, {"evidence": evidence})
    first: NDArray[np.float32] = p[0, :, 0]
    return first


@dataclass(frozen=True)
class Plosive:
    """A synthesised consonant and vowel.

    Attributes:
        samples: (n,).
        rate: samples per second.
        burst_ms: where it bursts.
    """

    samples: NDArray[np.float32]
    rate: int
    burst_ms: int


def plosive(onset_ms: int) -> Plosive:
    """The consonant whose voice sets in so many ms behind its burst; a multiple of 10, up to 100.

    >>> plosive(20).burst_ms, plosive(20).rate
    (60, 8000)
    """
    from nearfuture.audio import read

    folder = FOLDER / "continuum"
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    audio = read(folder / f"vot-{onset_ms:03d}.wav")
    return Plosive(audio.samples, audio.rate, about["burst_ms"])


@cache
def recognizer() -> Model:
    """The recogniser of /t/ and /d/, with frames of 10 ms."""
    from nearfuture.runtime import load

    return load(FOLDER / "voicing")


def probabilities(sound: Plosive) -> list[float]:
    """The probability of /t/ against /d/ at the frame of the burst, by τ.

    >>> [round(p, 2) for p in probabilities(plosive(20))][:3]
    [0.62, 0.89, 0.24]
    """
    parts: list[Any] = []
    stream = recognizer().stream(sound.rate, on_log_probs=parts.append)
    stream.accept(sound.samples)
    stream.finish()
    frame = round(sound.burst_ms / recognizer().manifest.frame_ms)
    found = []
    for tau in LOOKAHEADS:
        _, d, t = np.concatenate([part[tau] for part in parts])[frame].tolist()
        found.append(float(1 / (1 + np.exp(d - t))))
    return found
