"""How training varies a recording, so that the model meets more than its recordings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfuture.data.augmentation.environment import AcousticEnvironment
from nearfuture.data.augmentation.noise import add_noise, mix
from nearfuture.data.augmentation.rooms import in_room, simulated_room
from nearfuture.data.augmentation.sound import at_level, at_speed, without_silent_ends
from nearfuture.error import NearfutureError

Samples = NDArray[np.float32]
Range = tuple[float, float]

_QUIET = AcousticEnvironment()
_PROBABILITIES = ("trim", "silence", "reverberation", "noise", "synthetic_noise")
_LEAST = {  # of each range
    "silence_s": 0.0,
    "rt60_s": 0.01,
    "drr_db": -100.0,
    "level_dbfs": -100.0,
    "noise_snr_db": -100.0,
    "synthetic_snr_db": -100.0,
}


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """Random changes of training recordings, applied in this order, from one generator.

    1. Ends: each is trimmed tight with the probability `trim`, or else extended by silence with the
       probability `silence`. Models that were trained on pauses around words miss words that a
       voice-activity detector has cut out.
    2. Speed: by a factor from 1 − `speed` to 1 + `speed`, pitch and all (Ko et al. 2015, "Audio
       augmentation for speech recognition", who take 0.9, 1 and 1.1; uniformly between here).
    3. Room: with the probability `reverberation`, a measured impulse response, or a simulated one
       where there are none (Ko et al. 2017, "A study on data augmentation of reverberant speech
       for robust speech recognition"; their simulation is of walls, ours of decaying noise).
    4. Level: a root mean square, silence included, that is uniform in dB. Lower than people
       record: a model fails at levels that were not in its training.
    5. Noise: with the probability `noise` a piece of a recording (Deep Speech 2, §5: "a good
       balance is to add noise to 40 % of the utterances"). The others get a faint synthetic noise
       of a random colour with the probability `synthetic_noise`; the rest stay clean, so that
       digital silence is known, too.

    Ranges are uniform, those of signal-to-noise ratios in dB over the whole recording.

    Attributes:
        trim: probability, for each end.
        silence: probability, for each end that was not trimmed.
        silence_s: seconds of silence that are added.
        speed: how much faster or slower a recording is played at most; 0 leaves it unchanged.
        reverberation: probability.
        rt60_s: the time in which the sound of simulated rooms falls by 60 dB.
        drr_db: direct-to-reverberant energy ratio of simulated rooms.
        level_dbfs: of the recording before the noise; less where it would clip. None leaves it
            unchanged.
        noise: probability.
        noise_snr_db: of recorded noise.
        synthetic_noise: probability, where there is no recorded noise.
        synthetic_snr_db: of synthetic noise.

    Raises:
        NearfutureError: for a probability outside [0, 1], or a range that ends before it begins.

    >>> rng = np.random.default_rng(0)
    >>> tone = np.sin(np.arange(8000, dtype=np.float32))
    >>> varied = Augmentation(speed=0.1).apply(tone, 8000, rng)
    >>> varied.dtype, bool(np.abs(varied).max() <= 1)
    (dtype('float32'), True)
    >>> Augmentation.none().apply(tone, 8000, rng) is tone
    True
    """

    trim: float = 0.25
    silence: float = 0.5
    silence_s: Range = (0.0, 0.3)
    speed: float = 0.1
    reverberation: float = 0.2
    rt60_s: Range = (0.15, 0.6)
    drr_db: Range = (0.0, 12.0)
    level_dbfs: Range | None = (-55.0, -10.0)
    noise: float = 0.4
    noise_snr_db: Range = (5.0, 30.0)
    synthetic_noise: float = 0.7
    synthetic_snr_db: Range = (15.0, 45.0)

    def __post_init__(self) -> None:
        for name in _PROBABILITIES:
            if not 0 <= getattr(self, name) <= 1:
                raise NearfutureError(
                    f"`{name}` is {getattr(self, name)}: a probability from 0 to 1 is expected",
                    code="out_of_range",
                    parameter=name,
                )
        if not 0 <= self.speed < 1:
            raise NearfutureError(
                f"`speed` is {self.speed}: from 0 to less than 1, e.g. 0.1",
                code="out_of_range",
                parameter="speed",
            )
        for name, least in _LEAST.items():
            limits = getattr(self, name)
            if limits is not None and not least <= limits[0] <= limits[1] < 200:
                raise NearfutureError(
                    f"`{name}` is {limits}: two numbers from {least:g} on are expected, the "
                    f"smaller first",
                    code="out_of_range",
                    parameter=name,
                )

    @classmethod
    def none(cls) -> Augmentation:
        """An augmentation that changes nothing."""
        return cls(
            trim=0.0,
            silence=0.0,
            speed=0.0,
            reverberation=0.0,
            level_dbfs=None,
            noise=0.0,
            synthetic_noise=0.0,
        )

    def apply(
        self,
        samples: Samples,
        rate: int,
        rng: np.random.Generator,
        *,
        environment: AcousticEnvironment = _QUIET,
        fits: Callable[[int], bool] = lambda samples: True,
    ) -> Samples:
        """A recording as the model receives it this time.

        Args:
            samples: (n,) float32 in [-1, 1].
            rate: of everything here.
            rng: all that is random comes from it.
            environment: noises and rooms.
            fits: whether so many samples can hold the text; where they cannot, the recording keeps
                its ends and its speed.

        Returns:
            (m,) float32 in [-1, 1]; m is at most n / (1 − speed) plus twice the longest silence.
        """
        if samples.size == 0:
            return samples
        varied = self._ends(samples, rate, rng)
        if self.speed:
            varied = at_speed(varied, rng.uniform(1 - self.speed, 1 + self.speed))
        samples = varied if fits(varied.size) else samples
        if rng.random() < self.reverberation:
            samples = in_room(samples, self._room(rate, rng, environment.rooms))
            samples = samples / np.float32(max(1.0, float(np.abs(samples).max(initial=0.0))))
        if self.level_dbfs is not None:
            samples = at_level(samples, rng.uniform(*self.level_dbfs))
        if rng.random() < self.noise and environment.noises:
            noise = environment.noises[int(rng.integers(len(environment.noises)))]
            return mix(samples, noise, rng.uniform(*self.noise_snr_db), rng)
        if rng.random() < self.synthetic_noise:
            snr_db, tilt = rng.uniform(*self.synthetic_snr_db), rng.uniform(0.0, 1.5)
            return add_noise(samples, snr_db, tilt, rng)
        return samples

    def _room(self, rate: int, rng: np.random.Generator, rooms: Sequence[Samples]) -> Samples:
        if rooms:
            return rooms[int(rng.integers(len(rooms)))]
        return simulated_room(rate, rng.uniform(*self.rt60_s), rng.uniform(*self.drr_db), rng)

    def _ends(self, samples: Samples, rate: int, rng: np.random.Generator) -> Samples:
        begin, end = rng.random(2) < self.trim
        if begin or end:
            samples = without_silent_ends(samples, rate, begin=bool(begin), end=bool(end))
        silence = [
            0
            if trimmed or rng.random() >= self.silence
            else round(rng.uniform(*self.silence_s) * rate)
            for trimmed in (begin, end)
        ]
        return np.pad(samples, silence) if any(silence) else samples
