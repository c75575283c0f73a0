"""SpecAugment: what it blanks out, and what it leaves alone."""

import pytest
import torch
from torch import Tensor

from nearfuture.training import SpecAugmentOptions
from nearfuture.training.augmentation import spec_augment, utterance_generators

PLAIN = SpecAugmentOptions()


def blanked(lengths: list[int], seed: int, frames: int = 60, **options: int) -> Tensor:
    """(B, T, M) bool: where ones have become 0."""
    x = torch.ones(len(lengths), frames, 40)
    rows = utterance_generators(seed, 0, [str(row) for row in range(len(lengths))])
    return spec_augment(x, torch.tensor(lengths), rows, SpecAugmentOptions(**options)) == 0


def test_it_follows_from_its_generator_and_from_nothing_else() -> None:
    torch.manual_seed(0)
    one = blanked([60, 30], 3)
    torch.manual_seed(1)
    assert torch.equal(blanked([60, 30], 3), one)
    assert not torch.equal(blanked([60, 30], 4), one)
    before = torch.get_rng_state()
    blanked([60, 30], 3)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("seed", range(40))
def test_gaps_lie_inside_the_lengths(seed: int) -> None:
    lengths = [60, 43, 10, 3, 1, 0]
    gaps = blanked(lengths, seed, freq_masks=0, time_masks=1).all(dim=2)
    for row, length in zip(gaps, lengths, strict=True):
        assert not row[length:].any()
        assert row.sum() <= min(12, length / 5) + 1
        where = row.nonzero()[:, 0].tolist()
        assert where == list(range(where[0], where[0] + len(where))) if where else True


@pytest.mark.parametrize("seed", range(40))
def test_bands_are_narrow_and_the_whole_row_long(seed: int) -> None:
    bands = blanked([60, 20], seed, freq_masks=1, time_masks=0)
    assert torch.equal(bands, bands[:, :1].expand_as(bands))
    for row in bands[:, 0]:
        assert row.sum() <= 8
        where = row.nonzero()[:, 0].tolist()
        assert where == list(range(where[0], where[0] + len(where))) if where else True


def test_rows_differ_and_most_of_a_row_is_left() -> None:
    all_of_them = blanked([60] * 50, 0)
    assert len({str(row.tolist()) for row in all_of_them}) == 50
    shares = all_of_them.float().mean(dim=(1, 2))
    assert 0.1 < shares.mean() < 0.5
    assert shares.max() < 0.8
    places = all_of_them.float().mean(dim=0)
    assert (places.mean(dim=0) > 0).all()  # every bin at some time
    assert (places.mean(dim=1) > 0).all()


def test_what_is_not_blanked_is_untouched() -> None:
    x = torch.randn(3, 50, 40)
    kept = x.clone()
    y = spec_augment(
        x, torch.tensor([50, 20, 0]), utterance_generators(0, 0, ["a", "b", "c"]), PLAIN
    )
    assert torch.equal(x, kept)
    assert ((y == x) | (y == 0)).all()


def test_no_frames_and_no_rows() -> None:
    for shape in ((2, 0, 40), (0, 5, 40)):
        x = torch.zeros(shape)
        rows = utterance_generators(0, 0, ["row"] * shape[0])
        y = spec_augment(x, torch.zeros(shape[0], dtype=torch.int64), rows, PLAIN)
        assert y.shape == shape


def test_a_row_is_the_same_in_any_company() -> None:
    names, lengths = ["a", "b", "c"], torch.tensor([60, 43, 20])
    x = torch.ones(3, 60, 40)
    together = spec_augment(x, lengths, utterance_generators(1, 7, names), PLAIN)
    for row, name in enumerate(names):
        alone = spec_augment(
            x[row : row + 1], lengths[row : row + 1], utterance_generators(1, 7, [name]), PLAIN
        )
        assert torch.equal(alone[0], together[row])


def test_an_utterance_is_blanked_differently_in_every_step_and_by_every_seed() -> None:
    x, n = torch.ones(1, 60, 40), torch.tensor([60])
    seen = {
        str(spec_augment(x, n, utterance_generators(seed, step, ["a"]), PLAIN).tolist())
        for seed in range(3)
        for step in range(5)
    }
    assert len(seen) == 15
