"""SpecAugment: training features with stripes blanked out."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["spec_augment"]


def spec_augment(
    features: Tensor,
    lengths: Tensor,
    generator: torch.Generator,
    *,
    bands: int = 2,
    band_bins: int = 8,
    gaps: int = 2,
    gap_frames: int = 12,
) -> Tensor:
    """Set random bands of frequency and gaps of time to 0, the mean (Park et al. 2019, §2).

    Args:
        features: (B, T, M), normalised.
        lengths: (B,); gaps lie inside, and cover at most a fifth of a row each, rounded up.
        generator: where the randomness comes from.
        bands: number of bands.
        band_bins: their greatest width.
        gaps: number of gaps.
        gap_frames: their greatest length.

    >>> x = torch.ones(1, 50, 40)
    >>> y = spec_augment(x, torch.tensor([50]), torch.Generator().manual_seed(0))
    >>> 0 < (y == 0).float().mean().item() < 0.8
    True
    """
    batch, frames, bins = features.shape

    def drawn(count: int, limit: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
        width = torch.rand(batch, count, generator=generator) * size[:, None]
        start = torch.rand(batch, count, generator=generator) * (limit[:, None] - width)
        return start, start + width

    whole = torch.full((batch,), float(bins))
    low, high = drawn(bands, whole, torch.full((batch,), float(band_bins)))
    begin, end = drawn(gaps, lengths.float(), (lengths / 5).clamp(max=gap_frames))
    bin_ = torch.arange(bins)[None, :, None]
    frame = torch.arange(frames)[None, :, None]
    in_band = ((bin_ >= low[:, None].round()) & (bin_ < high[:, None].round())).any(-1)
    in_gap = ((frame >= begin[:, None].round()) & (frame < end[:, None].round())).any(-1)
    return features.masked_fill(in_band[:, None, :] | in_gap[..., None], 0.0)
