"""Log-mel features against Kaldi's and a plain DFT, in one piece and in chunks.

Kaldi's windows are symmetric and reach ±32768; `hann` here is periodic and has no twin there.
"""

import math
import random
from collections.abc import Callable
from typing import Any

import kaldi_native_fbank as knf
import numpy as np
import pytest
import torch
from torch import Tensor

from nearfuture import laws
from nearfuture.error import NearfutureError
from nearfuture.laws.stream import single_frames, streamed, until, whole
from nearfuture.model import LogMel, LogSpectrum
from nearfuture.model.features import hertz, mel, mel_filters
from tests.laws.cases import obey_in_explicit_cases
from tests.laws.cuts import random_partition

WINDOWS = ("hann", "hamming", "povey", "rectangular")


def speechlike(rate: int, seconds: float = 0.5, *, seed: int = 0) -> np.ndarray:
    """Noise under a slow envelope, a tone and a DC offset."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(rate * seconds)) / rate
    noise = rng.standard_normal(time.size) * (0.02 + 0.1 * np.sin(2 * np.pi * 3 * time) ** 2)
    return noise + 0.2 * np.sin(2 * np.pi * 440 * time) + 0.05


def of(layer: LogMel, samples: np.ndarray | Tensor) -> np.ndarray:
    """The features (T, M) of one recording."""
    x = torch.as_tensor(samples, dtype=layer.basis.dtype).reshape(1, -1, 1)
    y, n = layer(x, torch.tensor([x.shape[1]]))
    return y[0, : int(n[0])].numpy()


def kaldi(samples: np.ndarray, rate: int, window: str, bins: int, preemphasis: float) -> np.ndarray:
    options = knf.FbankOptions()
    options.frame_opts.samp_freq = rate
    options.frame_opts.dither = 0.0
    options.frame_opts.snip_edges = True
    options.frame_opts.window_type = window
    options.frame_opts.preemph_coeff = preemphasis
    options.frame_opts.remove_dc_offset = True
    options.mel_opts.num_bins = bins
    options.mel_opts.low_freq = 20
    fbank = knf.OnlineFbank(options)
    # Kaldi's floor is that of float32, 1.2e-7, of samples in ±32768.
    fbank.accept_waveform(rate, (samples * 32768).tolist())
    fbank.input_finished()
    frames = [fbank.get_frame(i) for i in range(fbank.num_frames_ready)]
    return np.stack(frames) - 2 * math.log(32768)


@pytest.mark.parametrize("rate", [8000, 16000])
@pytest.mark.parametrize("window", ["hamming", "povey", "rectangular"])
@pytest.mark.parametrize("preemphasis", [0.97, 0.0])
@pytest.mark.usefixtures("float64")
def test_it_is_kaldis_fbank(rate: int, window: str, preemphasis: float) -> None:
    samples = speechlike(rate)
    bins = 40 if rate == 8000 else 80
    floor = float(np.finfo(np.float32).eps) / 32768**2
    layer = LogMel(rate, mel_bins=bins, window=window, preemphasis=preemphasis, floor=floor)
    ours, theirs = of(layer, samples), kaldi(samples, rate, window, bins, preemphasis)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, atol=2e-3)  # theirs is in float32
    assert abs(ours - theirs).mean() < 2e-5


def recomputed(samples: np.ndarray, rate: int, window: str, bins: int, floor: float) -> np.ndarray:
    """Frame by frame with numpy's FFT."""
    size, hop = rate * 25 // 1000, rate // 100
    fft_size = 256 if rate == 8000 else 512
    shape = {
        "hann": 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size),
        "hamming": np.hamming(size),
        "povey": np.hanning(size) ** 0.85,
        "rectangular": np.ones(size),
    }[window]
    filters = mel_filters(bins, fft_size, rate).double().numpy()
    frames = []
    for begin in range(0, len(samples) - size + 1, hop):
        frame = samples[begin : begin + size].copy()
        frame -= frame.mean()
        frame = frame - 0.97 * np.concatenate([frame[:1], frame[:-1]])
        power = abs(np.fft.rfft(frame * shape, fft_size)) ** 2
        frames.append(np.log(np.maximum(power @ filters, floor)))
    return np.stack(frames)


