"""Law 12: the laws can fail. A table of wrong layers, each with the laws that reject it.

The first law that a layer names is the first that catches it, in the order of the laws. The table
in `docs/laws.md` is made from this file by `python -m tests.laws.page --write`.
"""

import copy
import functools
from collections.abc import Callable
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture import laws
from nearfuture.budget import ReceptiveField
from nearfuture.laws import trial
from nearfuture.layers import (
    GRU,
    LSTM,
    AttentionMask,
    Bidirectional,
    Convolution,
    Lookahead,
    Pointwise,
    RotaryPositions,
    SelfAttention,
    SlidingMask,
    State,
    StreamingLayer,
)
from nearfuture.layers.ragged import mask
from nearfuture.layers.state import flatten

WrongLayer = Callable[[], StreamingLayer]
Currency = tuple[Tensor, Tensor]
Step = tuple[Tensor, Tensor, State]

WRONG_LAYERS: dict[str, tuple[WrongLayer, tuple[laws.Law, ...]]] = {}


def caught_by(*named: laws.Law) -> Callable[[WrongLayer], WrongLayer]:
    """Add a layer to the table, with the laws that reject it."""

    def added(layer: WrongLayer) -> WrongLayer:
        WRONG_LAYERS[layer.__name__] = layer, named
        return layer

    return added


class Frames(Pointwise):
    """What is right about most layers: two features in, the same two out."""

    def __init__(self) -> None:
        super().__init__(nn.Identity(), 2)


class Cell(GRU):
    """A GRU of the size that the layers have."""

    def __init__(self) -> None:
        super().__init__(2, 3)


# The future, the end and the company


@caught_by(laws.any_partition, laws.declared_is_measured)
class SignOfTheNextFrame(Frames):
    """A future of one bit: every frame is scaled by the sign of the next."""

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        x = mask(x, lengths)
        following = torch.cat([x[:, 1:], torch.zeros_like(x[:, :1])], dim=1)
        return mask(x * (1 + 0.1 * torch.sign(following)), lengths), lengths


@caught_by(laws.any_partition, laws.declared_is_measured)
class DividesByLength(Frames):
    """Divides by the length of the utterance, so that its end is in every frame."""

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        return mask(x, lengths) / lengths.clamp(min=1)[:, None, None], lengths


@caught_by(laws.any_partition, laws.declared_is_measured)
class DetachedMean(Frames):
    """Subtracts the mean of the utterance, detached: no gradient shows this look at the future."""

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        x = mask(x, lengths)
        mean = x.sum(dim=1, keepdim=True) / lengths.clamp(min=1)[:, None, None]
        return mask(x - mean.detach(), lengths), lengths


@caught_by(laws.any_partition, laws.rows_are_independent)
class MixesTheBatch(Frames):
    """Normalises over the rows of the batch."""

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        x = mask(x, lengths)
        return mask(x - x.mean(dim=0, keepdim=True), lengths), lengths


@caught_by(laws.rows_are_independent)
class ScalesByTheBatch(Frames):
    """Multiplies by the number of rows, streaming and offline alike."""

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        return mask(x, lengths) * len(x), lengths


@caught_by(laws.rows_are_independent, laws.padding_is_ignored)
class BackwardStartsOnPadding(Bidirectional):
    """Reverses the batch, not the rows: the backward direction starts on padding."""

    def __init__(self) -> None:
        super().__init__(Cell())

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        full = torch.full_like(lengths, x.shape[1])
        return mask(super().forward(mask(x, lengths), full)[0], lengths), lengths


@caught_by(laws.any_partition, laws.emission_schedule, laws.rows_are_independent)
class StreamsWhatCannotStream(Bidirectional):
    """Reads the whole sequence, but does not say so when a stream starts."""

    def __init__(self) -> None:
        super().__init__(Cell())

    def start(self, batch_size: int, **_: object) -> State:
        return torch.zeros(batch_size, 1)


# Chunks


