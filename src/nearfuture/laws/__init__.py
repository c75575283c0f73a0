"""The laws that every layer obeys, as a test kit: for ours and for yours."""

try:
    import hypothesis  # noqa: F401 (the laws draw their cases with it)
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"nearfuture.laws needs {error.name}; install it with: pip install 'nearfuture[laws]'",
        name=error.name,
    ) from error

from nearfuture.laws.field import PROBES, declared_is_measured, dependency_matrix
from nearfuture.laws.gradients import gradients_agree
from nearfuture.laws.law import Law
from nearfuture.laws.padding import padding_is_ignored
from nearfuture.laws.partition import any_partition, prefill_then_step
from nearfuture.laws.precision import DTYPES, any_dtype_and_device
from nearfuture.laws.reset import reset_equals_new_stream
from nearfuture.laws.rows import rows_are_independent
from nearfuture.laws.schedule import emission_schedule
from nearfuture.laws.snapshot import snapshot_round_trip
from nearfuture.laws.state import partition_free_state
from nearfuture.laws.strategies import partitions
from nearfuture.laws.stream import LayerOrFactory, Partition
from nearfuture.laws.suite import ALL, check
from nearfuture.laws.trial import EXAMPLES
from nearfuture.laws.violation import TOLERANCE, LawBroken

__all__ = [
    "ALL",
    "DTYPES",
    "EXAMPLES",
    "PROBES",
    "TOLERANCE",
    "Law",
    "LawBroken",
    "LayerOrFactory",
    "Partition",
    "any_dtype_and_device",
    "any_partition",
    "check",
    "declared_is_measured",
    "dependency_matrix",
    "emission_schedule",
    "gradients_agree",
    "padding_is_ignored",
    "partition_free_state",
    "partitions",
    "prefill_then_step",
    "reset_equals_new_stream",
    "rows_are_independent",
    "snapshot_round_trip",
]
