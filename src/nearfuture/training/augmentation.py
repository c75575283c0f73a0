"""SpecAugment: training features with stripes blanked out."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import torch
from torch import Tensor

from nearfuture.training.options import SpecAugmentOptions


def spec_augment(
    features: Tensor,
    lengths: Tensor,
    generators: Sequence[torch.Generator],
    options: SpecAugmentOptions,
) -> Tensor:
    """Set random frequency and time masks to 0, the mean (Park et al. 2019, §2).

    Args:
        features: (B, T, M), normalised.
        lengths: (B,); time masks lie inside.
        generators: The randomness of each row, which does not depend on the other rows.
        options: The number and the size of the masks.

    >>> x, n = torch.ones(1, 50, 40), torch.tensor([50])
    >>> y = spec_augment(x, n, [torch.Generator().manual_seed(0)], SpecAugmentOptions())
    >>> 0 < (y == 0).float().mean().item() < 0.8
    True
    """
    _, frames, bins = features.shape
    device = features.device
    count = options.freq_masks + options.time_masks
    draws = [torch.rand(count, 2, generator=generator) for generator in generators]
    drawn = (torch.stack(draws) if draws else torch.zeros(0, count, 2)).to(device)
    low, high = _masks(
        drawn[:, : options.freq_masks],
        torch.full((len(draws), 1), float(bins), device=device),
        torch.full((len(draws), 1), float(options.freq_mask_bins), device=device),
    )
    begin, end = _masks(
        drawn[:, options.freq_masks :],
        lengths[:, None].float(),
        (lengths[:, None] / 5).clamp(max=options.time_mask_frames),
    )
    bin_ = torch.arange(bins, device=device)[None, :, None]
    frame = torch.arange(frames, device=device)[None, :, None]
    in_freq_mask = ((bin_ >= low[:, None]) & (bin_ < high[:, None])).any(-1)
    in_time_mask = ((frame >= begin[:, None]) & (frame < end[:, None])).any(-1)
    return features.masked_fill(in_freq_mask[:, None, :] | in_time_mask[..., None], 0.0)


def _masks(drawn: Tensor, limit: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Place masks up to a size below a limit: their begins and ends (B, K), from (B, K, 2)."""
    width = drawn[..., 0] * size
    start = drawn[..., 1] * (limit - width)
    return start.round(), (start + width).round()


def utterance_generators(seed: int, step: int, names: Sequence[str]) -> list[torch.Generator]:
    """Seed a generator for each utterance of a step by its name.

    It is the same one however the utterances are distributed over processes.

    >>> a, b = utterance_generators(0, 7, ["one.wav", "two.wav"])
    >>> (c,) = utterance_generators(0, 7, ["two.wav"])
    >>> a.initial_seed() != b.initial_seed() == c.initial_seed()
    True
    """
    return [
        torch.Generator().manual_seed(zlib.crc32(f"{seed} {step} {name}".encode()))
        for name in names
    ]