@caught_by(laws.any_partition, laws.partition_free_state)
class WrongFromThreeFrames(Cell):
    """A step that is right for chunks of one or two frames only."""

    def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
        return super().step(x * 1.5 if x.shape[1] >= 3 else x, lengths, state)


@caught_by(laws.prefill_then_step)
class FastKernelForgets(Cell):
    """A fast kernel for 40 frames and more that does not hand over its state."""

    def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
        y, n, after = super().step(x, lengths, state)
        return y, n, torch.zeros_like(flatten(after)[0]) if x.shape[1] >= 40 else after


@caught_by(laws.any_partition)
class RefusesEmptyChunks(Frames):
    """Raises an error for a chunk without frames."""

    def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
        if not bool(lengths.any()):
            raise RuntimeError("no frames")
        return super().step(x, lengths, state)


@caught_by(laws.any_partition)
class WarmUpEntersTheState(Cell):
    """Starts a stream with a frame of zeros, which enters the recurrent state."""

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        if x.shape[1] == 0:
            return x.new_zeros(x.shape[0], 0, self.output_size), lengths
        h = x.new_zeros(x.shape[0], self.output_size)
        return mask(self.sequence(mask(x, lengths), h)[0], lengths), lengths

    def start(self, batch_size: int, *, device: object = None, dtype: object = None) -> State:
        h = super().start(batch_size, device=device, dtype=dtype)
        zeros = h.new_zeros(batch_size, 1, self.input_size)
        return super().step(zeros, torch.ones(batch_size, dtype=torch.int64), h)[2]


@caught_by(laws.any_partition, laws.partition_free_state, laws.rows_are_independent)
class InactiveRowsAdvance(Cell):
    """Rows without a frame run on padding."""

    def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
        y, _, after = super().step(mask(x, lengths), torch.full_like(lengths, x.shape[1]), state)
        return mask(y, lengths), lengths, after


@caught_by(laws.any_partition, laws.partition_free_state, laws.rows_are_independent)
class CellOfTheLstmRunsOn(LSTM):
    """Holds h for rows without a frame, but not c."""

    def __init__(self) -> None:
        super().__init__(2, 3)

    def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
        y, n, (h, _) = super().step(x, lengths, state)
        full = torch.full_like(lengths, x.shape[1])
        return y, n, (h, super().step(mask(x, lengths), full, state)[2][1])


@caught_by(laws.any_partition)
class RandomInEvalMode(Frames):
    """Drops values with the global random generator in eval mode."""

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        return F.dropout(mask(x, lengths), 0.5, training=True), lengths


# The state


@caught_by(laws.partition_free_state, laws.rows_are_independent)
class CountsItsChunks(Frames):
    """Keeps the number of steps in its state."""

    def start(self, batch_size: int, *, device: object = None, dtype: object = None) -> State:
        nothing = super().start(batch_size, device=device, dtype=dtype)
        return nothing, torch.zeros(batch_size, dtype=torch.int64)

    def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
        return *self(x, lengths), (state[0], state[1] + 1)

    def finish(self, state: State) -> Currency:
        return super().finish(state[0])


@caught_by(laws.partition_free_state)
class KeepsStaleFrames(Lookahead):
    """Leaves in its buffer what it has consumed, before those that count."""

    def __init__(self) -> None:
        super().__init__(2, 3)

    def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
        y, n, (frames, count) = super().step(x, lengths, state)
        stale = x.nan_to_num().sum(dim=1, keepdim=True).expand_as(frames)
        before = torch.arange(frames.shape[1]) < frames.shape[1] - count[:, None]
        moved = (lengths > 0)[:, None, None]
        return y, n, (torch.where(before[..., None] & moved, stale, frames), count)


@caught_by(laws.snapshot_round_trip)
class WritesIntoItsState(Cell):
    """Writes the new state into the old one, so that a snapshot changes with the stream."""

    def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
        y, n, after = super().step(x, lengths, state)
        return y, n, state.copy_(after.detach())


