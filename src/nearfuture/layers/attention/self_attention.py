"""Self-attention over a bounded window, exact in chunks.

Method: (1) a step appends the keys and values of its chunk to those of the last `M` frames,
`M = left + c - 1 + right`, and looks at all of them before it forgets any; (2) queries wait until
their block and its right context have arrived; (3) frames are counted from the first waiting query,
which begins a block, so that no number grows with the stream.

Example: chunks of 2 frames, 1 chunk to the left, `M = 3`. After 5 frames the state holds the keys
of frames 2, 3, 4 and the query of frame 4. Frames 5 and 6 arrive: there are keys of frames 2 … 6,
the queries of 4 and 5 see 2 … 5, that of 6 waits. A ring of 3 would have lost frame 2, which 4
still has to see.

Shapes: `B` batch, `Q` queries, `N` keys, `C` frames of a chunk, `D` features, `H` heads.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture.error import NearfutureError, NotStreamable
from nearfuture.layers.attention.mask import AttentionMask
from nearfuture.layers.attention.positions import (
    RelativePositions,
    RotaryPositions,
    relative_bias,
    turn,
)
from nearfuture.layers.contract import StreamingLayer
from nearfuture.layers.ragged import drop, join, mask, newest
from nearfuture.layers.state import Device, DType, State, flatten

Positions: TypeAlias = "RotaryPositions | RelativePositions | None"

_SEGMENT = 512
"""Queries that `forward` computes at once where the window is bounded: an hour fits into memory."""


class SelfAttention(StreamingLayer):
    """Scaled dot-product attention of a sequence to itself, in several heads.

    `y_t = W_o ⊕_h Σ_s softmax_s(q_t·k_s / √d) v_s` over the frames `s` that the mask allows
    (Vaswani et al. 2017, eq. 1). Where the mask bounds the window it streams: the state holds the
    keys and values of `left + block - 1 + right` frames and the queries that wait, whatever the
    chunks. A frame that may not be seen has no influence, whatever it holds (NaN included).

    Args:
        dim: D, features in and out.
        heads: H, which divides `dim`.
        mask: what a frame looks at.
        positions: None (a set of frames without order), `RotaryPositions` or `RelativePositions`.
        bias: biases in all projections.

    Raises:
        NearfutureError: where the heads do not divide `dim`, or rotary positions meet heads of an
            odd width.
        NotStreamable: from `start`, `step` and `finish` where the mask has no bound; it names those
            that have one.

    >>> from nearfuture.layers import ChunkedMask
    >>> layer = SelfAttention(4, heads=2, mask=ChunkedMask(chunk=3, left_chunks=2))
    >>> layer.field.left, layer.field.right, [layer.field.emitted(n) for n in (2, 3, 7)]
    (6, 0, [0, 3, 6])
    >>> y, n, state = layer.step(torch.zeros(1, 7, 4), torch.tensor([7]), layer.start(1))
    >>> n.item(), layer.finish(state)[1].item()
    (6, 1)
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        mask: AttentionMask,
        positions: Positions = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if heads < 1 or dim < 1 or dim % heads:
            raise NearfutureError(
                f"`heads` must divide the {dim} features into equal parts, and {heads} does not",
                parameter="heads",
            )
        if positions is not None and not isinstance(positions, RotaryPositions | RelativePositions):
            raise NearfutureError(
                f"`positions` are RotaryPositions(), RelativePositions() or None, not "
                f"{positions!r:.60}",
                parameter="positions",
            )
        if isinstance(positions, RotaryPositions) and dim // heads % 2:
            raise NearfutureError(
                f"rotary positions turn pairs of features, and a head has {dim // heads}: choose "
                f"`dim` and `heads` so that dim / heads is even",
                parameter="positions",
            )
        self.input_size = self.output_size = dim
        self.heads, self.width = heads, dim // heads
        self.positions = positions
        self.projection = nn.Linear(dim, 3 * dim, bias=bias)
        """W_q, W_k and W_v, one above the other."""
        self.output = nn.Linear(dim, dim, bias=bias)
        self._set_mask(mask)
        self.distances: nn.Parameter | None = None
        if isinstance(positions, RelativePositions):
            self.distances = nn.Parameter(torch.empty(2 * positions.distance + 1, heads))
        self.reset_parameters()

    def _set_mask(self, mask: AttentionMask) -> None:
        if not isinstance(mask, AttentionMask):
            raise NearfutureError(
                f"`mask` is a FullMask, CausalMask, SlidingMask or ChunkedMask, not {mask!r:.60}",
                parameter="mask",
            )
        self.mask, self.field = mask, mask.field
        self.block = self.field.block

    def reset_parameters(self) -> None:
        """As `nn.MultiheadAttention`: Xavier, biases of 0; distances begin almost equal."""
        nn.init.xavier_uniform_(self.projection.weight)
        self.output.reset_parameters()
        for part in (self.projection, self.output):
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        if self.distances is not None:
            nn.init.normal_(self.distances, std=0.02)

    def at(self, mask: AttentionMask) -> SelfAttention:
        """The layer with another mask, sharing its weights with this one."""
        other = copy.copy(self)
        other._set_mask(mask)
        return other

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        query, key, value = self._project(x, lengths)
        pieces = [self._segment(query, key, value, lengths, *ends) for ends in self._segments(x)]
        y = torch.cat(pieces, dim=1) if len(pieces) > 1 else pieces[0]
        return mask(self.output(y), lengths), lengths

    def _segments(self, x: Tensor) -> Sequence[tuple[int, int]]:
        """First and last frame of the parts that `forward` computes at once."""
        frames = x.shape[1]
        reach = self.field.left + self.field.right
        if math.isinf(reach) or torch.compiler.is_compiling() or frames <= _SEGMENT:
            return [(0, frames)]
        size = -(-_SEGMENT // self.block) * self.block
        return [(begin, min(frames, begin + size)) for begin in range(0, frames, size)]

    def _segment(
        self, query: Tensor, key: Tensor, value: Tensor, lengths: Tensor, begin: int, end: int
    ) -> Tensor:
        """Queries `begin … end`, a whole number of blocks from the first; frames count from it."""
        first = 0
        # What is whole is left as it is: to cut it would fix the number of frames in an export.
        if begin or end != key.shape[1]:
            first = int(max(0, begin - self.field.left))
            last = int(min(key.shape[1], end + self.block - 1 + self.field.right))
            query, key, value = query[:, begin:end], key[:, first:last], value[:, first:last]
        if isinstance(self.positions, RotaryPositions):
            query = self._turn(query, *self._angles(0, query))
            key = self._turn(key, *self._angles(first - begin, key))
        at = torch.arange(query.shape[1], device=key.device)[None]
        frame = torch.arange(key.shape[1], device=key.device)[None] + (first - begin)
        exists = frame < lengths[:, None] - begin
        return self._attend(query, key, value, at, frame, exists)

    def start(self, batch_size: int, *, device: Device = None, dtype: DType = None) -> State:
        self._refuse_without_bound()
        D = self.input_size
        zeros = self.new_zeros(batch_size, 0, D, device=device, dtype=dtype)
        none = torch.zeros(batch_size, dtype=torch.int64, device=zeros.device)
        queries = zeros.new_zeros(batch_size, self._waiting, D)
        keys, values = (zeros.new_zeros(batch_size, self._window, D) for _ in range(2))
        return queries, none, keys, values, none.clone()

    @property
    def _waiting(self) -> int:
        """Queries that may have to wait: a block but its last frame, and its right context."""
        return self.block - 1 + int(self.field.right)

    @property
    def _window(self) -> int:
        """M, the frames that a query which is still to come may see."""
        return int(self.field.left) + self._waiting

    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        self._refuse_without_bound()
        waiting, wait, keys, values, seen = flatten(state)
        if x.shape[1] == 0:
            return *self.no_output(waiting), state
        query, key, value = self._project(x, lengths)
        queries, count = join(waiting, wait, query, lengths)
        keys = torch.cat([keys, key], dim=1)
        values = torch.cat([values, value], dim=1)
        emitted = (count - int(self.field.right)).clamp(min=0) // self.block * self.block
        # C frames complete no more blocks than C single ones begin.
        width = -(-x.shape[1] // self.block) * self.block
        y = self._emit(queries[:, :width], keys, values, wait, seen)
        waiting, wait = drop(queries, count, emitted, self._waiting)
        keys, values = (newest(kept, lengths, self._window) for kept in (keys, values))
        seen = (seen + lengths).clamp(max=self._window)
        return mask(y, emitted), emitted, (waiting, wait, keys, values, seen)

    def finish(self, state: State) -> tuple[Tensor, Tensor]:
        self._refuse_without_bound()
        waiting, wait, keys, values, seen = flatten(state)
        if self._waiting == 0:
            return self.no_output(waiting)
        y = self._emit(waiting, keys, values, wait, seen)
        return mask(y, wait), wait

    def _emit(
        self, queries: Tensor, keys: Tensor, values: Tensor, wait: Tensor, seen: Tensor
    ) -> Tensor:
        """Outputs of the first waiting queries; the window stands before the chunk's own keys.

        What lies past a row's frames in the chunk is not seen by a query that is emitted: all that
        its mask allows has arrived. At the end, nothing lies there.
        """
        at = torch.arange(queries.shape[1], device=keys.device)[None]
        slot = torch.arange(keys.shape[1], device=keys.device)[None] - self._window
        if isinstance(self.positions, RotaryPositions):
            # Keys stand in the same place in every row; queries that wait stand before the chunk.
            keys = self._turn(keys, *self._angles(-self._window, keys))
            table = self._angles(-self._waiting, queries, self._waiting + queries.shape[1])
            row = at - wait[:, None] + self._waiting
            queries = self._turn(queries, *(F.embedding(row, part) for part in table))
        exists = slot >= -seen[:, None]
        y = self._attend(queries, keys, values, at, slot + wait[:, None], exists)
        projected: Tensor = self.output(y)
        return projected

    def _project(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, (B, T, D) each; finite in padding."""
        query, key, value = self.projection(mask(x, lengths)).chunk(3, dim=-1)
        return query, key, value

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        at: Tensor,
        frame: Tensor,
        exists: Tensor,
    ) -> Tensor:
        """Attention of queries to keys: (B, Q, D) and (B, N, D) → (B, Q, D).

        Args:
            query: of the frames `at`, which count from the first frame of a block.
            key: of the frames `frame`, counted likewise.
            value: of the same.
            at: (1 or B, Q) int64.
            frame: (1 or B, N) int64.
            exists: (B, N), false where a key is no frame of the sequence.
        """
        allowed = self.mask.allows(at[:, :, None], frame[:, None]) & exists[:, None]
        q, k, v = (self._split(part) for part in (query, key, value))
        scores = q @ k.transpose(-1, -2) * self.width**-0.5
        if self.distances is not None:
            distance = frame[:, None] - at[:, :, None]
            scores = scores + relative_bias(self.distances, distance)
        # The least number, not -inf: a query of padding may see nothing at all.
        least = torch.finfo(scores.dtype).min
        weights = torch.where(allowed[:, None], scores, least).softmax(dim=-1)
        # 0 · NaN is NaN: a value that may not be seen is left out, not only weighed with 0.
        y = weights @ torch.where(v.isfinite(), v, 0.0)
        broken = torch.where(value.isfinite(), 0.0, math.nan).sum(-1)
        seen = torch.where(allowed, broken[:, None], 0.0).sum(-1, keepdim=True)
        return y.transpose(1, 2).flatten(2) + seen.to(y.dtype)

    def _angles(self, first: int, x: Tensor, count: int | None = None) -> tuple[Tensor, Tensor]:
        assert isinstance(self.positions, RotaryPositions)
        count = x.shape[1] if count is None else count
        return self.positions.angles(first, count, self.width, like=x)

    def _turn(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """(B, N, D) with every head turned by angles (1 or B, N, d/2)."""
        heads = x.reshape(*x.shape[:2], self.heads, self.width)
        return turn(heads, cos[..., None, :], sin[..., None, :]).flatten(-2)

    def _split(self, x: Tensor) -> Tensor:
        """(B, N, D) → (B, H, N, d)."""
        return x.reshape(*x.shape[:2], self.heads, self.width).transpose(1, 2)

    def _refuse_without_bound(self) -> None:
        why = self.mask._unstreamable()
        if why:
            raise NotStreamable(
                f"SelfAttention({self.input_size}, heads={self.heads}, mask={self.mask}) cannot "
                f"stream: {why}"
            )
