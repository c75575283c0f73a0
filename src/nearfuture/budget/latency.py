"""Algorithmic latency in milliseconds, itemised by the layers that an output waits for.

Compute time is no part of it: this is what remains on an infinitely fast machine.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nearfuture.budget.check import positive
from nearfuture.budget.field import ReceptiveField
from nearfuture.error import NearfutureError


@dataclass(frozen=True)
class LatencyItem:
    """One cause of latency.

    Args:
        name: the layer or buffer that waits.
        ms: how long, in the worst case.
        early_ms: how much sooner it is over on average; 0 for a fixed delay.

    >>> LatencyItem("quantum wait", 40.0, early_ms=20.0).mean_ms
    20.0
    """

    name: str
    ms: float
    early_ms: float = 0.0

    @property
    def mean_ms(self) -> float:
        """The wait on average, in ms."""
        return self.ms - self.early_ms


@dataclass(frozen=True)
class Latency:
    """The time from the audio of an output's own frame to the output, in ms, itemised.

    Args:
        items: the causes; they add up.
        frame_ms: the audio that one output frame stands for, in ms.

    >>> latency = Latency((LatencyItem("window", 25.0), LatencyItem("lookahead", 320.0)), 40.0)
    >>> latency.worst_ms, latency.mean_ms
    (345.0, 325.0)
    """

    items: tuple[LatencyItem, ...]
    frame_ms: float = 0.0

    @property
    def worst_ms(self) -> float:
        """The promise: ms from the *start* of the audio of a frame until its output can exist."""
        return math.fsum(item.ms for item in self.items)

    @property
    def mean_ms(self) -> float:
        """The latency from the *centre* of the frame, with the average of waits that vary."""
        return math.fsum(item.mean_ms for item in self.items) - self.frame_ms / 2

    def within(self, utterance_ms: float) -> float:
        """The worst case, in ms, in an utterance of a given length: `min(worst, utterance)`.

        When an utterance has ended, nothing waits any longer. So a lookahead costs a constant,
        and a layer that reads the whole sequence costs the utterance's length (and then the
        computation of its backward pass, which nobody could start before).

        >>> def wait(right):
        ...     link = ReceptiveField(right=right)
        ...     return algorithmic_latency([("layer", link)], rate=25)
        >>> [wait(19).within(ms) for ms in (500, 1000, 5000, 60_000)]
        [500, 800.0, 800.0, 800.0]
        >>> [wait(math.inf).within(ms) for ms in (500, 1000, 5000, 60_000)]
        [500, 1000, 5000, 60000]
        """
        return min(self.worst_ms, utterance_ms)


def algorithmic_latency(
    links: Sequence[tuple[str, ReceptiveField]],
    *,
    rate: int,
    resampler_ms: float = 0.0,
    quantum_wait_ms: float = 0.0,
) -> Latency:
    """Itemise how long an output of a chain of layers waits for its future.

    An output of frame `t` needs the samples up to `t · Π strides + Σ_i right_i · Π_{j<i} stride_j`;
    counted from the start of sample `t · Π strides` that is one sample more. Groups (`block` > 1)
    are an item of their own: the first output of a group waits for the last one's frame.

    Args:
        links: the layers in order, each a name and its receptive field.
        rate: input frames per second of the first link: samples, if it is the features.
        resampler_ms: the right context of the resampler before them.
        quantum_wait_ms: the longest that finished audio waits for its quantum to fill.

    Returns:
        The latency; causes that cost nothing are left out. A link with `right = inf` makes it
        infinite: it then grows with the utterance, see `Latency.within`.

    Raises:
        NearfutureError: without links, for a rate below 1, or for a negative wait.

    Source: Deep Speech 2 (arXiv 1512.02595) §3.7 and eq. (11) for the lookahead. Its "19 frames"
    are 760 ms of lookahead alone; the whole promise includes the window and the convolutions.

    With windows of 25 ms every 10 ms, stacked by 4, and a lookahead of 0, 4, 8 or 19 frames:

    >>> window = ("window", ReceptiveField(right=199, stride=80, padded=False))
    >>> stack = ("stacking", ReceptiveField(right=3, stride=4, padded=False))
    >>> def head(frames):
    ...     return algorithmic_latency(
    ...         [window, stack, ("lookahead", ReceptiveField(right=frames))], rate=8000
    ...     )
    >>> [head(frames).worst_ms for frames in (0, 4, 8, 19)]
    [55.0, 215.0, 375.0, 815.0]
    >>> [(item.name, item.ms) for item in head(8).items]
    [('window', 25.0), ('stacking', 30.0), ('lookahead', 320.0)]

    Deep Speech 2's convolutions over frames of 10 ms (11 frames, "same" padding, strides of 2):

    >>> frame = ("frame", ReceptiveField())
    >>> convolution = ReceptiveField(left=5, right=5, stride=2)
    >>> three = [frame, ("first", convolution), ("second", convolution), ("third", convolution)]
    >>> [item.ms for item in algorithmic_latency(three, rate=100).items]
    [10.0, 50.0, 100.0, 200.0]
    """
    if not links:
        raise NearfutureError("a latency needs at least one link", parameter="links")
    positive(rate=rate)
    for name, ms in (("resampler_ms", resampler_ms), ("quantum_wait_ms", quantum_wait_ms)):
        if not 0 <= ms < math.inf:
            raise NearfutureError(
                f"`{name}` must be 0 or more and finite, not {ms}",
                code="out_of_range",
                parameter=name,
            )
    items = [LatencyItem("resampler", resampler_ms)]
    grouped, stride, reach = [], 1, 1.0  # the first sample lasts until it is over
    for name, field in links:
        for link in field.chain or (field,):
            reach += link.right * stride
            stride *= link.stride
            grouped += [name] if link.block > 1 and name not in grouped else []
        items.append(LatencyItem(name, reach * 1000 / rate))
        reach = 0.0
    if grouped:
        name = f"block wait ({', '.join(grouped)})"
        items.append(_block_wait(name, [field for _, field in links], 1000 / rate))
    items.append(LatencyItem("quantum wait", quantum_wait_ms, early_ms=quantum_wait_ms / 2))
    return Latency(tuple(item for item in items if item.ms > 0), stride * 1000 / rate)


def _block_wait(name: str, fields: Sequence[ReceptiveField], frame_ms: float) -> LatencyItem:
    """The wait that groups add to a chain, at most and on average over one period."""
    chain = [link for field in fields for link in (field.chain or (field,))]
    composed = ReceptiveField()
    reach, period = 0.0, 1
    for link in chain:
        reach += link.right * composed.stride
        period = math.lcm(period, link.block)
        composed = composed.then(link)
    if math.isinf(reach):
        return LatencyItem(name, 0.0)  # swallowed by a link that waits for the end anyway
    waits = [composed.needed(t) - 1 - t * composed.stride - reach for t in range(period)]
    worst, mean = max(waits), math.fsum(waits) / period
    return LatencyItem(name, worst * frame_ms, early_ms=(worst - mean) * frame_ms)