@caught_by(laws.rows_are_independent, laws.snapshot_round_trip, laws.reset_equals_new_stream)
class CountsInAnAttribute(Frames):
    """Adds to every frame its number, which it keeps in an attribute instead of the state."""

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        return mask(x + torch.arange(x.shape[1])[:, None], lengths), lengths

    def start(self, batch_size: int, *, device: object = None, dtype: object = None) -> State:
        self.begun = torch.zeros(batch_size, dtype=torch.int64)
        return super().start(batch_size, device=device, dtype=dtype)

    def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
        y, n = self(x, lengths)
        y = mask(y + self.begun[:, None, None], lengths)
        self.begun = self.begun + lengths
        return y, n, state


@caught_by(laws.reset_equals_new_stream)
class RemembersTheLastStream(Cell):
    """Begins a stream where the last one ended."""

    def start(self, batch_size: int, *, device: object = None, dtype: object = None) -> State:
        h = super().start(batch_size, device=device, dtype=dtype)
        last = getattr(self, "last", h)
        return last.clone() if last.shape == h.shape else h

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        return GRU.forward(self._without_memory(), x, lengths)

    def finish(self, state: State) -> Currency:
        self.last = state.detach()
        return super().finish(state)

    def _without_memory(self) -> GRU:
        vars(self).pop("last", None)
        return self


@caught_by(laws.reset_equals_new_stream)
class HandsOutOneTensor(Cell):
    """Every stream starts with the same tensor."""

    def start(self, batch_size: int, *, device: object = None, dtype: object = None) -> State:
        if getattr(self, "zeros", torch.empty(0)).shape[0] != batch_size:
            self.zeros = super().start(batch_size, device=device, dtype=dtype)
        return self.zeros


