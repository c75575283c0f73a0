"""Recordings as training batches: bucketed by length, cached, and made ahead of time."""

from nearfuture.data.batching.batch import Batch, Batches, shard
from nearfuture.data.batching.bucketing import BatchingOptions, BucketingBatches
from nearfuture.data.batching.prefetcher import Prefetcher

__all__ = ["Batch", "Batches", "BatchingOptions", "BucketingBatches", "Prefetcher", "shard"]