@pytest.mark.parametrize("rate", [8000, 16000])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.usefixtures("float64")
def test_it_is_a_plain_dft(rate: int, window: str) -> None:
    samples = speechlike(rate, seed=1)
    got = of(LogMel(rate, window=window), samples)
    expected = recomputed(samples, rate, window, 40, 1e-7)
    assert (expected > math.log(1e-7)).any()
    np.testing.assert_allclose(got, expected, atol=1e-10)


def test_float32_agrees_with_float64() -> None:
    for samples in (speechlike(8000), np.sin(np.arange(4000) * 2 * np.pi / 8), np.ones(4000)):
        layer = LogMel(8000)
        single, double = of(layer, samples), of(LogMel(8000).double(), samples)
        np.testing.assert_allclose(single, double, atol=2e-3)


# Frames


def test_a_second_has_98_frames() -> None:
    assert of(LogMel(16000), np.zeros(16000)).shape == (98, 40)
    assert of(LogMel(8000), np.zeros(8000)).shape == (98, 40)


@pytest.mark.parametrize("samples", [0, 1, 199, 200, 279, 280, 999])
def test_the_last_incomplete_window_does_not_exist(samples: int) -> None:
    layer = LogMel(8000)
    expected = max(0, (samples - 200) // 80 + 1)
    assert len(of(layer, np.zeros(samples))) == expected
    assert layer.field.total(samples) == layer.field.emitted(samples) == expected


def test_streaming_equals_forward_for_any_partition() -> None:
    layer = LogMel(8000).double()
    layer.fit(torch.from_numpy(of(layer, speechlike(8000))))
    lengths = [1200, 777, 199, 0]
    x = torch.from_numpy(speechlike(8000, 0.6)[: 4 * 1200].reshape(4, 1200, 1))
    expected = whole(layer, x, lengths)
    rng = random.Random(0)
    cuts = [single_frames(lengths), (tuple(lengths),)]
    cuts += [random_partition(lengths, rng) for _ in range(4)]
    for cut in cuts:
        for got, row in zip(streamed(layer, x, cut), expected, strict=True):
            torch.testing.assert_close(got, row, rtol=0, atol=1e-10)


def test_frames_come_as_soon_as_they_are_declared() -> None:
    layer = LogMel(8000).double()
    x = torch.from_numpy(speechlike(8000)[:300].reshape(1, 300, 1))
    for n in (0, 1, 199, 200, 201, 279, 280, 300):
        outputs, _, _ = until(layer, x, ((n,),))
        assert len(outputs[0]) == layer.field.emitted(n)


@pytest.mark.parametrize("window", WINDOWS)
def test_the_declared_window_is_reached_and_not_exceeded(window: str) -> None:
    layer = LogMel(8000, window=window).double()
    samples = speechlike(8000)[:520]
    frame = 2
    first, last = frame * 80, frame * 80 + int(layer.field.right)
    base = of(layer, samples)[frame]
    for at, matters in ((first - 1, False), (first, True), (last, True), (last + 1, False)):
        touched = samples.copy()
        touched[at] += 0.5
        assert (of(layer, touched)[frame] != base).any() == matters


def features(window: str) -> Callable[[], LogMel]:
    return lambda: LogMel(1000, window_ms=16, hop_ms=6, mel_bins=2, window=window, floor=1e-9)


@pytest.mark.parametrize("window", WINDOWS)
def test_the_laws(window: str) -> None:
    obey_in_explicit_cases(features(window))


@pytest.mark.slow
@pytest.mark.parametrize("window", WINDOWS)
def test_the_laws_in_drawn_cases(window: str) -> None:
    laws.check(features(window))


# Values


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(2000),
        np.ones(2000),
        np.tile([1.0, -1.0], 1000),
        np.sign(np.sin(np.arange(2000))),
        0.5 * np.sin(2 * np.pi * 50 * np.arange(2000) / 8000),
        np.full(2000, 1e-30),
    ],
    ids=["silence", "DC", "half the rate", "full scale", "hum", "subnormal power"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_whatever_is_heard_is_finite(samples: np.ndarray, dtype: torch.dtype) -> None:
    features = of(LogMel(8000).to(dtype), samples)
    assert np.isfinite(features).all()
    assert features.min() >= math.log(1e-7) - 1e-5


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_silence_and_dc_are_the_floor(level: float) -> None:
    features = of(LogMel(8000).double(), np.full(1000, level))
    np.testing.assert_allclose(features, math.log(1e-7), atol=1e-6)


def test_fit_gives_mean_0_and_variance_1() -> None:
    layer, samples = LogMel(8000).double(), speechlike(8000, 2.0)
    assert not layer.fitted
    layer.fit(torch.from_numpy(of(layer, samples)))
    assert layer.fitted
    features = of(layer, samples)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(features.var(axis=0, ddof=1), 1, atol=1e-10)


def test_fit_of_silence_is_finite() -> None:
    layer = LogMel(8000)
    layer.fit(torch.from_numpy(of(layer, np.zeros(4000))))
    assert np.isfinite(of(layer, speechlike(8000))).all()


def test_the_statistics_are_kept_and_the_matrices_made_again() -> None:
    layer, samples = LogMel(8000), speechlike(8000)
    layer.fit(torch.from_numpy(of(layer, samples)))
    assert set(layer.state_dict()) == {"mean", "scale"}
    again = LogMel(8000)
    again.load_state_dict(layer.state_dict())
    assert again.fitted
    np.testing.assert_array_equal(of(again, samples), of(layer, samples))


# Filters


def test_mel_is_kaldis_and_inverts() -> None:
    assert mel(700.0) == pytest.approx(1127 * math.log(2))
    for frequency in (0.0, 20.0, 440.0, 4000.0, 8000.0):
        assert hertz(mel(frequency)) == pytest.approx(frequency)


def test_filters_are_triangles_that_add_up_to_one() -> None:
    filters = mel_filters(40, 512, 16000)
    assert (filters >= 0).all()
    assert (filters <= 1).all()
    centres = [k for k in range(257) if mel(20) + 200 < mel(k * 31.25) < mel(8000) - 200]
    torch.testing.assert_close(filters[centres].sum(dim=1), torch.ones(len(centres)).double())


# Refusals


@pytest.mark.parametrize(
    ("rate", "options", "message"),
    [
        (11025, {}, "275.625 samples"),
        (8000, {"hop_ms": 10.01}, "80.08 samples"),
        (8000, {"mel_bins": 200}, "200 mel bins are too many"),
        (8000, {"window": "blackman"}, "must be one of hann, hamming, povey, rectangular"),
        (8000, {"low_hz": 4000.0}, "inside 0 to 4000 Hz"),
        (8000, {"low_hz": -1.0}, "-1 to 4000"),
    ],
)
def test_what_makes_no_features_is_refused(rate: int, options: dict, message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        LogMel(rate, **options)


def test_a_window_need_not_be_exact_in_milliseconds() -> None:
    layer = LogMel(11025, window_ms=24.9433107, hop_ms=9.9773243)  # what the message suggests
    assert (layer.kernel, layer.stride) == (275, 110)


@pytest.mark.parametrize(
    "features", [torch.zeros(0, 40), torch.zeros(1, 40), torch.full((9, 40), math.nan)]
)
def test_no_statistics_of_nothing(features: Tensor) -> None:
    layer = LogMel(8000)
    with pytest.raises(NearfutureError, match="at least two frames of finite values"):
        layer.fit(features)
    assert not layer.fitted


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("window", WINDOWS)
def test_what_is_exported_is_what_is_heard(window: Any) -> None:
    layer = LogMel(8000, window=window)
    samples = torch.as_tensor(speechlike(8000, 0.3) + 0.1).reshape(1, -1, 1)
    fast, exported = layer._by_fft(samples), layer._by_matrix(samples)
    torch.testing.assert_close(fast, exported, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("features", [LogMel(8000), LogSpectrum(8000)])
def test_a_state_is_of_the_dtype_of_the_layer(features: LogMel | LogSpectrum) -> None:
    frames, _ = features.start(1)
    assert frames.dtype == torch.float32
    x = torch.zeros(1, 800, 1)
    y, _, _ = features.step(x, torch.tensor([800]), features.start(1))
    assert y.dtype == torch.float32