@caught_by(laws.reset_equals_new_stream)
class CountsItsStreamsInABuffer(Frames):
    """Changes a buffer in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("streams", torch.zeros((), dtype=torch.int64))

    def finish(self, state: State) -> Currency:
        self.streams += 1
        return super().finish(state)


# The tail and the schedule


@caught_by(laws.any_partition, laws.emission_schedule)
class ForgetsItsTail(Lookahead):
    """Resets before it flushes."""

    def __init__(self) -> None:
        super().__init__(2, 2)

    def finish(self, state: State) -> Currency:
        frames = state[0]
        return super().finish(self.start(frames.shape[0], dtype=frames.dtype))


@caught_by(laws.any_partition, laws.partition_free_state)
class TailOfTheLastChunk(Lookahead):
    """Finishes with a tail that depends on the size of the last chunk."""

    def __init__(self) -> None:
        super().__init__(2, 2)

    def start(self, batch_size: int, *, device: object = None, dtype: object = None) -> State:
        state = super().start(batch_size, device=device, dtype=dtype)
        return state, torch.zeros(batch_size, dtype=torch.int64)

    def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
        y, n, after = super().step(x, lengths, state[0])
        return y, n, (after, torch.where(lengths > 0, lengths, state[1]))

    def finish(self, state: State) -> Currency:
        inner, last = state
        y, n, _ = super().step(inner[0].new_zeros(len(last), 2, 2), torch.full_like(last, 2), inner)
        return torch.where((last > 1)[:, None, None], 2 * y, y), n


@caught_by(laws.emission_schedule, laws.declared_is_measured)
def lookahead_off_by_one() -> StreamingLayer:
    """Declares one frame of the future less than it reads."""
    layer = Lookahead(2, 3)
    layer.field = ReceptiveField(right=2)
    return layer


@caught_by(laws.emission_schedule)
def emits_too_late() -> StreamingLayer:
    """Waits for a frame that it does not look at and does not declare."""
    layer = Lookahead(2, 1)
    layer.weights[0].data[:, -1] = 0
    layer.field = ReceptiveField()
    return layer


@caught_by(laws.emission_schedule, laws.declared_is_measured)
def emits_too_early() -> StreamingLayer:
    """Declares to wait for a frame more than it waits for."""
    layer = Lookahead(2, 2)
    layer.field = ReceptiveField(right=3)
    return layer


@caught_by(laws.emission_schedule, laws.declared_is_measured)
def wrong_rate() -> StreamingLayer:
    """Declares a stride that is not its own."""
    layer = Convolution(2, 2, left=1, right=1, stride=2)
    layer.field = ReceptiveField(left=1, right=1, stride=3)
    return layer


@caught_by(laws.any_partition, laws.emission_schedule)
class RoundsTheLengthDown(Convolution):
    """Computes the length after a stride as ⌊n / stride⌋ instead of ⌈n / stride⌉."""

    def __init__(self) -> None:
        super().__init__(2, 2, left=1, right=1, stride=2)

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        y, _ = super().forward(x, lengths)
        return mask(y, lengths // 2), lengths // 2


# What is declared


@caught_by(laws.declared_is_measured)
def never_looks_that_far() -> StreamingLayer:
    """Declares a frame of the future whose weight is 0."""
    layer = Lookahead(2, 3)
    layer.weights[0].data[:, -1] = 0
    return layer


@caught_by(laws.declared_is_measured)
def left_too_small() -> StreamingLayer:
    """Declares one frame of the past less than it reads."""
    layer = Convolution(2, 2, left=3)
    layer.field = ReceptiveField(left=2)
    return layer


@caught_by(laws.emission_schedule, laws.declared_is_measured)
def counts_taps() -> StreamingLayer:
    """A dilated convolution that declares as many frames as it has taps."""
    layer = Convolution(2, 2, left=2, right=2, dilation=2)
    layer.field = ReceptiveField(left=1, right=1)
    return layer


@caught_by(laws.declared_is_measured)
def finite_memory() -> StreamingLayer:
    """A recurrent layer that declares to forget after five frames."""
    layer = Cell()
    layer.field = ReceptiveField(left=5)
    return layer


@caught_by(laws.any_partition, laws.declared_is_measured)
class PadsTheWrongSide(Convolution):
    """A causal convolution whose zeros stand at the end."""

    def __init__(self) -> None:
        super().__init__(2, 2, left=2)

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        frames = F.pad(mask(x, lengths), (0, 0, 0, self.left))
        y = self.slide(frames) if frames.shape[1] > self.left else frames[:, :0]
        return mask(y, lengths), lengths


# Attention


class Attention(SelfAttention):
    """Self-attention that looks two frames back and two ahead."""

    def __init__(self, *, mask: AttentionMask | None = None) -> None:
        super().__init__(2, 1, mask=mask or SlidingMask(left=2, right=2))


@caught_by(laws.any_partition, laws.declared_is_measured)
def attention_mask_off_by_one() -> StreamingLayer:
    """A causal mask that begins and ends one frame too late."""

    class OffByOne(SlidingMask):
        def allows(self, query: Tensor, key: Tensor) -> Tensor:
            return super().allows(query + 1, key)

    return Attention(mask=OffByOne(left=2))


@caught_by(laws.any_partition, laws.prefill_then_step)
class ForgetsOneKeyTooMany(Attention):
    """Keeps one key less than a frame that is still to come may see."""

    @property
    def _window(self) -> int:
        return super()._window - 1


@caught_by(laws.any_partition, laws.prefill_then_step)
class RingOfItsContext(Attention):
    """A ring of as many keys as one frame sees: a chunk overwrites what its first frames need."""

    def _emit(
        self, queries: Tensor, keys: Tensor, values: Tensor, wait: Tensor, seen: Tensor
    ) -> Tensor:
        chunk = keys.shape[1] - self._window
        held = seen.clamp(max=self._window + 1 - chunk)
        return super()._emit(queries, keys, values, wait, held)


@caught_by(laws.any_partition, laws.partition_free_state, laws.prefill_then_step)
class PositionsRestart(Attention):
    """Counts the positions of its queries and keys from the first frame of each chunk."""

    def _project(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = super()._project(x, lengths)
        angles = RotaryPositions().angles(0, x.shape[1], self.width, like=x)
        return self._turn(query, *angles), self._turn(key, *angles), value


@caught_by(laws.any_partition, laws.padding_is_ignored)
class SeesKeysOfPadding(Attention):
    """Attends to every frame in reach, whether it is one of the sequence or not."""

    def _attend(self, *tensors: Tensor) -> Tensor:
        *others, exists = tensors
        return super()._attend(*others, torch.ones_like(exists))


@caught_by(laws.any_partition)
class DropsItsRightContext(Attention):
    """At the end, what waits is computed without the frames after it."""

    def finish(self, state: State) -> Currency:
        blind = copy.copy(self)
        blind.mask = SlidingMask(left=2)
        return super(DropsItsRightContext, blind).finish(state)


# Padding


@caught_by(laws.any_partition, laws.padding_is_ignored)
class MultipliesByAMask(Frames):
    """NaN × 0 = NaN."""

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        inside = torch.arange(x.shape[1]) < lengths[:, None]
        return x * inside[..., None], lengths


@caught_by(laws.any_partition, laws.padding_is_ignored)
class LeavesItsBiasBehind(Pointwise):
    """Masks the input, but not the output, where its bias shows."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(2, 2), 2)

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        return self.module(mask(x, lengths)), lengths


