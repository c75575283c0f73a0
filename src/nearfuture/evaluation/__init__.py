"""Errors and delays of every budget beside the bidirectional twin, measured on bundles."""

from nearfuture.evaluation.bootstrap import (
    ConfidenceInterval,
    bootstrap_interval,
    paired_bootstrap,
)
from nearfuture.evaluation.evaluation import Evaluation
from nearfuture.evaluation.plot import plot_error_against_latency
from nearfuture.evaluation.results import Hypothesis, Result
from nearfuture.evaluation.run import evaluate_bundles
from nearfuture.evaluation.summary import HeadMetrics, Percentiles, Summary

__all__ = [
    "ConfidenceInterval",
    "Evaluation",
    "HeadMetrics",
    "Hypothesis",
    "Percentiles",
    "Result",
    "Summary",
    "bootstrap_interval",
    "evaluate_bundles",
    "paired_bootstrap",
    "plot_error_against_latency",
]
