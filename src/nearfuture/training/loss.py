"""What a step minimises: sums over a part of a batch, which add up over parts.

Shapes: `B` batch, `T` frames, `V` symbols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nearfuture.model import ctc_loss
from nearfuture.training.distillation import distillation_loss, peak_first_loss
from nearfuture.training.options import TrainingOptions


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Losses summed over utterances and frames, means over heads; nats.

    Attributes:
        ctc: negative log-likelihood of the targets.
        distill: divergence from the teacher; 0 without one.
        delay: divergence of each frame from the next; 0 where it has no weight.
    """

    ctc: Tensor
    distill: Tensor
    delay: Tensor

    def stacked(self) -> Tensor:
        """The three values, without their gradients."""
        return torch.stack([self.ctc, self.distill, self.delay]).detach()

    def total(self, options: TrainingOptions, characters: float, frames: float) -> Tensor:
        """What is minimised: CTC per character, plus the others per frame by their weights.

        `ctc / C + w_distill · distill / F + w_delay · delay / F`, with C and F those of the whole
        batch.
        """
        extra = options.distill * self.distill + options.delay_penalty * self.delay
        return self.ctc / max(1.0, characters) + extra / max(1.0, frames)


def sums(
    heads: Mapping[int | None, Tensor],
    lengths: Tensor,
    targets: Sequence[Sequence[int]],
    teacher: Tensor | None,
    options: TrainingOptions,
) -> Sums:
    """The losses of a part of a batch.

    Args:
        heads: log-probabilities (B, T, V) by lookahead.
        lengths: (B,).
        targets: B sequences of symbols that these frames can spell.
        teacher: log-probabilities (B, T, V) that every head learns from, if any.
        options: which weights are not 0, and each head's shift.
    """
    each = list(heads.values())
    zero = each[0].new_zeros(())
    distill = delay = zero
    if teacher is not None:
        shifts = [options.shift_frames.get(tau, 0) if tau is not None else 0 for tau in heads]
        distill = torch.stack(
            [
                distillation_loss(head, teacher, lengths, shift_frames=shift)
                for head, shift in zip(each, shifts, strict=True)
            ]
        ).mean()
    if options.delay_penalty:
        delay = torch.stack([peak_first_loss(head, lengths) for head in each]).mean()
    # Heads end in a log-softmax. One that overflows makes a loss that is not finite, and its batch
    # is left out by name in every process.
    losses = [ctc_loss(head, lengths, targets, validate=False).loss for head in each]
    ctc = torch.stack(losses).mean()
    return Sums(ctc=ctc.to(zero.device), distill=distill, delay=delay)