@caught_by(laws.padding_is_ignored, laws.gradients_agree)
class FillsTooLate(Pointwise):
    """Masks after it computes: the outputs are right, the gradients of the weights NaN."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(2, 2), 2)

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        return mask(self.module(x), lengths), lengths


@caught_by(laws.padding_is_ignored)
class BatchNormOverPadding(Frames):
    """In train mode, statistics over the whole rectangle, padding included."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        x = mask(x, lengths)
        mean = self.mean
        if self.training and x.shape[1]:
            mean = x.mean(dim=(0, 1))
            self.mean = 0.9 * self.mean + 0.1 * mean.detach()
        return mask(x - mean, lengths), lengths


@caught_by(laws.padding_is_ignored)
class DropsByTheWidth(Frames):
    """In train mode, draws random numbers for the padding too, so that others fall on the rows."""

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        return F.dropout(mask(x, lengths), 0.5, self.training), lengths


# Gradients


@caught_by(laws.gradients_agree)
class DetachesItsState(Cell):
    """No gradient flows from one chunk to the one before."""

    def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
        y, n, after = super().step(x, lengths, state)
        return y, n, after.detach()


@caught_by(laws.gradients_agree)
class LearnsOfflineOnly(Pointwise):
    """Computes its steps with weights that are cut off from their gradient."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(2, 2), 2)

    def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
        weight, bias = self.module.weight.detach(), self.module.bias.detach()
        return mask(F.linear(mask(x, lengths), weight, bias), lengths), lengths, state


# Dtypes and devices


@caught_by(laws.any_dtype_and_device)
class UnregisteredChild(Frames):
    """Keeps a child in a plain list, and casts its weights when it needs them."""

    def __init__(self) -> None:
        super().__init__()
        self.children_of_mine = [nn.Linear(2, 2)]

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        weight = self.children_of_mine[0].weight.to(x)
        return F.linear(mask(x, lengths), weight), lengths


@caught_by(laws.any_partition, laws.any_dtype_and_device)
class UnregisteredCell(Frames):
    """Keeps a child in a plain list, where `to()` does not reach it."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = [nn.Linear(2, 2)]

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        return mask(self.cells[0](mask(x, lengths)), lengths), lengths


@caught_by(laws.any_dtype_and_device)
class CountsInFloats(Lookahead):
    """Keeps the count of its buffer's frames, and of all before, in the dtype of its weights."""

    def __init__(self) -> None:
        super().__init__(2, 1)

    def start(self, batch_size: int, *, device: object = None, dtype: object = None) -> State:
        frames, _ = super().start(batch_size, device=device, dtype=dtype)
        return frames, torch.zeros(batch_size, dtype=frames.dtype)

    def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
        frames, read = state
        now = read + lengths
        waiting = read.clamp(max=1).long()
        new = (now - read).long()  # 0 once the count stands still
        y, n, (frames, _) = super().step(x, new, (frames, waiting))
        return y, n, (frames, now.to(read.dtype))

    def finish(self, state: State) -> Currency:
        return super().finish((state[0], state[1].clamp(max=1).long()))


