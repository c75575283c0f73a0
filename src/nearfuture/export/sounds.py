"""What a low precision is fitted to, and what its error is measured on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio import read, resample
from nearfuture.error import NearfutureError

_SAMPLES = Path(__file__).parents[1] / "assets" / "samples"
_LOUDNESS = (0.001, 0.03, 0.3)

Samples = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Sounds:
    """Recordings at the rate of a model, in two parts that share none.

    Attributes:
        calibrating: (n,) each: their largest activations set the scales.
        measuring: (n,) each: the error beside float32 is measured on these.
        texts: what is said in each of `measuring`; empty where nobody knows.
        described: both, in a few words, for `model.json`.
    """

    calibrating: Sequence[Samples]
    measuring: Sequence[Samples]
    texts: Sequence[str] = ()
    described: str


def bundled_sounds(rate: int) -> Sounds:
    """The clips that come with this package, half for each part, and noise of three loudnesses.

    They are synthetic voices saying digits: for a model of anything else, give recordings of it.

    >>> sounds = bundled_sounds(8000)
    >>> len(sounds.calibrating), len(sounds.measuring)
    (7, 7)
    """
    clips = [read(path) for path in sorted(_SAMPLES.glob("*.flac"))]
    voices = [resample(clip.samples, clip.rate, rate) for clip in clips]
    random = np.random.default_rng(0)
    noise = [
        (loud * random.standard_normal(2 * rate)).clip(-1, 1).astype(np.float32)
        for loud in _LOUDNESS
    ]
    return Sounds(
        calibrating=[*voices[::2], *(part[:rate] for part in noise)],
        measuring=[*voices[1::2], *(part[rate:] for part in noise)],
        described="no recordings were given: synthetic voices saying digits, and noise",
    )


def given_sounds(recordings: Sequence[Samples], texts: Sequence[str] = ()) -> Sounds:
    """Recordings of one's own: every other one calibrates, the others measure.

    Args:
        recordings: (n,) each, at the model's rate, at least two.
        texts: what is said in each, or nothing at all.

    Raises:
        NearfutureError: for fewer than two recordings, or other than one text for each.

    >>> sounds = given_sounds([np.zeros(n, np.float32) for n in (1, 2, 3)], ["a", "b", "c"])
    >>> [len(one) for one in sounds.calibrating], sounds.texts
    ([1, 3], ['b'])
    """
    if len(recordings) < 2:
        raise NearfutureError(
            f"a low precision is calibrated on some recordings and measured on others: give at "
            f"least 2, not {len(recordings)}"
        )
    if len(texts) not in (0, len(recordings)):
        raise NearfutureError(f"{len(texts)} texts are not one for each of {len(recordings)}")
    calibrating, measuring = list(recordings[::2]), list(recordings[1::2])
    return Sounds(
        calibrating=calibrating,
        measuring=measuring,
        texts=list(texts[1::2]),
        described=(
            f"calibrated on {len(calibrating)} recordings, measured on {len(measuring)} others"
        ),
    )
