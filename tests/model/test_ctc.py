"""The CTC loss against every alignment written out, and what it refuses."""

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from nearfuture.error import NearfutureError
from nearfuture.model import ctc_loss
from nearfuture.text import frames_needed


def uniform(frames: int, symbols: int = 3) -> Tensor:
    return torch.full((1, frames, symbols), 1 / symbols, dtype=torch.float64).log()


def loss(log_probs: Tensor, target: list[int], frames: int | None = None) -> float:
    lengths = torch.tensor([log_probs.shape[1] if frames is None else frames])
    return ctc_loss(log_probs, lengths, [target]).loss.item()


def collapse(alignment: tuple[int, ...]) -> list[int]:
    return [symbol for symbol, _ in itertools.groupby(alignment) if symbol != 0]


def brute(log_probs: Tensor, target: list[int]) -> float:
    """-log of the sum over all V^T alignments that spell the target; (T, V)."""
    frames, symbols = log_probs.shape
    total = 0.0
    for alignment in itertools.product(range(symbols), repeat=frames):
        if collapse(alignment) == target:
            total += math.exp(sum(log_probs[t, s].item() for t, s in enumerate(alignment)))
    return -math.log(total) if total else math.inf


TARGETS = [list(t) for length in range(4) for t in itertools.product((1, 2), repeat=length)]


def test_numbers_of_the_facts() -> None:
    assert loss(uniform(5), [1, 1, 1]) == pytest.approx(5.4931, abs=1e-4)
    assert loss(uniform(4), [1, 2, 1]) == pytest.approx(2.4485, abs=1e-4)
    assert loss(uniform(4), []) == pytest.approx(4.3944, abs=1e-4)
    with pytest.raises(NearfutureError, match="4 frames cannot spell 3 symbols with 2 repeats"):
        loss(uniform(4), [1, 1, 1])


@pytest.mark.parametrize("frames", [0, 1, 2, 3, 4, 5])
def test_it_is_the_sum_over_all_alignments(frames: int) -> None:
    generator = torch.Generator().manual_seed(frames)
    raw = torch.randn(1, frames, 3, generator=generator, dtype=torch.float64)
    log_probs = raw.log_softmax(-1)
    for target in TARGETS:
        expected = brute(log_probs[0], target)
        assert math.isinf(expected) == (frames < frames_needed(target))
        if math.isfinite(expected):
            assert loss(log_probs, target) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_frames_needed_is_the_shortest_alignment(target: list[int]) -> None:
    needed = frames_needed(target)
    assert math.isfinite(brute(uniform(needed)[0], target))
    assert needed == 0 or math.isinf(brute(uniform(needed - 1)[0], target))


def test_a_batch_is_the_sum_of_its_rows() -> None:
    generator = torch.Generator().manual_seed(7)
    log_probs = torch.randn(4, 5, 3, generator=generator, dtype=torch.float64).log_softmax(-1)
    lengths, targets = [5, 3, 0, 4], [[1, 1], [2], [], [1, 2, 1]]
    result = ctc_loss(log_probs, torch.tensor(lengths), targets)
    alone = [loss(log_probs[b : b + 1], targets[b], lengths[b]) for b in range(4)]
    assert result.loss.item() == pytest.approx(sum(alone), abs=1e-12)
    assert (result.counted, result.skipped) == (4, ())
    assert alone[2] == 0.0  # nothing heard, nothing said


def test_what_lies_past_a_row_counts_nothing() -> None:
    log_probs = torch.randn(2, 6, 3, dtype=torch.float64).log_softmax(-1)
    lengths = torch.tensor([6, 3])
    expected = ctc_loss(log_probs, lengths, [[1, 2], [2]]).loss
    spoiled = log_probs.clone()
    spoiled[1, 3:] = math.nan
    spoiled.requires_grad_()
    got = ctc_loss(spoiled, lengths, [[1, 2], [2]]).loss
    torch.testing.assert_close(got, expected)
    got.backward()
    assert spoiled.grad is not None
    assert (spoiled.grad[1, 3:] == 0).all()
    assert spoiled.grad.isfinite().all()


def test_the_gradient_is_right() -> None:
    x = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)

    def of(x: Tensor) -> Tensor:
        return ctc_loss(x.log_softmax(-1), torch.tensor([4, 3]), [[1, 1], [2]]).loss

    assert torch.autograd.gradcheck(of, (x,))


# Impossible targets


def test_an_impossible_target_is_named() -> None:
    log_probs = uniform(4).expand(3, -1, -1)
    lengths = torch.tensor([4, 1, 0])
    with pytest.raises(NearfutureError) as error:
        ctc_loss(log_probs, lengths, [[1], [1, 2], [1]], names=["a.wav", "b.wav", "c.wav"])
    assert "b.wav: 1 frame cannot spell 2 symbols with 0 repeats, which need 2" in str(error.value)
    assert "c.wav" in str(error.value)
    assert "a.wav" not in str(error.value)
    with pytest.raises(NearfutureError, match="row 1"):
        ctc_loss(log_probs, lengths, [[1], [1, 2], []])