@caught_by(laws.any_dtype_and_device)
class CountsInShortIntegers(Frames):
    """Keeps a count of frames in int32."""

    def start(self, batch_size: int, *, device: object = None, dtype: object = None) -> State:
        nothing = super().start(batch_size, device=device, dtype=dtype)
        return nothing, torch.zeros(batch_size, dtype=torch.int32)

    def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
        return *self(x, lengths), (state[0], state[1] + lengths.int())

    def finish(self, state: State) -> Currency:
        return super().finish(state[0])


@caught_by(laws.any_partition, laws.any_dtype_and_device)
class StartsInFloat32(Lookahead):
    """Starts a stream with float32, whatever dtype is asked for."""

    def __init__(self) -> None:
        super().__init__(2, 2)

    def start(self, batch_size: int, *, device: object = None, dtype: object = None) -> State:
        return super().start(batch_size, device=device, dtype=torch.float32)


@caught_by(laws.any_partition, laws.any_dtype_and_device)
class AnswersInFloat32(Frames):
    """Gives float32, whatever dtype it is given."""

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        return mask(x, lengths).float(), lengths


@caught_by(laws.any_dtype_and_device)
class ComputesInFloat32(Frames):
    """Rounds float64 to float32 on the way and gives it back as float64."""

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        return torch.tanh(mask(x, lengths).float()).to(x.dtype), lengths


@caught_by(laws.any_dtype_and_device)
class ScalesByAFloat32Constant(Frames):
    """Multiplies by a tensor that is no buffer, so that bfloat16 comes out as float32."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.tensor([0.1, 0.2])

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        return mask(x, lengths) * self.scale, lengths


@caught_by(laws.any_dtype_and_device)
class AddsMoreThanFloat32Holds(Frames):
    """Masks with a number that is infinite in float32."""

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        inside = mask(torch.ones_like(x), lengths)
        return mask(mask(x, lengths) - 1e39 * (1 - inside), lengths), lengths


@caught_by(laws.any_dtype_and_device)
class SquaresFarFromZero(Frames):
    """Takes a variance as E[x²] - E[x]² in the dtype of its input, which cancels far from 0."""

    def forward(self, x: Tensor, lengths: Tensor) -> Currency:
        x = mask(x, lengths)
        variance = x.square().mean(-1, keepdim=True) - x.mean(-1, keepdim=True).square()
        return x + variance - x.mean(-1, keepdim=True), lengths


@functools.cache
def verdicts(name: str) -> dict[str, laws.LawBroken]:
    """What the laws say of a layer: all up to the first that it breaks, and those it names.

    The smallest case is searched for the first alone, which the page quotes. The laws that are not
    to catch it try their explicit cases.
    """
    layer, named = WRONG_LAYERS[name]
    said: dict[str, laws.LawBroken] = {}
    for law in laws.ALL:
        if law in named:
            broken = _broken_somewhere(law, layer) if said else verdict(law, layer)
        elif said:
            continue
        else:
            broken = verdict(law, layer, **_explicit(law))
        if broken:
            said[law.__name__] = broken
    return said


def verdict(law: laws.Law, layer: WrongLayer, **options: int) -> laws.LawBroken | None:
    try:
        law(layer, **options)
    except laws.LawBroken as broken:
        return broken
    return None


def _explicit(law: laws.Law) -> dict[str, int]:
    """No case drawn, where a law draws any."""
    return {} if law is laws.declared_is_measured else {"examples": 0}


def _broken_somewhere(law: laws.Law, layer: WrongLayer) -> laws.LawBroken | None:
    """The first explicit case that breaks the law, or what is drawn where there is none."""
    with mock.patch.object(trial, "_TO_SHRINK", 0):
        return verdict(law, layer, **_explicit(law)) or verdict(law, layer)
