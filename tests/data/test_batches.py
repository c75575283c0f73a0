"""What ranks share: every utterance of a step, each of them once."""

import pytest

from nearfuture.data import Batch, Batches, BucketingBatches
from nearfuture.data.batching.batch import shard
from recipes.digits import ConnectedDigits
from tests.errors import refuses


@pytest.mark.parametrize("size", [0, 1, 2, 7, 12])
@pytest.mark.parametrize("world_size", [1, 2, 3, 5])
def test_ranks_share_a_batch_without_rest(size: int, world_size: int) -> None:
    everything = [f"item {n}" for n in range(size)]
    shares = [shard(everything, rank, world_size) for rank in range(world_size)]
    assert sorted(one for each in shares for one in each) == sorted(enumerate(everything))
    for rank, each in enumerate(shares):
        assert [one for _, one in each] == everything[rank::world_size]


@pytest.mark.parametrize(("rank", "world_size"), [(2, 2), (-1, 2), (0, 0)])
def test_a_rank_that_is_none_is_refused(rank: int, world_size: int) -> None:
    with refuses("out_of_range", "rank", rank, world_size):
        shard([1, 2], rank, world_size)


def test_both_sources_of_batches_are_ones() -> None:
    assert issubclass(BucketingBatches, Batches)
    assert issubclass(ConnectedDigits, Batches)
    assert not issubclass(Batch, Batches)
