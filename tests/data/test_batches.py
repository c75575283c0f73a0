"""What ranks share: every utterance of a step, each of them once."""

import pytest

from nearfuture.data import Batch, Batches, BucketingBatches
from nearfuture.data.batching.batch import share
from recipes.digits import ConnectedDigits
from tests.errors import refuses


@pytest.mark.parametrize("size", [0, 1, 2, 7, 12])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_ranks_share_a_batch_without_rest(size: int, ranks: int) -> None:
    everything = [f"item {n}" for n in range(size)]
    shares = [share(everything, rank, ranks) for rank in range(ranks)]
    assert sorted(one for each in shares for one in each) == sorted(enumerate(everything))
    for rank, each in enumerate(shares):
        assert [one for _, one in each] == everything[rank::ranks]


@pytest.mark.parametrize(("rank", "ranks"), [(2, 2), (-1, 2), (0, 0)])
def test_a_rank_that_is_none_is_refused(rank: int, ranks: int) -> None:
    with refuses("out_of_range", "rank", rank, ranks):
        share([1, 2], rank, ranks)


def test_both_sources_of_batches_are_ones() -> None:
    assert issubclass(BucketingBatches, Batches)
    assert issubclass(ConnectedDigits, Batches)
    assert not issubclass(Batch, Batches)
