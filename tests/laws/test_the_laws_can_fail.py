"""Law 12: a zoo of wrong layers, each rejected by the law that should catch it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from nearfuture import laws
from nearfuture.budget import ReceptiveField
from nearfuture.laws import LawBroken
from nearfuture.layers import GRU, Bidirectional, Convolution, Lookahead, Pointwise, State
from nearfuture.layers.ragged import mask


class SignOfTheNextFrame(Pointwise):
    """A future of one bit."""

    def __init__(self) -> None:
        super().__init__(nn.Identity(), 2)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = mask(x, lengths)
        following = torch.cat([x[:, 1:], torch.zeros_like(x[:, :1])], dim=1)
        return mask(x * (1 + 0.1 * torch.sign(following)), lengths), lengths


class DividesByLength(Pointwise):
    """The end of the utterance is in every frame."""

    def __init__(self) -> None:
        super().__init__(nn.Identity(), 2)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return mask(x, lengths) / lengths.clamp(min=1)[:, None, None], lengths


class DetachedMean(Pointwise):
    """No gradient shows this look at the future."""

    def __init__(self) -> None:
        super().__init__(nn.Identity(), 2)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = mask(x, lengths)
        mean = x.sum(dim=1, keepdim=True) / lengths.clamp(min=1)[:, None, None]
        return mask(x - mean.detach(), lengths), lengths


class WrongFromThreeFrames(GRU):
    """Right for chunks of one or two."""

    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        if x.shape[1] >= 3:
            x = x * 1.5
        return super().step(x, lengths, state)


class ForgetsItsTail(Lookahead):
    """Resets before it flushes."""

    def finish(self, state: State) -> tuple[Tensor, Tensor]:
        frames = state[0]
        return super().finish(self.start(frames.shape[0], dtype=frames.dtype))


class WarmUpEntersTheState(GRU):
    """A frame of zeros before the first one, when streaming."""

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        if x.shape[1] == 0:
            return x.new_zeros(x.shape[0], 0, self.output_size), lengths
        h = x.new_zeros(x.shape[0], self.output_size)
        return mask(self.sequence(mask(x, lengths), h)[0], lengths), lengths

    def start(self, batch_size: int, *, device: object = None, dtype: object = None) -> State:
        h = super().start(batch_size, device=device, dtype=dtype)  # type: ignore[arg-type]
        zeros = h.new_zeros(batch_size, 1, self.input_size)
        return super().step(zeros, torch.ones(batch_size, dtype=torch.int64), h)[2]


class WritesIntoItsState(GRU):
    """An aliased snapshot: the old state changes with the new one."""

    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        y, n, after = super().step(x, lengths, state)
        assert isinstance(state, Tensor)
        state.copy_(after)
        return y, n, state


class BackwardStartsOnPadding(Bidirectional):
    """Reverses the batch, not the rows."""

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        full = torch.full_like(lengths, x.shape[1])
        y = super().forward(mask(x, lengths), full)[0]
        return mask(y, lengths), lengths


class MultipliesByAMask(Pointwise):
    """NaN × 0 = NaN."""

    def __init__(self) -> None:
        super().__init__(nn.Identity(), 2)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        inside = torch.arange(x.shape[1]) < lengths[:, None]
        return x * inside[..., None], lengths


class MixesTheBatch(Pointwise):
    """Normalises over the rows."""

    def __init__(self) -> None:
        super().__init__(nn.Identity(), 2)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = mask(x, lengths)
        return mask(x - x.mean(dim=0, keepdim=True), lengths), lengths


def off_by_one() -> Lookahead:
    """Declares one frame less than it reads."""
    layer = Lookahead(2, 3)
    layer.field = ReceptiveField(right=2)
    return layer


def never_looks_that_far() -> Lookahead:
    """Declares a frame that it never reads."""
    layer = Lookahead(2, 3)
    layer.weights[0].data[:, -1] = 0
    return layer


def wrong_length() -> Convolution:
    """A rate that is not the one it has."""
    layer = Convolution(2, 2, left=1, right=1, stride=2)
    layer.field = ReceptiveField(left=1, right=1, stride=3)
    return layer


ZOO: list[tuple[Callable, Callable, str]] = [
    (SignOfTheNextFrame, laws.declared_is_measured, "looks at input frame 1"),
    (SignOfTheNextFrame, laws.any_partition, "in chunks of"),
    (DividesByLength, laws.declared_is_measured, "looks at input frame"),
    (DividesByLength, laws.any_partition, r"in chunks of \[1, 1\]"),
    (DetachedMean, laws.declared_is_measured, "looks at input frame"),
    (lambda: WrongFromThreeFrames(2, 3), laws.any_partition, r"in chunks of \[3\] frames, row 0"),
    (lambda: WrongFromThreeFrames(2, 3), laws.partition_free_state, "tensor 0 of the state"),
    (lambda: ForgetsItsTail(2, 2), laws.any_partition, r"in chunks of \[1\] frames"),
    (lambda: ForgetsItsTail(2, 2), laws.emission_schedule, "1 frames in single frames and finish"),
    (lambda: WarmUpEntersTheState(2, 3), laws.any_partition, r"in chunks of \[1\] frames"),
    (lambda: WritesIntoItsState(2, 3), laws.snapshot_round_trip, "step writes into the state"),
    (lambda: BackwardStartsOnPadding(GRU(2, 3)), laws.padding_is_nothing, "more frames of padding"),
    (MultipliesByAMask, laws.padding_is_nothing, "instead of 0"),
    (MixesTheBatch, laws.rows_are_strangers, "alone"),
    (off_by_one, laws.declared_is_measured, "output 0 looks at input frame 3, but may look at 0 …"),
    (off_by_one, laws.emission_schedule, "after 3 frames in single frames, 0 outputs instead of 1"),
    (never_looks_that_far, laws.declared_is_measured, "does not look at input frame 3, the right"),
    (wrong_length, laws.emission_schedule, "forward of 3 frames, 2 outputs instead of 1"),
]


@pytest.mark.parametrize(
    ("animal", "law", "message"),
    ZOO,
    ids=[f"{getattr(a, '__name__', i)}-{law.__name__}" for i, (a, law, _) in enumerate(ZOO)],
)
def test_wrong_layers_are_rejected(animal: Callable, law: Callable, message: str) -> None:
    with pytest.raises(LawBroken, match=message):
        law(animal)


def test_a_layer_that_must_refuse_to_stream_is_told() -> None:
    class Streams(Bidirectional):
        def start(self, batch_size: int, **_: object) -> State:
            return torch.zeros(batch_size, 1)

    for law in (laws.any_partition, laws.emission_schedule, laws.rows_are_strangers):
        with pytest.raises(LawBroken, match="does not raise NotStreamable"):
            law(lambda: Streams(GRU(2, 3)))


def test_check_stops_at_the_first_broken_law() -> None:
    with pytest.raises(LawBroken) as caught:
        laws.check(DividesByLength)
    assert caught.value.law == "law 1 (any partition)"