def test_an_impossible_target_is_skipped_and_the_rest_is_as_if_alone() -> None:
    x = torch.randn(3, 4, 3, requires_grad=True)
    log_probs = x.log_softmax(-1)
    targets = [[1, 2], [1, 1, 1], [2]]
    result = ctc_loss(log_probs, torch.tensor([4, 4, 2]), targets, skip_impossible=True)
    assert result.counted == 2
    assert len(result.skipped) == 1
    assert result.skipped[0].startswith("row 1: 4 frames")
    rest = ctc_loss(log_probs[[0, 2]], torch.tensor([4, 2]), [[1, 2], [2]])
    torch.testing.assert_close(result.loss, rest.loss)
    result.loss.backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert (x.grad[1] == 0).all()
    assert (x.grad[0] != 0).any()


@pytest.mark.parametrize("value", [-math.inf, math.nan, 0.0])
def test_nothing_left_is_a_loss_of_0_with_a_gradient_of_0(value: float) -> None:
    log_probs = torch.full((2, 1, 3), value, requires_grad=True)
    targets = [[1, 1], [1, 2]]
    result = ctc_loss(log_probs, torch.tensor([1, 1]), targets, skip_impossible=True)
    assert (result.loss.item(), result.counted, len(result.skipped)) == (0.0, 0, 2)
    result.loss.backward()
    assert log_probs.grad is not None
    assert (log_probs.grad == 0).all()


@pytest.mark.parametrize("target", [[0], [1, 0], [3], [-1], [2, 7]])
def test_a_symbol_that_is_none_is_refused(target: list[int]) -> None:
    with pytest.raises(NearfutureError, match=r"d\.wav: symbols of a target go from 1 to 2"):
        ctc_loss(uniform(5), torch.tensor([5]), [target], names=["d.wav"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x + 8.0, r"b\.wav: frame 0 has the value .*at most 0"),
        (lambda x: x.exp(), r"b\.wav: frame 0 has the value 0\.333, and"),
        (lambda x: x * 2, r"b\.wav: frame 0 has probabilities that add up to 0\.333, not to 1"),
        (lambda x: x * math.nan, r"b\.wav: log_probs has a NaN in frame 0"),
    ],
)
def test_what_are_no_log_probabilities_is_refused(change: Any, message: str) -> None:
    log_probs = uniform(5).repeat(2, 1, 1)
    log_probs[1] = change(log_probs[1])
    lengths, names = torch.tensor([5, 4]), ["a.wav", "b.wav"]
    with pytest.raises(NearfutureError, match=message):
        ctc_loss(log_probs, lengths, [[1], [2]], names=names)
    assert not ctc_loss(log_probs, lengths, [[1], [2]], validate=False).skipped
    log_probs[1] = uniform(5)
    log_probs[1, 4:] = change(log_probs[1, 4:])  # past the row's length
    assert ctc_loss(log_probs, lengths, [[1], [2]], names=names).counted == 2


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (torch.tensor([6]), "row 0 has a length of 6, but the batch has 5 frames"),
        (torch.tensor([-1]), "row 0 has a length of -1"),
        (torch.tensor([5.0]), "lengths is a tensor of float32"),
        (torch.tensor([5, 5]), "lengths has shape"),
    ],
)
def test_lengths_that_are_none_are_refused(lengths: Tensor, message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        ctc_loss(uniform(5), lengths, [[1]])


@pytest.mark.parametrize("target", [[1.5], ["a"], "ab"])
def test_a_target_is_of_whole_numbers(target: Any) -> None:
    with pytest.raises(NearfutureError, match="row 0: symbols of a target are whole numbers"):
        ctc_loss(uniform(5), torch.tensor([5]), [target])


def test_each_row_has_a_target_and_a_name() -> None:
    with pytest.raises(NearfutureError, match="there are 2 targets for 1 row"):
        ctc_loss(uniform(5), torch.tensor([5]), [[1], [2]])
    with pytest.raises(NearfutureError, match="there are 0 names for 1 row"):
        ctc_loss(uniform(5), torch.tensor([5]), [[1]], names=[])


# Rows and dtypes


def test_no_rows_and_no_frames() -> None:
    nothing = torch.zeros(0, 4, 3, requires_grad=True)
    result = ctc_loss(nothing, torch.zeros(0, dtype=torch.int64), [])
    assert (result.loss.item(), result.counted) == (0.0, 0)
    silent = ctc_loss(torch.zeros(2, 0, 3), torch.tensor([0, 0]), [[], []])
    assert (silent.loss.item(), silent.counted) == (0.0, 2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_it_is_computed_in_float32_or_better(dtype: torch.dtype) -> None:
    log_probs = torch.randn(2, 6, 4).log_softmax(-1).to(dtype).requires_grad_()
    lengths, targets = torch.tensor([6, 4]), [[1, 2, 3], [3]]
    result = ctc_loss(log_probs, lengths, targets)
    exact = ctc_loss(log_probs.detach().double(), lengths, targets).loss
    assert result.loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert result.loss.item() == pytest.approx(exact.item(), rel=1e-5)
    result.loss.backward()
    assert log_probs.grad is not None
    assert log_probs.grad.dtype == dtype
    skipped = ctc_loss(log_probs, torch.tensor([0, 0]), targets, skip_impossible=True)
    assert skipped.loss.dtype == result.loss.dtype


def test_a_certain_contradiction_is_infinite_and_not_hidden() -> None:
    log_probs = torch.tensor([0.5, 0.0, 0.5], dtype=torch.float64).log().repeat(1, 3, 1)
    assert loss(log_probs, [1]) == math.inf
