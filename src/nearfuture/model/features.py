"""Spectra and log-mel features as layers: streaming, exact, and exportable as matrix products.

Shapes: `B` batch, `N` samples, `T` frames, `W` window samples, `K` frequency bins, `M` mel bins.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Literal

import torch
from torch import Tensor

from nearfuture.budget import FeatureConfig
from nearfuture.error import NearfutureError
from nearfuture.layers import DType, Windowed


def mel(hertz: float) -> float:
    """Mel of a frequency in Hz, in the form of HTK and Kaldi: `1127 ln(1 + f / 700)`.

    >>> round(mel(1000.0), 2)
    999.99
    """
    return 1127.0 * math.log1p(hertz / 700.0)


def hertz(mel: float) -> float:
    """The inverse of `mel`.

    >>> round(hertz(mel(440.0)), 6)
    440.0
    """
    return 700.0 * math.expm1(mel / 1127.0)


def mel_filters(
    bins: int, fft_size: int, rate: int, *, low_hz: float = 20.0, high_hz: float | None = None
) -> Tensor:
    """Triangular filters, equally spaced and triangular in mel as in Kaldi: (K, M).

    Args:
        bins: M.
        fft_size: points of the DFT; K = fft_size / 2 + 1.
        rate: samples per second.
        low_hz: lower edge of the first filter.
        high_hz: upper edge of the last; half the rate by default.

    Raises:
        NearfutureError: where a filter would contain no frequency bin at all, or for a band outside
            0 Hz to half the rate.

    >>> tuple(mel_filters(40, 256, 8000).shape)
    (129, 40)
    """
    high = rate / 2 if high_hz is None else high_hz
    if not 0 <= low_hz < high <= rate / 2:
        raise NearfutureError(
            f"filters from {low_hz:g} to {high:g} Hz: choose a band inside 0 to {rate / 2:g} Hz, "
            f"half the rate",
            code="out_of_range",
            parameter="low_hz" if high_hz is None else "high_hz",
        )
    step = (mel(high) - mel(low_hz)) / (bins + 1)
    centres = [mel(low_hz) + step * (m + 1) for m in range(bins)]
    filters = torch.zeros(fft_size // 2 + 1, bins, dtype=torch.float64)
    for k in range(fft_size // 2):  # Kaldi leaves out the bin at half the rate
        at = mel(k * rate / fft_size)
        for m, centre in enumerate(centres):
            filters[k, m] = max(0.0, 1.0 - abs(at - centre) / step)
    if bool((filters.sum(dim=0) == 0).any()):
        raise NearfutureError(
            f"{bins} mel bins are too many for {fft_size} points at {rate} Hz: some filters hold "
            f"no frequency at all; use fewer bins",
            code="out_of_range",
            parameter="mel_bins",
        )
    return filters


class _Spectrum(Windowed):
    """The base of both features: windows, DFT, logarithm and a fixed normalisation.

    DC removal, pre-emphasis, the window and the DFT are linear, so they are one matrix: that is
    what is exported. Here an FFT does the same in a fifth of the time. A subclass computes its
    energies from the power of each frequency in `bands`.
    """

    basis: Tensor
    window: Tensor
    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        rate: int,
        *,
        window_ms: float,
        hop_ms: float,
        window: str,
        preemphasis: float,
        floor: float,
        mel_bins: int | None = None,
    ) -> None:
        config = FeatureConfig(rate=rate, window_ms=window_ms, hop_ms=hop_ms, mel_bins=mel_bins)
        kernel, bins = config.window_samples, config.bins
        self.fft_size = config.fft_size
        super().__init__(1, bins, right=kernel - 1, stride=config.hop_samples, padded=False)
        self.rate, self.floor = rate, floor
        dtype = torch.get_default_dtype()
        self.preemphasis = preemphasis
        shape = _window(kernel, window)
        basis = _analysis(shape, self.fft_size, preemphasis)
        self.register_buffer("basis", basis.to(dtype), persistent=False)
        self.register_buffer("mean", torch.zeros(bins, dtype=dtype))
        self.register_buffer("scale", torch.ones(bins, dtype=dtype))
        self.register_buffer("window", shape, persistent=False)

    @property
    def dtype(self) -> DType:
        return self.mean.dtype  # the window stays in float64

    @abstractmethod
    def bands(self, power: Tensor) -> Tensor:
        """The energies that are normalised: (B, T, K) powers → (B, T, M)."""

    def slide(self, frames: Tensor) -> Tensor:
        """The features of every window of (B, N, 1) samples: (B, T, M).

        Summed in float64: beside a loud tone, the rounding of float32 is louder than quiet speech.
        Training takes an FFT, which is three times as fast. The exported graph multiplies with a
        matrix whose entries are rounded to the layer's dtype, and so does this in eval mode, so
        that both agree on a tone.
        """
        power = self._by_fft(frames) if self.training else self._by_matrix(frames)
        energy = self.bands(power)
        return (energy.clamp(min=self.floor).log() - self.mean) * self.scale

    def _by_matrix(self, frames: Tensor) -> Tensor:
        """The power of each frequency (B, T, K), by operations that export."""
        size = self.basis.shape[1]
        first = self.stride * torch.arange((frames.shape[1] - size) // self.stride + 1)
        at = first[:, None] + torch.arange(size)
        windows = frames.squeeze(2)[:, at.to(frames.device)].double()
        real, imaginary = (windows @ self.basis.double().t()).chunk(2, dim=-1)
        return (real * real + imaginary * imaginary).to(frames.dtype)

    def _by_fft(self, frames: Tensor) -> Tensor:
        """The power of each frequency (B, T, K)."""
        rows = [self._power(row).to(frames.dtype) for row in frames.squeeze(2).double()]
        return torch.stack(rows) if rows else frames.new_zeros(0, 0, self.fft_size // 2 + 1)

    def _power(self, samples: Tensor) -> Tensor:
        """The power in the windows of one row, (N,) → (T, K), which fits the processor's cache.

        With `e_i = x_i - a x_{i-1}` an emphasised window without its DC is `e - (1 - a) E[x]`.
        """
        rest = 1 - self.preemphasis
        windows = samples.unfold(0, self.kernel, self.stride)
        mean = windows.mean(dim=1, keepdim=True)
        before = torch.cat([samples[:1], samples[:-1]])
        emphasised = samples.sub(before, alpha=self.preemphasis)
        shaped = emphasised.unfold(0, self.kernel, self.stride) - rest * mean
        shaped[:, :1] = rest * (windows[:, :1] - mean)  # Kaldi repeats a window's first sample
        spectrum = torch.fft.rfft(shaped.mul_(self.window.double()), self.fft_size)
        power: Tensor = spectrum.real.square() + spectrum.imag.square()
        return power

    @property
    def fitted(self) -> bool:
        """Whether `fit` has been called, or its result loaded."""
        return bool((self.mean != 0).any() or (self.scale != 1).any())

    @torch.no_grad()
    def fit(self, features: Tensor) -> None:
        """Fix the normalisation to these unnormalised frames (T, M): mean 0, variance 1 per bin.

        Raises:
            NearfutureError: for fewer than two frames, or for values that are not finite.
        """
        if features.shape[0] < 2 or not bool(features.isfinite().all()):
            raise NearfutureError(
                f"features are normalised by at least two frames of finite values, not by "
                f"{features.shape[0]} frames with {int((~features.isfinite()).sum())} that are "
                f"not finite; use longer or undamaged recordings",
                parameter="features",
            )
        self.mean.copy_(features.mean(dim=0))
        self.scale.copy_(1.0 / features.std(dim=0).clamp(min=1e-3))


class LogMel(_Spectrum):
    """Log mel energies of complete windows: `(log max(|DFT(w ∘ p(x - E[x]))|² F, floor) - μ) / σ`.

    DC removal, pre-emphasis `p`, the window `w` and the DFT are linear, so they are one matrix.
    Windows are never centred: centring looks ahead and mirrors the end. The last incomplete window
    does not exist. μ and σ are fixed statistics of the training data, per bin; statistics of an
    utterance would look into its future.

    Args:
        rate: samples per second; input is (B, N, 1) in [-1, 1].
        window_ms: window length.
        hop_ms: distance of windows.
        mel_bins: M, features out.
        window: `hann` is periodic, so that the last sample of the window counts; `hamming`, `povey`
            and `rectangular` are Kaldi's, which are symmetric.
        preemphasis: a in `x_i - a x_{i-1}`.
        low_hz: lower edge of the first filter.
        floor: smallest energy: a little over the rounding noise of 16-bit samples. With a higher
            one a model is deaf to quiet speech.

    Raises:
        NearfutureError: for a window or a hop that is no whole number of samples, an unknown
            window, or filters that the rate does not allow.

    >>> layer = LogMel(8000)
    >>> y, n = layer(torch.zeros(1, 8000, 1), torch.tensor([8000]))
    >>> tuple(y.shape), n.item(), layer.field.right
    ((1, 98, 40), 98, 199)
    """

    filters: Tensor

    def __init__(
        self,
        rate: int,
        *,
        window_ms: float = 25.0,
        hop_ms: float = 10.0,
        mel_bins: int = 40,
        window: Literal["hann", "hamming", "povey", "rectangular"] = "hann",
        preemphasis: float = 0.97,
        low_hz: float = 20.0,
        floor: float = 1e-7,
    ) -> None:
        super().__init__(
            rate,
            window_ms=window_ms,
            hop_ms=hop_ms,
            window=window,
            preemphasis=preemphasis,
            floor=floor,
            mel_bins=mel_bins,
        )
        filters = mel_filters(mel_bins, self.fft_size, rate, low_hz=low_hz)
        self.register_buffer("filters", filters.to(self.basis.dtype), persistent=False)

    def bands(self, power: Tensor) -> Tensor:
        return power @ self.filters


class LogSpectrum(_Spectrum):
    """The log power of every frequency: `(log max(|DFT(w ∘ p(x - E[x]))|², floor) - μ) / σ`.

    The input of Deep Speech 2 (Amodei et al. 2015, §3): windows, normalisation and arguments are
    those of `LogMel`, without mel filters. Normalising the power of an utterance, as the paper
    does, would look into its future.

    Args:
        rate: samples per second; input is (B, N, 1) in [-1, 1].
        window_ms: window length; a window of W samples has W // 2 + 1 frequencies.
        hop_ms: distance of windows.
        window: periodic `hann`, or Kaldi's `hamming`, `povey` and `rectangular`.
        preemphasis: a in `x_i - a x_{i-1}`.
        floor: smallest power, see `LogMel`.

    Raises:
        NearfutureError: for a window or a hop that is no whole number of samples, or an unknown
            window.

    >>> LogSpectrum(16000).output_size
    161
    """

    def __init__(
        self,
        rate: int,
        *,
        window_ms: float = 20.0,
        hop_ms: float = 10.0,
        window: Literal["hann", "hamming", "povey", "rectangular"] = "hann",
        preemphasis: float = 0.97,
        floor: float = 1e-7,
    ) -> None:
        super().__init__(
            rate,
            window_ms=window_ms,
            hop_ms=hop_ms,
            window=window,
            preemphasis=preemphasis,
            floor=floor,
        )

    def bands(self, power: Tensor) -> Tensor:
        return power


def _window(samples: int, name: str) -> Tensor:
    """The shape of a window (W,) in float64.

    Raises:
        NearfutureError: for an unknown name.
    """
    phase = 2 * math.pi * torch.arange(samples, dtype=torch.float64)
    cosine = torch.cos(phase / (samples if name == "hann" else samples - 1))
    shapes = {
        "hann": 0.5 - 0.5 * cosine,
        "hamming": 0.54 - 0.46 * cosine,
        "povey": (0.5 - 0.5 * cosine).clamp(min=0) ** 0.85,
        "rectangular": torch.ones_like(cosine),
    }
    if name not in shapes:
        raise NearfutureError(
            f"`window` must be one of {', '.join(shapes)}, not {name!r}", parameter="window"
        )
    return shapes[name]


def _analysis(window: Tensor, fft_size: int, preemphasis: float) -> Tensor:
    """DC removal, pre-emphasis, window and DFT as one matrix (2K, W), cosines above sines."""
    samples = window.shape[0]
    centre = torch.eye(samples, dtype=torch.float64) - 1.0 / samples
    emphasis = torch.eye(samples, dtype=torch.float64)
    emphasis -= preemphasis * torch.diag(torch.ones(samples - 1, dtype=torch.float64), -1)
    emphasis[0, 0] -= preemphasis  # Kaldi repeats the first sample
    phase = 2 * math.pi * torch.arange(samples, dtype=torch.float64)
    turns = torch.arange(fft_size // 2 + 1, dtype=torch.float64)[:, None] * phase[None] / fft_size
    dft = torch.cat([torch.cos(turns), -torch.sin(turns)])
    return dft @ (window[:, None] * (emphasis @ centre))
