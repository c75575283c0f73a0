"""What a step minimises: sums over one process's share of a batch, which add up over processes.

Shapes: `B` batch, `T` frames, `V` symbols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nearfuture.model import ctc_loss
from nearfuture.training.distillation import distillation_loss, peak_first_loss
from nearfuture.training.local_batch import BatchTotals
from nearfuture.training.options import DistillationOptions


@dataclass(frozen=True, kw_only=True)
class LossSums:
    """Losses in nats, summed over utterances and frames; means over heads.

    Attributes:
        ctc: The negative log-likelihood of the targets.
        distillation: The divergence from the teacher; 0 without one.
        delay: The divergence of each frame from the next; 0 where it has no weight.
    """

    ctc: Tensor
    distillation: Tensor
    delay: Tensor

    def stacked(self) -> Tensor:
        """Stack the three values, without their gradients."""
        return torch.stack([self.ctc, self.distillation, self.delay]).detach()

    def total(self, options: DistillationOptions, totals: BatchTotals) -> Tensor:
        """Weigh the losses: CTC per character, plus the others per frame.

        `ctc / C + w_distillation · distillation / F + w_delay · delay / F`, with the characters C
        and frames F of the whole batch.
        """
        extra = options.weight * self.distillation + options.delay_penalty * self.delay
        return self.ctc / max(1.0, totals.characters) + extra / max(1.0, totals.frames)


def loss_sums(
    heads: Mapping[int | None, Tensor],
    lengths: Tensor,
    targets: Sequence[Sequence[int]],
    teacher: Tensor | None,
    options: DistillationOptions,
) -> LossSums:
    """Sum the losses of one process's share of a batch.

    Args:
        heads: Log-probabilities (B, T, V) by lookahead.
        lengths: (B,).
        targets: B sequences of symbols that these frames can spell.
        teacher: Log-probabilities (B, T, V) that every head learns from, if any.
        options: Which weights are not 0, and the shift of each head.
    """
    outputs = list(heads.values())
    zero = outputs[0].new_zeros(())
    distillation = delay = zero
    if teacher is not None:
        shifts = [0 if frames is None else options.shifts.get(frames, 0) for frames in heads]
        distillation = torch.stack(
            [
                distillation_loss(output, teacher, lengths, shift_frames=shift)
                for output, shift in zip(outputs, shifts, strict=True)
            ]
        ).mean()
    if options.delay_penalty:
        delay = torch.stack([peak_first_loss(output, lengths) for output in outputs]).mean()
    # Heads end in a log-softmax. One that overflows makes a loss that is not finite, and its batch
    # is skipped by name in every process.
    losses = [ctc_loss(output, lengths, targets, validate=False).loss for output in outputs]
    ctc = torch.stack(losses).mean()
    return LossSums(ctc=ctc.to(zero.device), distillation=distillation, delay=delay)
