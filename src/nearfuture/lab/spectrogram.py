"""The features that the bundled models read, of a recording or of sound as it comes.

The graph `log-mel.onnx` is the front of the bundled twin's graph and reads its weights out of the
bundle; `tools/make_lab_features.py` cuts it out. A band is the logarithm of the energy around one
pitch, normalised as the models see it.

Shapes: `n` samples, `T` windows of 25 ms, one every 10 ms, `M` bands from low to high.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfuture.lab.page import ASSETS

_BUNDLE, _WEIGHTS = "digits-bidirectional", "weights.bin"


class Spectrogram:
    """The bands of one stream of sound: as many as its samples make possible so far.

    Args:
        rate: samples per second of the sound.

    Raises:
        NearfutureError: for a rate that cannot be resampled.

    >>> spectrogram = Spectrogram(rate=8000)
    >>> [len(spectrogram.accept(np.zeros(n, np.float32))) for n in (199, 1, 79, 1, 800)]
    [0, 1, 0, 1, 10]
    """

    def __init__(self, rate: int) -> None:
        from nearfuture.audio import LiveResampler
        from nearfuture.runtime import Bundle

        features = Bundle.open(_BUNDLE).manifest.architecture.features
        self._window, self._hop = features.window_samples, features.hop_samples
        self._resampler = LiveResampler(rate, features.rate)
        self._state = self._resampler.start()
        self._waiting = np.zeros(0, np.float32)

    def accept(self, samples: ArrayLike) -> NDArray[np.float32]:
        """Return the bands (T, M) that become possible with these samples (n,)."""
        from nearfuture.runtime import as_samples

        new, self._state = self._resampler.step(as_samples(samples), self._state)
        self._waiting = np.concatenate([self._waiting, new])
        count = max(0, (len(self._waiting) - self._window) // self._hop + 1)
        if not count:
            return np.zeros((0, 0), np.float32)
        # The graph pads the end, and writes windows that are not whole: those are left out.
        bands = _bands(self._waiting)[:count]
        self._waiting = self._waiting[self._hop * count :]
        return bands


def _bands(pcm: NDArray[np.float32]) -> NDArray[np.float32]:
    feed = {"pcm": pcm[None, :, None], "lengths": np.array([len(pcm)], np.int64)}
    bands: NDArray[np.float32] = _session().run(["bands"], feed)[0][0]
    return bands


@cache
def _session() -> Any:
    """The graph, with the weights of the bundle."""
    import onnxruntime as ort

    from nearfuture.runtime import Bundle
    from nearfuture.runtime.session import session_options

    weights = (Bundle.open(_BUNDLE).folder / _WEIGHTS).read_bytes()
    options = session_options(1)
    options.add_external_initializers_from_files_in_memory([_WEIGHTS], [weights], [len(weights)])
    graph = (ASSETS / "log-mel.onnx").read_bytes()
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
