"""Named recognisers, as functions of their vocabulary."""

from collections.abc import Callable
from typing import Literal

from nearfuture.budget.attention import AttentionConfig
from nearfuture.budget.component import ConvolutionConfig, FeatureConfig, RecurrenceConfig
from nearfuture.budget.config import RecognizerConfig
from nearfuture.budget.cost import Cell
from nearfuture.text import Vocabulary

Preset = Literal[
    "tiny",
    "base",
    "small",
    "small-conformer",
    "deep-speech-2-research",
    "deep-speech-2-deployed",
]
"""The names, as commands take them."""

ENGLISH = Vocabulary.english().symbols


def tiny(*, symbols: tuple[str, ...] = ENGLISH) -> RecognizerConfig:
    """Two layers of 32: for tests and first steps; it learns little.

    >>> tiny().recurrence.hidden
    32
    """
    recurrence = RecurrenceConfig(hidden=32, layers=2)
    return RecognizerConfig(symbols=symbols, recurrence=recurrence, dropout=0.0)


def base(*, symbols: tuple[str, ...] = ENGLISH) -> RecognizerConfig:
    """Three layers of 96: a few words in minutes of training.

    >>> base().recurrence.hidden, base().recurrence.layers
    (96, 3)
    """
    return RecognizerConfig(symbols=symbols, recurrence=RecurrenceConfig(hidden=96))


def small(*, symbols: tuple[str, ...] = ENGLISH) -> RecognizerConfig:
    """Three layers of 192, under a million parameters: a small vocabulary, live on any CPU.

    >>> small() == RecognizerConfig()
    True
    """
    return RecognizerConfig(symbols=symbols)


def small_conformer(*, symbols: tuple[str, ...] = ENGLISH) -> RecognizerConfig:
    """Five causal Conformer blocks in chunks of 160 ms, as large as `small` and as late.

    The first frame of a chunk waits for the three behind it, 120 ms, so that three of its heads
    keep the budgets of `small`'s with 3 frames of lookahead less.

    >>> [small_conformer().latency(frames).worst_ms for frames in small_conformer().heads]
    [175.0, 215.0, 375.0, 815.0]
    >>> [small().latency(frames).worst_ms for frames in small().heads]
    [55.0, 215.0, 375.0, 815.0]
    """
    return RecognizerConfig(
        symbols=symbols, recurrence=None, attention=AttentionConfig(), heads=(0, 1, 5, 16)
    )


def deep_speech_2_deployed(
    *, symbols: tuple[str, ...] = ENGLISH, causal: bool = False
) -> RecognizerConfig:
    """Deep Speech 2 as it was deployed: five GRU layers of 2560 and a lookahead of 19 frames.

    A linear spectrum of 16 kHz audio in windows of 20 ms as in the paper, two convolutions over
    time and frequency with two strides of 2, so that a frame is 40 ms, and batch normalisation, so
    one bias per gate. The paper's 19 × 40 ms = 760 ms leave out the window and the convolutions.

    Args:
        symbols: the vocabulary; English letters by default.
        causal: the context of the convolutions all on the left.

    Source: arXiv 1512.02595 §3.5 and §3.7.

    >>> latency = deep_speech_2_deployed().latency(19)
    >>> [(item.name, item.ms) for item in latency.items]  # doctest: +NORMALIZE_WHITESPACE
    [('window', 20.0), ('convolution 1', 50.0), ('convolution 2', 100.0), ('lookahead', 760.0)]
    >>> latency.worst_ms, deep_speech_2_deployed(causal=True).latency(19).worst_ms
    (930.0, 780.0)
    """
    recurrence = RecurrenceConfig(hidden=2560, layers=5, biases=1, layer_norm=False, residual=False)
    return _deep_speech_2(symbols, causal, recurrence, heads=(19,))


def deep_speech_2_research(
    *, symbols: tuple[str, ...] = ENGLISH, cell: Cell = "gru", causal: bool = False
) -> RecognizerConfig:
    """Deep Speech 2 as it was studied: seven bidirectional layers that share `W` and are summed.

    Features and convolutions are those of the deployed model. The paper prints numbers of
    parameters rather than widths; seven plain RNN layers of 1760 have 65 million. It has no row
    convolution: its backward direction has read the whole future already, so that a lookahead could
    add nothing but its weights.

    Args:
        symbols: the vocabulary; English letters by default.
        cell: `rnn` is the paper's first choice, with a clipped ReLU.
        causal: the context of the convolutions all on the left.

    Source: arXiv 1512.02595 §3.

    >>> deep_speech_2_research(cell="rnn").latency(None).worst_ms
    inf
    """
    recurrence = RecurrenceConfig(
        cell=cell,
        hidden=1760,
        layers=7,
        biases=1,
        bidirectional=True,
        share_input=True,
        layer_norm=False,
        residual=False,
    )
    return _deep_speech_2(symbols, causal, recurrence, heads=())


def _deep_speech_2(
    symbols: tuple[str, ...], causal: bool, recurrence: RecurrenceConfig, heads: tuple[int, ...]
) -> RecognizerConfig:
    convolutions = tuple(
        ConvolutionConfig(
            kernel=11, stride=2, channels=32, band_kernel=bands, band_stride=2, causal=causal
        )
        for bands in (41, 21)
    )
    return RecognizerConfig(
        symbols=symbols,
        features=FeatureConfig(rate=16000, window_ms=20.0, mel_bins=None),
        stack=1,
        convolutions=convolutions,
        projection=False,
        recurrence=recurrence,
        batch_norm=True,
        heads=heads,
        output_hidden=False,
        dropout=0.0,
    )


PRESETS: dict[Preset, Callable[..., RecognizerConfig]] = {
    "tiny": tiny,
    "base": base,
    "small": small,
    "small-conformer": small_conformer,
    "deep-speech-2-research": deep_speech_2_research,
    "deep-speech-2-deployed": deep_speech_2_deployed,
}
