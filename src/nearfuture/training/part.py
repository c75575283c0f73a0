"""What one process has of a step's batch: what can be trained on, and a name for what cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nearfuture.data import Batch, Skipped, Utterance
from nearfuture.error import NearfutureError
from nearfuture.model import Recognizer
from nearfuture.model.ctc import unreachable


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """The utterances of a part of a batch that a model can be trained on, with their targets.

    Attributes:
        utterances: with finite samples, and texts that the model can write and their frames spell.
        targets: the symbols of each.
        frames: of the model, in all of them.
        skipped: each of the others, with the reason.
        epoch: of the batch.
    """

    utterances: list[Utterance]
    targets: list[list[int]]
    frames: int
    skipped: tuple[Skipped, ...]
    epoch: int

    @classmethod
    def of(cls, batch: Batch, model: Recognizer) -> Part:
        """What a model can be trained on: nothing it cannot learn from reaches it."""
        config = model.config
        usable, targets, skipped, total = [], [], list(batch.skipped), 0
        for one in batch.utterances:
            try:
                target = list(model.vocabulary.encode(one.text))
            except NearfutureError as error:
                skipped.append(Skipped(one.name, "outside the vocabulary", str(error)))
                continue
            frames = config.frames_in(one.samples.size / config.features.rate)
            if not np.isfinite(one.samples).all():
                reason = "it has samples that are not finite numbers"
                skipped.append(Skipped(one.name, "not finite", reason))
            elif missing := unreachable(target, frames):
                skipped.append(Skipped(one.name, "too short for its text", missing))
            else:
                usable.append(one)
                targets.append(target)
                total += frames
        return cls(
            utterances=usable,
            targets=targets,
            frames=total,
            skipped=tuple(skipped),
            epoch=batch.epoch,
        )

    @property
    def names(self) -> list[str]:
        """Of the utterances."""
        return [one.name for one in self.utterances]

    def counts(self) -> list[float]:
        """Sums that all processes add up: utterances, characters, frames, left out, samples."""
        return [
            len(self.utterances),
            sum(map(len, self.targets)),
            self.frames,
            len(self.skipped),
            sum(one.samples.size for one in self.utterances),
        ]

    def pcm(self, model: Recognizer, device: torch.device) -> tuple[Tensor, Tensor]:
        """PCM and lengths for a model; a part of nothing is one row of no length.

        There is at least a second, so that each layer has a frame to compute: where processes share
        the statistics of a batch norm, all of them have to come there.
        """
        nothing = Utterance(name="", samples=np.zeros(0, np.float32), text="")
        pcm, lengths = padded(self.utterances or [nothing], at_least=model.config.features.rate)
        return pcm.to(device, model.features.mean.dtype), lengths.to(device)


def padded(utterances: Sequence[Utterance], *, at_least: int = 0) -> tuple[Tensor, Tensor]:
    """Utterances as PCM (B, N, 1), zero past their lengths, and the lengths (B,).

    Args:
        utterances: B of them.
        at_least: N is never smaller.
    """
    lengths = [one.samples.size for one in utterances]
    pcm = np.zeros((len(utterances), max([at_least, *lengths]), 1), np.float32)
    for row, one in enumerate(utterances):
        pcm[row, : lengths[row], 0] = one.samples
    return torch.from_numpy(pcm), torch.tensor(lengths, dtype=torch.int64)
