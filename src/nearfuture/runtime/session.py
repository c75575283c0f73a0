"""How ONNX Runtime runs our graphs."""

from __future__ import annotations

from typing import Any

import onnxruntime as ort


def session_options(threads: int) -> Any:
    """Return the options of every session: `threads` within an operation, none that spins."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3  # errors only
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options
