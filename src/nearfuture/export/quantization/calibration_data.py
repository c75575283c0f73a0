"""The recordings that calibrate a low precision, and those that its error is measured on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio import read, resample
from nearfuture.error import NearfutureError

_SAMPLES = Path(__file__).parents[2] / "assets" / "samples"
_LOUDNESS = (0.001, 0.03, 0.3)

Samples = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibrationData:
    """Recordings at the rate of a model, in two parts that share none.

    Attributes:
        calibration: (n,) each: their largest activations set the scales.
        evaluation: (n,) each: the error beside float32 is measured on these.
        transcripts: the text of each recording of `evaluation`; empty where they are unknown.
        description: of both parts, in a few words, for `model.json`.
    """

    calibration: Sequence[Samples]
    evaluation: Sequence[Samples]
    transcripts: Sequence[str] = ()
    description: str

    @classmethod
    def split(
        cls, recordings: Sequence[Samples], transcripts: Sequence[str] = ()
    ) -> CalibrationData:
        """Let every other recording calibrate, and measure on the others.

        Args:
            recordings: (n,) each, at the model's rate, at least two.
            transcripts: the text of each, or nothing at all.

        Raises:
            NearfutureError: for fewer than two recordings, or other than one text for each.

        >>> recordings = [np.zeros(n, np.float32) for n in (1, 2, 3)]
        >>> data = CalibrationData.split(recordings, ["a", "b", "c"])
        >>> [len(samples) for samples in data.calibration], data.transcripts
        ([1, 3], ['b'])
        """
        if len(recordings) < 2:
            raise NearfutureError(
                f"a low precision is calibrated on some recordings and measured on others: it "
                f"needs at least 2, not {len(recordings)}",
                parameter="recordings",
            )
        if len(transcripts) not in (0, len(recordings)):
            raise NearfutureError(
                f"`transcripts` has {len(transcripts)} texts for {len(recordings)} recordings: "
                f"it needs one for each",
                parameter="transcripts",
            )
        calibration, evaluation = list(recordings[::2]), list(recordings[1::2])
        return cls(
            calibration=calibration,
            evaluation=evaluation,
            transcripts=list(transcripts[1::2]),
            description=(
                f"calibrated on {len(calibration)} recordings, measured on {len(evaluation)} others"
            ),
        )

    @classmethod
    def bundled(cls, rate: int) -> CalibrationData:
        """Take the clips of this package, half for each part, and noise of three loudnesses.

        They are synthetic voices saying digits: for any other model, take recordings of its task.

        >>> data = CalibrationData.bundled(8000)
        >>> len(data.calibration), len(data.evaluation)
        (7, 7)
        """
        clips = [read(path) for path in sorted(_SAMPLES.glob("*.flac"))]
        voices = [resample(clip.samples, clip.rate, rate) for clip in clips]
        random = np.random.default_rng(0)
        noise = [
            (loudness * random.standard_normal(2 * rate)).clip(-1, 1).astype(np.float32)
            for loudness in _LOUDNESS
        ]
        return cls(
            calibration=[*voices[::2], *(samples[:rate] for samples in noise)],
            evaluation=[*voices[1::2], *(samples[rate:] for samples in noise)],
            description="no recordings were given: synthetic voices saying digits, and noise",
        )
