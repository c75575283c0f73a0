"""The linear log spectrum against numpy's transform, in one piece and in chunks."""

import numpy as np
import pytest
import torch

from nearfuture import laws
from nearfuture.error import NearfutureError
from nearfuture.model import LogMel, LogSpectrum
from nearfuture.model.features import mel_filters


def sound(samples: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return 0.1 * rng.standard_normal(samples) + 0.2 * np.sin(np.arange(samples) / 5) + 0.05


@pytest.mark.usefixtures("float64")
def test_it_is_numpys_transform() -> None:
    layer = LogSpectrum(16000)
    samples = sound(3200)
    y, n = layer(torch.from_numpy(samples)[None, :, None], torch.tensor([3200]))
    assert (tuple(y.shape), n.tolist()) == ((1, 19, 161), [19])
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(320) / 320)
    for t in range(19):
        window = samples[160 * t : 160 * t + 320]
        window = window - window.mean()
        window = window - 0.97 * np.concatenate([window[:1], window[:-1]])
        power = np.abs(np.fft.rfft(hann * window)) ** 2
        expected = np.log(np.maximum(power, 1e-7))
        np.testing.assert_allclose(y[0, t].numpy(), expected, rtol=0, atol=1e-9)


def test_log_mel_energies_are_its_bands() -> None:
    # A window of 2ᵏ samples, so that both have the same transform.
    options = {"window_ms": 32.0, "hop_ms": 10.0, "floor": 1e-12}
    x, n = torch.from_numpy(sound(2000)).float()[None, :, None], torch.tensor([2000])
    linear, _ = LogSpectrum(8000, **options)(x, n)
    mel, _ = LogMel(8000, mel_bins=20, **options)(x, n)
    bands = (linear.exp() @ mel_filters(20, 256, 8000).float()).log()
    torch.testing.assert_close(mel, bands, rtol=1e-3, atol=1e-3)


def test_the_laws() -> None:
    laws.check(lambda: LogSpectrum(1000, window_ms=8.0, hop_ms=4.0))


def test_a_window_that_is_no_whole_number_of_samples_is_refused() -> None:
    with pytest.raises(NearfutureError, match=r"220\.5 samples"):
        LogSpectrum(11025)
