"""SpecAugment: training features with stripes blanked out."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class SpecAugment:
    """Set random bands of frequency and gaps of time to 0, the mean (Park et al. 2019, §2).

    Attributes:
        bands: number of bands.
        band_bins: their greatest width.
        gaps: number of gaps.
        gap_frames: their greatest length; none is longer than a fifth of its row, rounded up.

    >>> x, n = torch.ones(1, 50, 40), torch.tensor([50])
    >>> y = SpecAugment()(x, n, [torch.Generator().manual_seed(0)])
    >>> 0 < (y == 0).float().mean().item() < 0.8
    True
    """

    bands: int = 1
    band_bins: int = 8
    gaps: int = 1
    gap_frames: int = 12

    @classmethod
    def none(cls) -> SpecAugment:
        """One that blanks out nothing."""
        return cls(bands=0, gaps=0)

    def __call__(
        self, features: Tensor, lengths: Tensor, rows: Sequence[torch.Generator]
    ) -> Tensor:
        """The features (B, T, M), normalised, with stripes of each row at 0.

        Args:
            features: (B, T, M).
            lengths: (B,); gaps lie inside.
            rows: where the randomness of each row comes from: it does not depend on the others.
        """
        _, frames, bins = features.shape
        device = features.device
        count = self.bands + self.gaps
        draws = [torch.rand(count, 2, generator=row) for row in rows]
        drawn = (torch.stack(draws) if draws else torch.zeros(0, count, 2)).to(device)
        low, high = _stripes(
            drawn[:, : self.bands],
            torch.full((len(draws), 1), float(bins), device=device),
            torch.full((len(draws), 1), float(self.band_bins), device=device),
        )
        begin, end = _stripes(
            drawn[:, self.bands :],
            lengths[:, None].float(),
            (lengths[:, None] / 5).clamp(max=self.gap_frames),
        )
        bin_ = torch.arange(bins, device=device)[None, :, None]
        frame = torch.arange(frames, device=device)[None, :, None]
        in_band = ((bin_ >= low[:, None]) & (bin_ < high[:, None])).any(-1)
        in_gap = ((frame >= begin[:, None]) & (frame < end[:, None])).any(-1)
        return features.masked_fill(in_band[:, None, :] | in_gap[..., None], 0.0)


def _stripes(drawn: Tensor, limit: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Begin and end of stripes (B, K) up to a size, below a limit, from (B, K, 2) in [0, 1)."""
    width = drawn[..., 0] * size
    start = drawn[..., 1] * (limit - width)
    return start.round(), (start + width).round()


def generators(seed: int, step: int, names: Sequence[str]) -> list[torch.Generator]:
    """One source of randomness for each utterance of a step, by its name.

    It is the same one however the utterances are spread over processes.

    >>> a, b = generators(0, 7, ["one.wav", "two.wav"])
    >>> (c,) = generators(0, 7, ["two.wav"])
    >>> a.initial_seed() != b.initial_seed() == c.initial_seed()
    True
    """
    return [
        torch.Generator().manual_seed(zlib.crc32(f"{seed} {step} {name}".encode()))
        for name in names
    ]
