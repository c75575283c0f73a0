"""Connectionist temporal classification: the loss, and which targets it cannot reach.

Shapes: `B` batch, `T` frames, `V` symbols with the blank at 0, `L` target symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import torch
from torch import Tensor
from torch.nn import functional as F

from nearfuture.error import NearfutureError
from nearfuture.layers.validation import check_batch
from nearfuture.text import SUM_TOLERANCE, frames_needed, plural


def unreachable(target: Sequence[int], frames: int) -> str | None:
    """Say why a target needs more than so many frames; None where it does not.

    >>> unreachable([1, 2], 2) is None
    True
    >>> unreachable([1, 2], 1)
    '1 frame cannot spell 2 symbols with 0 repeats, which need 2; use a longer recording, a \
shorter transcript or a smaller stride'
    """
    needed = frames_needed(target)
    if frames >= needed:
        return None
    return (
        f"{plural(frames, 'frame')} cannot spell {plural(len(target), 'symbol')} with "
        f"{plural(needed - len(target), 'repeat')}, which need {needed}; use a longer recording, "
        f"a shorter transcript or a smaller stride"
    )


@dataclass(frozen=True, kw_only=True)
class CTCResult:
    """The loss of a batch, and the utterances that it leaves out.

    Attributes:
        loss: scalar, summed over the utterances that were counted; nats.
        counted: number of those utterances.
        skipped: a line for each utterance that was left out, with its name and the reason.
    """

    loss: Tensor
    counted: int
    skipped: tuple[str, ...]


def ctc_loss(
    log_probs: Tensor,
    lengths: Tensor,
    targets: Sequence[Sequence[int]],
    *,
    names: Sequence[str] | None = None,
    skip_impossible: bool = False,
    validate: bool = True,
) -> CTCResult:
    """`-Σ log Σ_{alignments of y} Π_t p(a_t)` (Graves et al. 2006, eq. 8 and 12).

    A target of L symbols with R immediate repeats needs L + R frames. Where it has fewer, its loss
    would be infinite and its gradient NaN: it is rejected by name before the loss, never hidden
    behind a zero.

    Args:
        log_probs: (B, T, V), log-probabilities; the loss itself is computed in float32 or better.
        lengths: (B,).
        targets: B sequences of symbols, without blanks.
        names: what to call the utterances in messages; their row numbers by default.
        skip_impossible: leave impossible targets out and report them, instead of raising.
        validate: whether to check the values of `log_probs`. False for a model that ends in a
            log-softmax, while it is trained: an overflow then shows as a loss that is not finite.

    Raises:
        NearfutureError: for invalid lengths (`nearfuture.layers.validation.check_batch`); for a
            valid frame that holds a NaN, a value above 0, or probabilities that do not add up to 1,
            within 0.01; for another number of targets or names than rows.
        NearfutureError: for an impossible target, naming it, unless such targets are skipped; and
            for a symbol that is the blank, or beyond the V.

    >>> uniform = torch.full((1, 5, 3), 1 / 3).log()
    >>> round(ctc_loss(uniform, torch.tensor([5]), [[1, 1, 1]]).loss.item(), 4)
    5.4931
    >>> ctc_loss(uniform, torch.tensor([4]), [[1, 1, 1]], names=["a.wav"])
    Traceback (most recent call last):
    ...
    nearfuture.error.NearfutureError: a.wav: 4 frames cannot spell 3 symbols with 2 repeats, which \
need 5; use a longer recording, a shorter transcript or a smaller stride
    """
    check_batch(log_probs, lengths)
    counts = lengths.tolist()
    for what, many in (("targets", targets), ("names", counts if names is None else names)):
        if len(many) != len(counts):
            raise NearfutureError(
                f"there are {len(many)} {what} for {plural(len(counts), 'row')}: each row has one",
                parameter=what,
            )
    if names is None:
        names = [f"row {row}" for row in range(len(targets))]
    symbols = log_probs.shape[2]
    rows, skipped = [], []
    for row, (target, frames) in enumerate(zip(targets, counts, strict=True)):
        if not all(isinstance(symbol, Integral) for symbol in target):
            raise NearfutureError(
                f"{names[row]}: symbols of a target are whole numbers, as Vocabulary.encode "
                f"returns them, not {list(target)[:5]}",
                parameter="targets",
            )
        if len(target) and not 0 < min(target) <= max(target) < symbols:
            raise NearfutureError(
                f"{names[row]}: symbols of a target go from 1 to {symbols - 1}, not from "
                f"{min(target)} to {max(target)}; 0 is the blank",
                code="out_of_range",
                parameter="targets",
            )
        if reason := unreachable(target, frames):
            skipped.append(f"{names[row]}: {reason}")
        else:
            rows.append(row)
    if skipped and not skip_impossible:
        raise NearfutureError("; ".join(skipped), parameter="targets")
    rows = [row for row in rows if counts[row] > 0]  # no frame and no symbol: the loss is 0
    number = len(targets) - len(skipped)
    if not rows:  # an empty sum: 0 with a gradient of zeros, whatever the values are
        zero = _at_least_float32(log_probs[:0]).sum()
        return CTCResult(loss=zero, counted=number, skipped=tuple(skipped))
    chosen = _at_least_float32(log_probs[torch.tensor(rows, device=log_probs.device)])
    if validate:
        _check_distributions(
            chosen.detach(), [counts[row] for row in rows], [names[r] for r in rows]
        )
    if chosen.device.type == "mps":  # has no kernel for it
        chosen = chosen.cpu()
    flat = torch.tensor([symbol for row in rows for symbol in targets[row]], dtype=torch.int64)
    loss = F.ctc_loss(
        chosen.transpose(0, 1),
        flat.to(chosen.device),
        torch.tensor([counts[row] for row in rows]),
        torch.tensor([len(targets[row]) for row in rows]),
        reduction="sum",
    )
    return CTCResult(loss=loss, counted=number, skipped=tuple(skipped))


def _check_distributions(log_probs: Tensor, counts: list[int], names: list[str]) -> None:
    """Refuse valid frames that are no distributions; frames past a row's length do not count."""
    frames = torch.arange(log_probs.shape[1], device=log_probs.device)
    inside = frames < torch.tensor(counts, device=log_probs.device)[:, None]
    sums = log_probs.exp().sum(dim=-1)
    wrong = inside & ~((sums - 1.0).abs() <= SUM_TOLERANCE)  # NaN, too
    if not wrong.any():
        return
    row, frame = wrong.nonzero()[0].tolist()
    values = log_probs[row, frame]
    if values.isnan().any():
        raise NearfutureError(
            f"{names[row]}: log_probs has a NaN in frame {frame}: the model's output is broken",
            code="damaged",
            parameter="log_probs",
        )
    highest = values.max().item()
    fault = (
        f"has the value {highest:.3g}, and a log-probability is at most 0"
        if highest > SUM_TOLERANCE
        else f"has probabilities that add up to {sums[row, frame].item():.3g}, not to 1"
    )
    raise NearfutureError(
        f"{names[row]}: frame {frame} {fault}: pass natural logarithms of probabilities, e.g. a "
        f"model's output through log_softmax",
        parameter="log_probs",
    )


def _at_least_float32(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()
