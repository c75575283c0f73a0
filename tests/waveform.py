"""The whole chain, PCM to text, in torch and in ONNX Runtime: models, signals and comparisons."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from nearfuture.budget import tiny
from nearfuture.model import Recognizer
from nearfuture.runtime import Event, Model

RATE = 8000

Samples = NDArray[np.float32]
LogProbs = dict[int, NDArray[np.float32]]


def signals(seconds: float = 2.0) -> dict[str, Samples]:
    """Sounds at 8 kHz that break different things in features, each (n,) in [-1, 1]."""
    random = np.random.default_rng(7)
    t = np.arange(int(seconds * RATE)) / RATE
    speech = speechlike(t, random)
    sounds = {
        "speech": speech,
        "speech on DC": speech + 0.5,
        "1 kHz": np.sin(2 * np.pi * 1000 * t),
        "440 Hz": np.sin(2 * np.pi * 440 * t),
        "1003.7 Hz": np.sin(2 * np.pi * 1003.7 * t),
        "3.9 kHz": np.sin(2 * np.pi * 3900 * t),
        "50 Hz hum": 0.5 * np.sin(2 * np.pi * 50 * t),
        "DC": np.full_like(t, 0.9),
        "silence": np.zeros_like(t),
        "square": np.sign(np.sin(2 * np.pi * 200 * t + 0.1)),
        "noise": random.uniform(-1, 1, len(t)),
        "quiet noise": 1e-4 * random.standard_normal(len(t)),
        "click": np.where(np.arange(len(t)) == len(t) // 2, 1.0, 0.0),
    }
    return {name: sound.astype(np.float32) for name, sound in sounds.items()}


def speechlike(t: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    """A voice's harmonics through moving resonances, in syllables, over a little noise."""
    pitch = 2 * np.pi * np.cumsum(110 + 30 * np.sin(2 * np.pi * 0.9 * t)) / RATE
    moving = 900 + 600 * np.sin(2 * np.pi * 2.3 * t)
    voice = np.zeros_like(t)
    for harmonic in range(1, 25):
        distance = (110 * harmonic - moving) / 300
        voice += np.sin(harmonic * pitch) * (0.05 + np.exp(-(distance**2)))
    syllables = np.abs(np.sin(2 * np.pi * 1.7 * t)) * (np.sin(2 * np.pi * 0.6 * t + 1) > -0.7)
    return 0.3 * voice * syllables / np.abs(voice).max() + 0.003 * random.standard_normal(len(t))


def tiny_model(*, bidirectional: bool = False, seed: int = 0) -> Recognizer:
    """Untrained, but with opinions: features normalised, sharp outputs, blanks and spaces."""
    torch.manual_seed(seed)
    config = tiny()
    model = Recognizer(config.twin() if bidirectional else config).eval()
    speech = torch.from_numpy(signals()["speech"])
    with torch.no_grad():
        features, n = model.features(speech[None, :, None], torch.tensor([len(speech)]))
        model.features.fit(features[0, : int(n)])
        last = model.output.module[3]  # type: ignore[index]
        last.weight *= 12
        last.bias.normal_()
        last.bias[:2] += 3.0  # the blank and the space
    return model


def torch_log_probs(
    model: Recognizer, rows: Sequence[NDArray[np.floating]]
) -> dict[int | None, list[NDArray[np.floating]]]:
    """The offline reference: for every head each row's log-probabilities (T, V)."""
    lengths = torch.tensor([len(row) for row in rows])
    dtype = model.features.mean.dtype
    pcm = torch.zeros(len(rows), max(1, int(lengths.max())), 1, dtype=dtype)
    for b, row in enumerate(rows):
        pcm[b, : len(row), 0] = torch.from_numpy(np.array(row))
    heads = model.config.lookaheads
    with torch.inference_mode():
        outputs = {tau: model.at(tau)(pcm, lengths) for tau in heads}
    return {
        tau: [y[b, : int(n[b])].numpy() for b in range(len(rows))]
        for tau, (y, n) in outputs.items()
    }


@dataclass(frozen=True)
class Heard:
    """What a stream said: its events, and the log-probabilities (T, V) of every head."""

    events: list[Event]
    final: Event
    log_probs: LogProbs


def hear(
    model: Model,
    samples: NDArray[np.generic],
    sizes: Sequence[int] | None = None,
    rate: int | None = None,
) -> Heard:
    """Stream samples in chunks of these sizes, in one chunk unless given."""
    parts: list[LogProbs] = []
    stream = model.stream(rate, on_log_probs=parts.append)
    events: list[Event] = []
    at = 0
    for size in [len(samples)] if sizes is None else sizes:
        events += stream.accept(samples[at : at + size])
        at += size
    assert at == len(samples), "the chunks do not add up"
    final = stream.finish()
    log_probs = {tau: np.concatenate([part[tau] for part in parts]) for tau in parts[0]}
    return Heard(events, final, log_probs)


def assert_same_bits(heard: Heard, other: Heard) -> None:
    """Two ways to hear the same samples: equal events, equal bits."""
    assert heard.events == other.events
    assert heard.final == other.final
    assert heard.log_probs.keys() == other.log_probs.keys()
    for tau, values in heard.log_probs.items():
        np.testing.assert_array_equal(values, other.log_probs[tau], err_msg=f"head {tau}")


def assert_close(
    found: NDArray[np.floating], expected: NDArray[np.floating], atol: float, what: str
) -> None:
    """As many frames, and each value within `atol`."""
    assert found.shape == expected.shape, f"{what}: {found.shape} is not {expected.shape}"
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol, err_msg=what)


def assert_stream_equals_torch(
    model: Model, reference: Recognizer, samples: Samples, atol: float = 1e-4
) -> None:
    """Every head of a stream, tail included, equals offline torch."""
    heard = hear(model, samples)
    for tau, rows in torch_log_probs(reference, [samples]).items():
        assert tau is not None
        assert_close(heard.log_probs[tau], rows[0], atol, f"head {tau}, {len(samples)} samples")


def zipped(folder: Path, target: Path, *, inside: str = "") -> Path:
    """A bundle's folder as a zip file, its members under the folder `inside`."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{inside}{path.name}")
    return target
