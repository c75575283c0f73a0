"""The gradient of a step: of one process's share of its batch, summed over all processes.

Shapes: `B` batch, `T` frames, `V` symbols.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from nearfuture.layers.random import manual_seed
from nearfuture.model import Recognizer
from nearfuture.training.augmentation import spec_augment, utterance_generators
from nearfuture.training.distributed import Group
from nearfuture.training.emission import blank_fraction, emission_delay
from nearfuture.training.local_batch import BatchTotals, LocalBatch
from nearfuture.training.loss import loss_sums
from nearfuture.training.options import TrainingOptions
from nearfuture.training.teacher import same_features
from nearfuture.training.validation import head_name


@dataclass(frozen=True, kw_only=True)
class Step:
    """A training step as one process sees it.

    Attributes:
        number: The step's number, from 0, which decides what is dropped and blanked out.
        batch: This process's share of the batch; perhaps nothing.
        totals: Counts over the whole batch.
        measure_timing: Whether to measure when each head emits its symbols.
    """

    number: int
    batch: LocalBatch
    totals: BatchTotals
    measure_timing: bool = False


@dataclass(frozen=True, kw_only=True)
class GradientResult:
    """The result of computing gradients, which themselves are in the parameters.

    By default nothing.

    Attributes:
        loss: CTC in nats per character.
        norm: The norm of the gradient before it was clipped.
        finite: Whether a step can be made of it.
        metrics: Metrics for TensorBoard, by name.
        statistics: What the model's statistics become with this step.
    """

    loss: float = math.nan
    norm: float = math.nan
    finite: bool = False
    metrics: Mapping[str, float] = field(default_factory=dict)
    statistics: Sequence[Tensor] = ()


def statistics(model: nn.Module) -> list[Tensor]:
    """List what a model learns besides its parameters: running averages of batch norms."""
    parameters = {name for name, _ in model.named_parameters()}
    return [value for name, value in model.state_dict().items() if name not in parameters]


def compute_gradients(
    model: Recognizer,
    teacher: Recognizer | None,
    step: Step,
    options: TrainingOptions,
    group: Group,
) -> GradientResult:
    """Leave the clipped gradient of the whole batch in the model's parameters, and nothing else.

    Statistics that the forward pass moves are put back: they belong to the step, which is made of
    a finite gradient, or not at all.

    Args:
        model: In training mode afterwards.
        teacher: The model whose distributions are learnt, if any.
        step: The batch.
        options: Which losses there are, and the greatest norm.
        group: The processes that have the rest of the batch.
    """
    manual_seed(options.seed * 1_000_003 + step.number + (group.rank << 40))
    model.train().zero_grad(set_to_none=True)
    moving, distillation, totals = statistics(model), options.distillation, step.totals
    before = [value.clone() for value in moving]
    try:
        heads, lengths, teacher_output = _outputs(model, teacher, step, options, group)
        targets = step.batch.targets or [[]]
        losses = loss_sums(heads, lengths, targets, teacher_output, distillation)
        losses.total(distillation, totals).backward()  # type: ignore[no-untyped-call]
        parameters = list(model.parameters())
        summed = group.sum_gradients(parameters, losses.stacked())
        norm = nn.utils.clip_grad_norm_(parameters, options.optimizer.clip).item()
    finally:
        after = [value.clone() for value in moving]
        for value, old in zip(moving, before, strict=True):
            value.copy_(old)
    ctc, distilled, delay = summed.tolist()
    metrics = {"loss/ctc": ctc / max(1.0, totals.characters)}
    if teacher is not None:
        metrics["loss/distillation"] = distilled / max(1.0, totals.frames)
    if distillation.delay_penalty:
        metrics["loss/delay_penalty"] = delay / max(1.0, totals.frames)
    if step.measure_timing:
        metrics |= _timing(heads, lengths, teacher_output)
    return GradientResult(
        loss=metrics["loss/ctc"],
        norm=norm,
        finite=all(map(math.isfinite, (ctc, distilled, delay, norm))),
        metrics=metrics,
        statistics=after,
    )


def _outputs(
    model: Recognizer,
    teacher: Recognizer | None,
    step: Step,
    options: TrainingOptions,
    group: Group,
) -> tuple[dict[int | None, Tensor], Tensor, Tensor | None]:
    """Compute log-probabilities of the heads by lookahead, their lengths, and the teacher's."""
    pcm, lengths = step.batch.pcm(model, group.device)
    teacher_output = None
    with torch.no_grad():
        features, counts = model.features(pcm, lengths)
        if teacher is not None:
            teacher_features = features, counts
            if not same_features(teacher, model):
                teacher_features = teacher.features(pcm, lengths)
            (teacher_output,), _ = teacher(*teacher_features)
        if options.regularise:
            generators = utterance_generators(options.seed, step.number, step.batch.names or [""])
            features = spec_augment(features, counts, generators, options.augmentation)
    with torch.autocast(group.device.type, torch.bfloat16, enabled=options.hardware.bfloat16):
        x, counts = model.encoder(features, counts)
    x = x.to(features.dtype)  # three digits are not enough for a distribution
    hidden = [x] if model.lookahead is None else model.lookahead.all(x, counts)
    outputs = [model.output(h, counts)[0] for h in hidden]
    return dict(zip(model.config.lookaheads, outputs, strict=True)), counts, teacher_output


def _timing(
    heads: Mapping[int | None, Tensor], lengths: Tensor, teacher: Tensor | None
) -> dict[str, float]:
    """Measure blanks of each head, and its delay after the teacher or the head that sees most."""
    reference = list(heads.values())[-1] if teacher is None else teacher
    metrics = {}
    for frames, head in heads.items():
        name = head_name(frames)
        metrics[f"blank_fraction/{name}"] = blank_fraction(head, lengths)
        if head is not reference:
            metrics[f"emission_delay_frames/{name}"] = emission_delay(head, reference, lengths)
    return metrics
