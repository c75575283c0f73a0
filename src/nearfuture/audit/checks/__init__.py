"""Properties besides the lookahead: repeatable calls, batch, padding, length, streaming.

Values of calls of the same shape are compared bit for bit; of different shapes, within the rounding
that other kernels bring.
"""

from nearfuture.audit.checks.batch import check_batch
from nearfuture.audit.checks.length import check_length
from nearfuture.audit.checks.padding import PaddedRows, check_padding
from nearfuture.audit.checks.repeat import check_repeat
from nearfuture.audit.checks.result import CheckResult, skipped
from nearfuture.audit.checks.streaming import check_streaming, streaming_layer_steps

__all__ = [
    "CheckResult",
    "PaddedRows",
    "check_batch",
    "check_length",
    "check_padding",
    "check_repeat",
    "check_streaming",
    "skipped",
    "streaming_layer_steps",
]
