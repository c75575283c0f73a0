"""The bundled twin without its backward direction: a graph over the twin's own weights.

`tools/make_lab_forward.py` makes the graph.

Shapes: `T` frames of 40 ms, `W` windows of 10 ms, `V` vocabulary with the blank, `M` mel bins.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.budget import RecognizerConfig
from nearfuture.lab.page import ASSETS
from nearfuture.lab.recordings import TWIN, LogProbs, Recording, samples

GRAPH = ASSETS / "derived" / "forward-alone.onnx"
WEIGHTS = "weights.bin"


@cache
def _session() -> Any:
    import onnxruntime as ort

    from nearfuture.runtime import Bundle
    from nearfuture.runtime.session import session_options

    weights = (Bundle.open(TWIN).folder / WEIGHTS).read_bytes()
    options = session_options(1)
    options.add_external_initializers_from_files_in_memory([WEIGHTS], [weights], [len(weights)])
    providers = ["CPUExecutionProvider"]
    return ort.InferenceSession(GRAPH.read_bytes(), options, providers=providers)


@cache
def heard_forwards(recording: Recording) -> tuple[LogProbs, NDArray[np.float32]]:
    """Return what the forward direction alone gives for a recording, and what the model hears.

    Returns:
        (T, V) log-probabilities and (W, M) log-mel features, normalised as for the model.

    >>> from nearfuture.lab.recordings import recordings
    >>> log_probs, log_mel = heard_forwards(recordings()[0])
    >>> log_probs.shape, log_mel.shape
    ((107, 17), (431, 40))
    """
    pcm = samples(recording)
    feed = {"pcm": pcm[None, :, None], "lengths": np.array([len(pcm)], np.int64)}
    log_probs, frames, log_mel = _session().run(["log_probs", "frames", "log_mel"], feed)
    features = RecognizerConfig().features
    windows = 1 + (len(pcm) - features.window_samples) // features.hop_samples
    return log_probs[0, : frames[0]], log_mel[0, :windows]
