"""Named recognisers, as functions; `nearfuture.budget` has plans of the same names and sizes."""

from __future__ import annotations

from collections.abc import Callable

from nearfuture import budget
from nearfuture.budget.presets import Preset
from nearfuture.model.configuration import RecognizerConfig
from nearfuture.text import Vocabulary


def tiny(*, symbols: tuple[str, ...] | None = None) -> RecognizerConfig:
    """Two layers of 32: for tests and first steps; it learns little.

    >>> tiny().hidden
    32
    """
    return RecognizerConfig(symbols=symbols or _letters(), hidden=32, layers=2, dropout=0.0)


def base(*, symbols: tuple[str, ...] | None = None) -> RecognizerConfig:
    """Three layers of 96: a few words in minutes of training.

    >>> base().hidden, base().layers
    (96, 3)
    """
    return RecognizerConfig(symbols=symbols or _letters(), hidden=96, layers=3)


def small(*, symbols: tuple[str, ...] | None = None) -> RecognizerConfig:
    """Three layers of 192, under a million parameters: a small vocabulary, live on any CPU.

    >>> small().frames
    (0, 4, 8, 19)
    """
    return RecognizerConfig(symbols=symbols or _letters(), hidden=192, layers=3)


def deep_speech_2_deployed(
    *, symbols: tuple[str, ...] | None = None, causal: bool = False
) -> RecognizerConfig:
    """Deep Speech 2 as it was deployed: five GRU layers of 2560 and a lookahead of 19 frames.

    A linear spectrum of 16 kHz audio, two convolutions over time and frequency with two strides of
    2, so that a frame is 40 ms, and batch normalisation: 930 ms, all included, or 780 ms.

    Args:
        symbols: the vocabulary; English letters unless given.
        causal: the context of the convolutions all on the left.

    Source: arXiv 1512.02595 §3.5 and §3.7.

    >>> deep_speech_2_deployed().frame_ms, deep_speech_2_deployed().frames
    (40.0, (19,))
    """
    return RecognizerConfig(
        symbols=symbols or _letters(),
        rate=16000,
        window_ms=20.0,
        mel_bins=None,
        stack=1,
        convolutions=budget.deep_speech_2_deployed(causal=causal).convolutions,
        hidden=2560,
        layers=5,
        frames=(19,),
        batch_norm=True,
        dropout=0.0,
    )


def deep_speech_2_research(
    *,
    symbols: tuple[str, ...] | None = None,
    cell: budget.Cell = "gru",
    causal: bool = False,
) -> RecognizerConfig:
    """Deep Speech 2 as it was studied: seven bidirectional layers that share `W` and are summed.

    It has no row convolution: its backward direction has read the whole future already, so that a
    lookahead could add nothing but its weights.

    Args:
        symbols: the vocabulary; English letters unless given.
        cell: `rnn` is the paper's first choice, with a clipped ReLU.
        causal: the context of the convolutions all on the left.

    Source: arXiv 1512.02595 §3.

    >>> deep_speech_2_research(cell="rnn").bidirectional
    True
    """
    return RecognizerConfig(
        symbols=symbols or _letters(),
        rate=16000,
        window_ms=20.0,
        mel_bins=None,
        stack=1,
        convolutions=budget.deep_speech_2_research(causal=causal).convolutions,
        cell=cell,
        hidden=1760,
        layers=7,
        frames=(),
        bidirectional=True,
        batch_norm=True,
        dropout=0.0,
    )


def _letters() -> tuple[str, ...]:
    return Vocabulary.english().symbols


PRESETS: dict[Preset, Callable[..., RecognizerConfig]] = {
    "tiny": tiny,
    "base": base,
    "small": small,
    "deep-speech-2-research": deep_speech_2_research,
    "deep-speech-2-deployed": deep_speech_2_deployed,
}
