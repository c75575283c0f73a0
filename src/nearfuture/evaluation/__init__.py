"""Errors and delays of every budget beside the bidirectional twin, measured on bundles."""

from nearfuture.evaluation.bootstrap import Interval, interval, paired_relative
from nearfuture.evaluation.evaluate import evaluate_bundles
from nearfuture.evaluation.evaluation import Evaluation
from nearfuture.evaluation.plot import plot_error_against_latency
from nearfuture.evaluation.reading import Reading, Result
from nearfuture.evaluation.summary import HeadFigures, Spread, Summary, summarise

__all__ = [
    "Evaluation",
    "HeadFigures",
    "Interval",
    "Reading",
    "Result",
    "Spread",
    "Summary",
    "evaluate_bundles",
    "interval",
    "paired_relative",
    "plot_error_against_latency",
    "summarise",
]
