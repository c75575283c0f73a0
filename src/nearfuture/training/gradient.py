"""The gradient of a step: of a part of its batch, summed over the processes that have the others.

Shapes: `B` batch, `T` frames, `V` symbols.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from nearfuture.model import Recognizer
from nearfuture.training.augmentation import generators
from nearfuture.training.distributed import Group
from nearfuture.training.emission import blank_fraction, emission_delay
from nearfuture.training.loss import sums
from nearfuture.training.options import TrainingOptions
from nearfuture.training.part import Part
from nearfuture.training.teacher import hears_alike


@dataclass(frozen=True, kw_only=True)
class Gradients:
    """What came of computing gradients, which are in the parameters; by default nothing.

    Attributes:
        loss: CTC, nats per character.
        norm: of the gradient, before it was clipped.
        finite: whether a step can be made of it.
        figures: for TensorBoard, by name.
        statistics: what the forward pass would have the model's statistics be.
    """

    loss: float = math.nan
    norm: float = math.nan
    finite: bool = False
    figures: Mapping[str, float] = field(default_factory=dict)
    statistics: Sequence[Tensor] = ()


def statistics(model: nn.Module) -> list[Tensor]:
    """What a model learns besides its parameters: running averages of batch norms."""
    parameters = {name for name, _ in model.named_parameters()}
    return [value for name, value in model.state_dict().items() if name not in parameters]


def gradients(
    model: Recognizer,
    part: Part,
    options: TrainingOptions,
    group: Group,
    *,
    teacher: Recognizer | None,
    step: int,
    characters: float,
    frames: float,
    timed: bool,
) -> Gradients:
    """Leave the clipped gradient of the whole batch in the model's parameters, and nothing else.

    Statistics that the forward pass moves are put back: they belong to the step, which is made of
    a gradient that is finite, or not at all.

    Args:
        model: in training mode afterwards.
        part: what this process has of the batch; perhaps nothing.
        options: which losses there are, and the greatest norm.
        group: the processes that have the rest of the batch.
        teacher: whose distributions are learnt, if any.
        step: decides what is dropped and blanked out.
        characters: in the targets of the whole batch.
        frames: of the model, in the whole batch.
        timed: also measure when each head says what it says.
    """
    torch.manual_seed(options.seed * 1_000_003 + step + (group.rank << 40))
    heads = model.config.lookaheads
    model.train().zero_grad(set_to_none=True)
    moving = statistics(model)
    before = [one.clone() for one in moving]
    try:
        outputs, lengths, taught = _outputs(model, part, options, group, teacher, step)
        by_head = dict(zip(heads, outputs, strict=True))
        losses = sums(by_head, lengths, part.targets or [[]], taught, options)
        losses.total(options, characters, frames).backward()  # type: ignore[no-untyped-call]
        parameters = list(model.parameters())
        summed = group.sum_gradients(parameters, losses.stacked())
        norm = nn.utils.clip_grad_norm_(parameters, options.clip).item()
    finally:
        after = [one.clone() for one in moving]
        for one, old in zip(moving, before, strict=True):
            one.copy_(old)
    ctc, distill, delay = summed.tolist()
    figures = {"loss": ctc / max(1.0, characters)}
    if teacher is not None:
        figures["distillation"] = distill / max(1.0, frames)
    if options.delay_penalty:
        figures["delay penalty"] = delay / max(1.0, frames)
    return Gradients(
        loss=figures["loss"],
        norm=norm,
        finite=all(map(math.isfinite, (ctc, distill, delay, norm))),
        figures={**figures, **(_timing(by_head, lengths, taught) if timed else {})},
        statistics=after,
    )


def _outputs(
    model: Recognizer,
    part: Part,
    options: TrainingOptions,
    group: Group,
    teacher: Recognizer | None,
    step: int,
) -> tuple[list[Tensor], Tensor, Tensor | None]:
    """The heads' log-probabilities, their lengths, and the teacher's log-probabilities."""
    pcm, lengths = part.pcm(model, group.device)
    taught = None
    with torch.no_grad():
        features, counts = model.features(pcm, lengths)
        if teacher is not None:
            heard = features, counts
            if not hears_alike(teacher, model):
                heard = teacher.features(pcm, lengths)
            (taught,), _ = teacher(*heard)
        rows = generators(options.seed, step, part.names or [""])
        features = options.augmentation(features, counts, rows)
    with torch.autocast(group.device.type, torch.bfloat16, enabled=options.bfloat16):
        x, counts = model.encoder(features, counts)
    x = x.to(features.dtype)  # three digits are not enough for a distribution
    read = [x] if model.lookahead is None else model.lookahead.all(x, counts)
    return [model.output(one, counts)[0] for one in read], counts, taught


def _timing(
    heads: Mapping[int | None, Tensor], lengths: Tensor, teacher: Tensor | None
) -> dict[str, float]:
    """Blanks of each head, and how much later it is than the teacher or the head that sees most."""
    reference = list(heads.values())[-1] if teacher is None else teacher
    figures = {}
    for tau, head in heads.items():
        name = "everything" if tau is None else f"{tau} frames"
        figures[f"blank fraction/{name}"] = blank_fraction(head, lengths)
        if head is not reference:
            figures[f"emission delay in frames/{name}"] = emission_delay(head, reference, lengths)
    return figures
