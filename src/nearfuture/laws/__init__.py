"""The laws every layer obeys, as a test kit: for ours and for yours."""

from nearfuture.laws.broken import TOLERANCE, LawBroken
from nearfuture.laws.field import PROBES, declared_is_measured, dependency_matrix
from nearfuture.laws.kit import ALL, Law, check
from nearfuture.laws.padding import padding_is_nothing
from nearfuture.laws.partition import any_partition, prefill_then_step
from nearfuture.laws.rows import rows_are_strangers
from nearfuture.laws.schedule import emission_schedule
from nearfuture.laws.snapshot import snapshot_round_trip
from nearfuture.laws.state import partition_free_state
from nearfuture.laws.stream import Source

__all__ = [
    "ALL",
    "PROBES",
    "TOLERANCE",
    "Law",
    "LawBroken",
    "Source",
    "any_partition",
    "check",
    "declared_is_measured",
    "dependency_matrix",
    "emission_schedule",
    "padding_is_nothing",
    "partition_free_state",
    "prefill_then_step",
    "rows_are_strangers",
    "snapshot_round_trip",
]
