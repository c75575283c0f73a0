"""The self-attention layers of a recogniser: their sizes, receptive field and cost."""

import math
from dataclasses import dataclass
from typing import Literal

from nearfuture.budget.check import positive
from nearfuture.budget.cost import Cost, convolution_cost, layer_norm_cost, linear_cost
from nearfuture.budget.field import ReceptiveField
from nearfuture.error import NearfutureError

Block = Literal["transformer", "conformer"]


@dataclass(frozen=True, kw_only=True)
class AttentionConfig:
    """The attention layers, which are all alike: Transformer or Conformer blocks.

    A frame sees its chunk, some chunks before it and some frames after it; the outputs of a chunk
    exist together. With `chunk=None` it sees the whole sequence, as in a bidirectional model.

    Args:
        block: "transformer" (Vaswani et al. 2017, norms first) or "conformer" (Gulati et al. 2020).
        hidden: width D of a frame.
        layers: how many blocks.
        attention_heads: parts of a frame that attend by themselves; they divide `hidden`.
        chunk: c, frames that are emitted together: the first waits for the c-1 behind it. None for
            the whole sequence.
        left_chunks: chunks of the past that a layer sees.
        right_context: frames after its chunk that a layer sees; it adds up over layers.
        expansion: width of the feed-forward networks, as a multiple of `hidden`.
        kernel: frames of a Conformer's depthwise convolution, causal where chunks are emitted;
            None in a Transformer, which has none.

    Raises:
        NearfutureError: for sizes that make no model, and for a context or a kernel without effect.

    >>> config = AttentionConfig()
    >>> config.field.emitted(3), config.field.emitted(4), config.field.right
    (0, 4, 3)
    """

    block: Block = "conformer"
    hidden: int = 96
    layers: int = 5
    attention_heads: int = 4
    chunk: int | None = 4
    left_chunks: int = 6
    right_context: int = 0
    expansion: int = 2
    kernel: int | None = 9

    def __post_init__(self) -> None:
        positive(
            hidden=self.hidden,
            layers=self.layers,
            attention_heads=self.attention_heads,
            expansion=self.expansion,
            chunk=1 if self.chunk is None else self.chunk,
            kernel=1 if self.kernel is None else self.kernel,
        )
        if self.block not in ("transformer", "conformer"):
            raise NearfutureError(
                f"`block` must be transformer or conformer, not {self.block!r}", parameter="block"
            )
        if (self.kernel is None) != (self.block == "transformer"):
            raise NearfutureError(
                f"a conformer has a convolution and a transformer none: `kernel={self.kernel}` "
                f"with `block={self.block}`",
                code="conflict",
                parameter="kernel",
            )
        if self.hidden % (2 * self.attention_heads):
            raise NearfutureError(
                f"{self.attention_heads} heads do not divide the {self.hidden} values of a frame "
                f"into parts of an even width, whose pairs rotary positions turn; choose `hidden` "
                f"as a multiple of {2 * self.attention_heads}",
                code="out_of_range",
                parameter="attention_heads",
            )
        for name in ("left_chunks", "right_context"):
            value = getattr(self, name)
            if value < 0:
                raise NearfutureError(
                    f"`{name}` must be 0 or more, not {value}", code="out_of_range", parameter=name
                )
            if self.chunk is None and value:
                raise NearfutureError(
                    f"`{name}={value}` has no effect where the whole sequence is seen; set it to "
                    f"0, or choose a `chunk`",
                    code="conflict",
                    parameter=name,
                )

    @property
    def bidirectional(self) -> bool:
        """Whether a frame sees the whole sequence."""
        return self.chunk is None

    @property
    def output_size(self) -> int:
        """The values of an output frame of each layer."""
        return self.hidden

    @property
    def attended(self) -> ReceptiveField:
        """What the attention of one block sees."""
        if self.chunk is None:
            return ReceptiveField(left=math.inf, right=math.inf)
        return ReceptiveField(
            left=self.left_chunks * self.chunk, right=self.right_context, block=self.chunk
        )

    @property
    def convolved(self) -> ReceptiveField:
        """What the convolution of one block sees: nothing but its frame, if there is none."""
        kernel = self.kernel or 1
        right = (kernel - 1) // 2 if self.bidirectional else 0
        return ReceptiveField(left=kernel - 1 - right, right=right)

    @property
    def field(self) -> ReceptiveField:
        """What all blocks together see."""
        field = ReceptiveField()
        for _ in range(self.layers):
            field = field.then(self.attended)
            if self.block == "conformer":
                field = field.then(self.convolved)
        return field

    def cost(self) -> Cost:
        """The cost of one block, its normalisations included.

        Scores of attention that sees a whole sequence are left out: they grow with it.
        """
        D, wide = self.hidden, self.expansion * self.hidden
        field = self.attended
        keys = 0 if self.bidirectional else int(field.left + field.block + field.right)
        feed_forward = layer_norm_cost(D) + linear_cost(D, wide) + linear_cost(wide, D)
        attention = layer_norm_cost(D) + attention_cost(D, keys)
        if self.kernel is None:
            return feed_forward + attention
        convolution = (
            layer_norm_cost(D)
            + linear_cost(D, 2 * D)
            + convolution_cost(D, D, self.kernel, groups=D)
            + layer_norm_cost(D)
            + linear_cost(D, D)
        )
        return feed_forward + attention + convolution + feed_forward + layer_norm_cost(D)


def attention_cost(size: int, keys: int) -> Cost:
    """The cost of self-attention: `4 D (D + 1)` parameters, and 4 D FLOPs more for each key.

    Queries, keys, values and outputs are a matrix and a bias each; a score is 2 D FLOPs over all
    heads, and so is its part of the output.

    Args:
        size: values of a frame, D.
        keys: frames that a frame sees.

    Raises:
        NearfutureError: for a size below 1.

    >>> attention_cost(96, keys=28)
    Cost(parameters=37248, flops_per_frame=84480)
    """
    positive(size=size)
    product = linear_cost(size, size).times(4)
    return Cost(
        parameters=4 * product.parameters,
        flops_per_frame=product.flops_per_frame + 4 * size * keys,
    )
