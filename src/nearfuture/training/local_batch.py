"""What one process has of a step's batch: what can be trained on, and a name for what cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nearfuture.data import Batch, CutFilter, Skipped, Utterance
from nearfuture.model import Recognizer


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalBatch:
    """The utterances of one process's share of a batch that a model can be trained on.

    Attributes:
        utterances: Those with finite samples, and texts that the model can write and their frames
            can spell.
        targets: The symbols of each.
        frames: The number of the model's frames in all of them.
        skipped: Each of the others, with the reason.
        epoch: The epoch of the batch.
    """

    utterances: list[Utterance]
    targets: list[list[int]]
    frames: int
    skipped: tuple[Skipped, ...]
    epoch: int

    @classmethod
    def of(cls, batch: Batch, model: Recognizer) -> LocalBatch:
        """Keep what a model can be trained on: nothing it cannot learn from reaches it."""
        rule, rate = CutFilter(model=model.config), model.config.features.rate
        usable, targets, skipped, total = [], [], list(batch.skipped), 0
        for utterance in batch.utterances:
            if rejected := rule.reject_utterance(utterance, rate, model.vocabulary):
                skipped.append(rejected)
                continue
            usable.append(utterance)
            targets.append(list(model.vocabulary.encode(utterance.text)))
            total += model.config.frames_in(utterance.samples.size / rate)
        return cls(
            utterances=usable,
            targets=targets,
            frames=total,
            skipped=tuple(skipped),
            epoch=batch.epoch,
        )

    @property
    def names(self) -> list[str]:
        """The names of the utterances."""
        return [utterance.name for utterance in self.utterances]

    def pcm(self, model: Recognizer, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return PCM and lengths for a model; a share of nothing is one row of length 0.

        There is at least a second, so that each layer has a frame to compute: where processes share
        the statistics of a batch norm, all of them have to come there.
        """
        nothing = Utterance(name="", samples=np.zeros(0, np.float32), text="")
        pcm, lengths = pad(self.utterances or [nothing], at_least=model.config.features.rate)
        return pcm.to(device, model.features.mean.dtype), lengths.to(device)


@dataclass(frozen=True, kw_only=True)
class BatchTotals:
    """Counts over the batches of all processes.

    Attributes:
        utterances: The number of utterances to train on.
        characters: The number of symbols in their targets.
        frames: The number of the model's frames in them.
        skipped: The number of utterances that are skipped.
        samples: The number of samples in them.
    """

    utterances: float
    characters: float
    frames: float
    skipped: float
    samples: float

    @classmethod
    def of(cls, batch: LocalBatch) -> BatchTotals:
        """Count one process's share."""
        return cls(
            utterances=len(batch.utterances),
            characters=sum(map(len, batch.targets)),
            frames=batch.frames,
            skipped=len(batch.skipped),
            samples=sum(utterance.samples.size for utterance in batch.utterances),
        )


def pad(utterances: Sequence[Utterance], *, at_least: int = 0) -> tuple[Tensor, Tensor]:
    """Return utterances as PCM (B, N, 1), zero past their lengths, and the lengths (B,).

    Args:
        utterances: B of them.
        at_least: N is never smaller.
    """
    lengths = [utterance.samples.size for utterance in utterances]
    pcm = np.zeros((len(utterances), max([at_least, *lengths]), 1), np.float32)
    for row, utterance in enumerate(utterances):
        pcm[row, : lengths[row], 0] = utterance.samples
    return torch.from_numpy(pcm), torch.tensor(lengths, dtype=torch.int64)
