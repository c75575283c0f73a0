"""Named sizes, as functions: those of the recognisers that carry the same names."""

from collections.abc import Callable
from typing import Literal

from nearfuture.budget.blueprint import Blueprint, ConvolutionShape

Preset = Literal["tiny", "base", "small", "deep-speech-2-research", "deep-speech-2-deployed"]
"""The names, as commands take them."""


def tiny() -> Blueprint:
    """Two layers of 32, for tests and first steps.

    >>> tiny().hidden
    32
    """
    return Blueprint(hidden=32, layers=2)


def base() -> Blueprint:
    """Three layers of 96 for telephone audio: between `tiny` and `small`.

    >>> base().hidden
    96
    """
    return Blueprint(hidden=96)


def small() -> Blueprint:
    """Three layers of 192 for telephone audio: what a `Blueprint` is unless told otherwise.

    >>> small() == Blueprint()
    True
    """
    return Blueprint()


def deep_speech_2_deployed(*, causal: bool = False) -> Blueprint:
    """The deployed model of Deep Speech 2, with two strides of 2 so that a frame is 40 ms.

    Windows of 20 ms as in the paper, two convolutions over time and frequency, five GRU layers of
    2560 and a lookahead of 19 frames; 16 kHz, batch normalisation, so one bias per gate. The
    paper's 19 × 40 ms = 760 ms leave out the window and the convolutions.

    Args:
        causal: the context of the convolutions all on the left.

    Source: arXiv 1512.02595 §3.5 and §3.7.

    >>> latency = deep_speech_2_deployed().latency(19)
    >>> [(item.name, item.ms) for item in latency.items]  # doctest: +NORMALIZE_WHITESPACE
    [('window', 20.0), ('convolution 1', 50.0), ('convolution 2', 100.0), ('lookahead', 760.0)]
    >>> latency.worst_ms, deep_speech_2_deployed(causal=True).latency(19).worst_ms
    (930.0, 780.0)
    """
    return Blueprint(
        rate=16000,
        window_ms=20.0,
        mels=None,
        stack=1,
        convolutions=_convolutions(causal),
        project=False,
        hidden=2560,
        layers=5,
        biases=1,
        batch_norm=True,
        layer_norm=False,
        output_hidden=False,
        heads=(19,),
    )


def deep_speech_2_research(*, causal: bool = False) -> Blueprint:
    """The research model of Deep Speech 2: seven bidirectional layers, summed, with a shared `W`.

    Features and convolutions are those of the deployed model. The paper prints numbers of
    parameters rather than widths; seven plain RNN layers of 1760 have 65 million.

    Args:
        causal: the context of the convolutions all on the left.

    Source: arXiv 1512.02595 §3.

    >>> plan = deep_speech_2_research()
    >>> plan.latency(None).worst_ms
    inf
    """
    return Blueprint(
        rate=16000,
        window_ms=20.0,
        mels=None,
        stack=1,
        convolutions=_convolutions(causal),
        project=False,
        hidden=1760,
        layers=7,
        biases=1,
        bidirectional=True,
        merge="sum",
        share_input=True,
        batch_norm=True,
        layer_norm=False,
        output_hidden=False,
        heads=(),
    )


def _convolutions(causal: bool) -> tuple[ConvolutionShape, ...]:
    return tuple(
        ConvolutionShape(
            kernel=11, stride=2, channels=32, band_kernel=bands, band_stride=2, causal=causal
        )
        for bands in (41, 21)
    )


PRESETS: dict[Preset, Callable[[], Blueprint]] = {
    "tiny": tiny,
    "base": base,
    "small": small,
    "deep-speech-2-research": deep_speech_2_research,
    "deep-speech-2-deployed": deep_speech_2_deployed,
}
