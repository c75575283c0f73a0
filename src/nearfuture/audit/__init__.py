"""What a model really looks at: its lookahead, its leaks, and who is to blame. Any model."""

from nearfuture.audit.label import labels
from nearfuture.audit.model import assert_lookahead, lookahead, model
from nearfuture.audit.report import Culprit, Finding, Kind, Report

__all__ = [
    "Culprit",
    "Finding",
    "Kind",
    "Report",
    "assert_lookahead",
    "labels",
    "lookahead",
    "model",
]
