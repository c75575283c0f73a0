"""Which input frames an output needs, and therefore when it can exist.

Everything here counts in frames of the layer's own input; milliseconds come later, in `latency`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from nearfuture.budget.check import positive
from nearfuture.error import NearfutureError


@dataclass(frozen=True, kw_only=True)
class ReceptiveField:
    """The input frames that one output of a layer depends on, and when outputs appear.

    Output `t` looks at input frames `t * stride - left … t * stride + right`; with `block` > 1
    outputs come in groups of `block`, and `left` and `right` count from the first and the last
    frame of the group.

    * padded layers (frames beyond the ends count as zero):
      `emitted(n) = max(0, ⌊(n - 1 - right) / stride⌋ + 1)`, `total(n) = ⌈n / stride⌉`;
    * complete windows (`padded=False`, features): the window starts at its frame (`left = 0`),
      `emitted = total`, and the frame that lacks a part of its window never exists;
    * blocks: `emitted(n) = block · ⌊(n - right) / block⌋`, `total(n) = n`;
    * `right = inf` (bidirectional): `emitted = 0` until the stream has closed.

    Args:
        left: frames of the past an output needs besides the current one; may be `inf`.
        right: frames of the future; may be `inf`.
        stride: input frames per output frame.
        block: outputs that appear together.
        padded: False where a window must be complete.
        chain: for a composition, its links in order; use `then` to make one.

    Raises:
        NearfutureError: for a reach that is negative or not a whole number of frames, a stride or
            a block below one, blocks in a layer that also strides, or a complete window that does
            not start at its own frame or never ends.

    >>> lookahead = ReceptiveField(left=0, right=8)
    >>> lookahead.emitted(8), lookahead.emitted(9), lookahead.total(9)
    (0, 1, 9)
    >>> convolution = ReceptiveField(left=0, right=2, stride=2, padded=False)
    >>> twice = convolution.then(convolution)
    >>> [twice.total(n) for n in (24, 40, 60, 100)]
    [5, 9, 14, 24]
    """

    left: float = 0
    right: float = 0
    stride: int = 1
    block: int = 1
    padded: bool = True
    chain: tuple[ReceptiveField, ...] = ()

    def __post_init__(self) -> None:
        for side, reach in (("left", self.left), ("right", self.right)):
            if not (reach >= 0 and (math.isinf(reach) or reach == int(reach))):
                raise NearfutureError(
                    f"`{side}` must be 0 or more whole frames, or inf, not {reach}",
                    code="out_of_range",
                    parameter=side,
                )
        positive(stride=self.stride, block=self.block)
        if self.chain:
            return
        if self.block > 1 and (self.stride > 1 or not self.padded):
            raise NearfutureError(
                "a layer that emits in blocks has stride 1 and is padded",
                code="conflict",
                parameter="block",
            )
        if not self.padded and (self.left > 0 or math.isinf(self.right)):
            raise NearfutureError(
                f"a complete window starts at its own frame and ends, so left=0 and right is "
                f"finite, not left={self.left}, right={self.right}; count all of it in `right`",
                code="conflict",
                parameter="padded",
            )

    def emitted(self, n: int) -> int:
        """The number of outputs after `n` input frames while the stream is open."""
        if self.chain:
            for link in self.chain:
                n = link.emitted(n)
            return n
        if math.isinf(self.right):
            return 0
        right = int(self.right)
        if self.block > 1:
            return max(0, self.block * ((n - right) // self.block))
        return max(0, (n - 1 - right) // self.stride + 1)

    def total(self, n: int) -> int:
        """The number of outputs once the stream has closed after `n` input frames."""
        if self.chain:
            for link in self.chain:
                n = link.total(n)
            return n
        if self.padded:
            return -(-n // self.stride)
        return self.emitted(n)

    def needed(self, t: int) -> float:
        """The number of input frames after which output `t` exists in an open stream.

        The inverse of `emitted`: the smallest `n` with `emitted(n) > t`; `inf` if there is none.

        >>> ReceptiveField(right=199, stride=80, padded=False).needed(1)
        280
        >>> ReceptiveField(block=4).needed(0)
        4
        """
        if math.isinf(self.right):
            return math.inf
        return _newest(self.chain or (self,), t) + 1

    def then(self, following: ReceptiveField) -> ReceptiveField:
        """The field of this layer followed by another, in this layer's input frames.

        `left` and `right` add up, the following layer's reach weighing `stride` frames each; the
        wait for a group to fill counts as reach, as the worst member of the group sees it.

        >>> two = ReceptiveField(right=19).then(ReceptiveField(right=19))
        >>> two.right
        38
        """
        links = (self.chain or (self,)) + (following.chain or (following,))
        stride = self.stride * following.stride
        # Groups make the reach depend on the output; it repeats after as many as all groups share.
        # Of outputs that share a window, the last reaches farthest back, the first farthest ahead.
        period = math.lcm(*(link.block for link in links))
        left: float = math.inf
        right: float = math.inf
        if not any(math.isinf(link.left) for link in links):
            begun = _runs(partial(_oldest, links), period)
            last = (t - 1 for t in (*begun[1:], period))
            left = max(t * stride - _oldest(links, t) for t in last)
        if not any(math.isinf(link.right) for link in links):
            begun = _runs(partial(_newest, links), period)
            right = max(_newest(links, t) - t * stride for t in begun)
        return ReceptiveField(
            left=left,
            right=right,
            stride=stride,
            padded=all(link.padded for link in links),
            chain=links,
        )


def _runs(value: Callable[[int], int], period: int) -> list[int]:
    """Where runs of equal values begin, for t from 0 to before `period`; values do not fall."""
    begun = [0]
    last = value(period - 1)
    while (now := value(begun[-1])) != last:
        differs = range(begun[-1], period)
        begun.append(differs[bisect_right(differs, now, key=value)])
    return begun


def _newest(links: tuple[ReceptiveField, ...], t: int) -> int:
    """The last input frame that output `t` of the composition waits for."""
    for link in reversed(links):
        last = t // link.block * link.block + link.block - 1
        t = last * link.stride + int(link.right)
    return t


def _oldest(links: tuple[ReceptiveField, ...], t: int) -> int:
    """The first input frame that output `t` of the composition looks at; negative in padding."""
    for link in reversed(links):
        t = t // link.block * link.block * link.stride - int(link.left)
    return t
