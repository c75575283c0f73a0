"""What a training does to a recording, so that the model has heard more than its recordings."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.data.corpus import corpus_folder
from nearfuture.data.item import Item, load_item
from nearfuture.data.sound import (
    add_noise,
    at_level,
    at_speed,
    in_room,
    mix,
    simulated_room,
    without_silent_ends,
)
from nearfuture.error import NearfutureError
from nearfuture.text import counted

Samples = NDArray[np.float32]
Range = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """How recordings are varied, in this order; whatever is random follows from the generator.

    1. Ends: each is cut tight with the probability `tight`, or else is given extra silence with
       the probability `silence`. Models that always heard a pause around a word miss words that
       were cut by a voice-activity detector.
    2. Speed: by a factor from 1 − `speed` to 1 + `speed`, pitch and all (Ko et al. 2015, "Audio
       augmentation for speech recognition", who take 0.9, 1 and 1.1; uniformly between here).
    3. Room: with the probability `reverberation`, a measured impulse response, or a simulated one
       where there are none (Ko et al. 2017, "A study on data augmentation of reverberant speech
       for robust speech recognition"; their simulation is of walls, ours of decaying noise).
    4. Level: a root mean square, silence included, that is uniform in dB. Lower than people
       record: a model is deaf to levels it never heard.
    5. Noise: with the probability `noise` a piece of a recording (Deep Speech 2, §5: "a good
       balance is to add noise to 40 % of the utterances"). The others get a faint synthetic noise
       of a random colour with the probability `faint`; the rest stay clean, so that digital
       silence is known, too.

    Ranges are uniform, those of signal-to-noise ratios in dB over the whole recording.

    Attributes:
        tight: probability, for each end.
        silence: probability, for each end that was not cut.
        silence_s: so much of it.
        speed: played up to so much faster or slower; 0 leaves it alone.
        reverberation: probability.
        rt60_s: of simulated rooms, in which a sound falls by 60 dB.
        direct_db: of simulated rooms, the direct sound over the reflections.
        level_dbfs: of the recording before the noise; less where it would clip. None leaves it.
        noise: probability.
        noise_snr_db: of recorded noise.
        faint: probability, where there is no recorded noise.
        faint_snr_db: of synthetic noise.

    Raises:
        NearfutureError: for a probability outside [0, 1], or a range that is none.

    >>> rng = np.random.default_rng(0)
    >>> tone = np.sin(np.arange(8000, dtype=np.float32))
    >>> heard = Augmentation(speed=0.1).apply(tone, 8000, rng)
    >>> heard.dtype, bool(np.abs(heard).max() <= 1)
    (dtype('float32'), True)
    >>> Augmentation.none().apply(tone, 8000, rng) is tone
    True
    """

    tight: float = 0.25
    silence: float = 0.5
    silence_s: Range = (0.0, 0.3)
    speed: float = 0.1
    reverberation: float = 0.2
    rt60_s: Range = (0.15, 0.6)
    direct_db: Range = (0.0, 12.0)
    level_dbfs: Range | None = (-55.0, -10.0)
    noise: float = 0.4
    noise_snr_db: Range = (5.0, 30.0)
    faint: float = 0.7
    faint_snr_db: Range = (15.0, 45.0)

    def __post_init__(self) -> None:
        for name in ("tight", "silence", "reverberation", "noise", "faint"):
            if not 0 <= getattr(self, name) <= 1:
                raise NearfutureError(
                    f"{name} is {getattr(self, name)}: a probability from 0 to 1 is wanted"
                )
        if not 0 <= self.speed < 1:
            raise NearfutureError(f"speed is {self.speed}: from 0 to less than 1, e.g. 0.1")
        for name, least in (
            ("silence_s", 0.0),
            ("rt60_s", 0.01),
            ("direct_db", -100.0),
            ("level_dbfs", -100.0),
            ("noise_snr_db", -100.0),
            ("faint_snr_db", -100.0),
        ):
            of = getattr(self, name)
            if of is not None and not least <= of[0] <= of[1] < 200:
                raise NearfutureError(
                    f"{name} is {of}: two numbers from {least:g} on are wanted, the smaller first"
                )

    @classmethod
    def none(cls) -> Augmentation:
        """One that changes nothing."""
        return cls(
            tight=0.0,
            silence=0.0,
            speed=0.0,
            reverberation=0.0,
            level_dbfs=None,
            noise=0.0,
            faint=0.0,
        )

    def apply(
        self,
        samples: Samples,
        rate: int,
        rng: np.random.Generator,
        *,
        noises: Sequence[NDArray[Any]] = (),
        rooms: Sequence[Samples] = (),
        enough: Callable[[int], bool] = lambda samples: True,
    ) -> Samples:
        """A recording as the model shall hear it this time.

        Args:
            samples: (n,) float32 in [-1, 1].
            rate: of everything here.
            rng: all that is random comes from it.
            noises: recordings of noise; without any, all noise is faint and synthetic.
            rooms: impulse responses; without any, rooms are simulated.
            enough: whether so many samples can hold what is said; where they cannot, the recording
                keeps its ends and its speed.

        Returns:
            (m,) float32 in [-1, 1]; m is at most n / (1 − speed) plus twice the longest silence.
        """
        if samples.size == 0:
            return samples
        varied = self._ends(samples, rate, rng)
        if self.speed:
            varied = at_speed(varied, rng.uniform(1 - self.speed, 1 + self.speed))
        samples = varied if enough(varied.size) else samples
        if rng.random() < self.reverberation:
            if rooms:
                room = rooms[int(rng.integers(len(rooms)))]
            else:
                room = simulated_room(
                    rate, rng.uniform(*self.rt60_s), rng.uniform(*self.direct_db), rng
                )
            samples = in_room(samples, room)
            samples = samples / np.float32(max(1.0, float(np.abs(samples).max(initial=0.0))))
        if self.level_dbfs is not None:
            samples = at_level(samples, rng.uniform(*self.level_dbfs))
        if rng.random() < self.noise and noises:
            noise = noises[int(rng.integers(len(noises)))]
            return mix(samples, noise, rng.uniform(*self.noise_snr_db), rng)
        if rng.random() < self.faint:
            snr_db, tilt = rng.uniform(*self.faint_snr_db), rng.uniform(0.0, 1.5)
            return add_noise(samples, snr_db, tilt, rng)
        return samples

    def _ends(self, samples: Samples, rate: int, rng: np.random.Generator) -> Samples:
        begin, end = rng.random(2) < self.tight
        if begin or end:
            samples = without_silent_ends(samples, rate, begin=bool(begin), end=bool(end))
        more = [
            0 if cut or rng.random() >= self.silence else round(rng.uniform(*self.silence_s) * rate)
            for cut in (begin, end)
        ]
        return np.pad(samples, more) if any(more) else samples


def noises(rate: int) -> list[NDArray[np.int16]]:
    """The recordings of the corpus `noise`, at `rate`; none where it is not there.

    Each fills the 16 bits: their levels mean nothing, since they are mixed in at a stated ratio.

    Raises:
        NearfutureError: where one of them cannot be read.
    """
    return [
        np.round(samples * (32767 / max(float(np.abs(samples).max()), 1e-9))).astype(np.int16)
        for samples in _corpus("noise", rate)
    ]


def room_responses(rate: int) -> list[Samples]:
    """The impulse responses of the corpus `rir`, at `rate`; none where it is not there.

    Raises:
        NearfutureError: where one of them cannot be read.
    """
    return _corpus("rir", rate)


def contents(name: str) -> str:
    """How many recordings one of these two corpora has, and the beginning of a digest of them.

    Raises:
        NearfutureError: where one of them cannot be read.

    >>> contents("no such corpus")
    'none'
    """
    paths = _paths(name)
    digest = hashlib.sha256()
    for path in paths:
        try:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        except OSError as error:
            raise NearfutureError(f"cannot read {path}: {error.strerror}") from error
    return f"{counted(len(paths), 'recording')} ({digest.hexdigest()[:12]})" if paths else "none"


def _paths(name: str) -> list[Path]:
    folder = corpus_folder(name)
    if folder is None:
        return []
    lines = (folder / "manifest.tsv").read_text(encoding="utf-8").split("\n")
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return [folder / row["path"] for row in rows]


def _corpus(name: str, rate: int) -> list[Samples]:
    # Of several microphones the first: their mean would be a room that nobody stood in.
    loaded = [
        load_item(Item(name=str(path), path=path, text="", channel=0), rate)
        for path in _paths(name)
    ]
    return [samples for samples in loaded if samples.any()]
