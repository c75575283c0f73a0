"""What anybody's model depends on: its lookahead, its leaks, and the operation that causes them."""

from nearfuture.audit import render
from nearfuture.audit.audit import AuditInterrupted
from nearfuture.audit.call import AuditOptions, CallOptions
from nearfuture.audit.labels import labels
from nearfuture.audit.report import Culprit, Finding, Kind, Report
from nearfuture.audit.run import assert_lookahead, lookahead, matrix, model

__all__ = [
    "AuditInterrupted",
    "AuditOptions",
    "CallOptions",
    "Culprit",
    "Finding",
    "Kind",
    "Report",
    "assert_lookahead",
    "labels",
    "lookahead",
    "matrix",
    "model",
    "render",
]
