"""What a model waits for and what it costs, before there is a model: pure Python."""

from nearfuture.budget.blueprint import Blueprint, ConvolutionShape, deep_speech_2
from nearfuture.budget.cost import (
    Cell,
    Cost,
    Merge,
    convolution_cost,
    features_cost,
    layer_norm_cost,
    linear_cost,
    lookahead_cost,
    recurrent_cost,
)
from nearfuture.budget.field import ReceptiveField
from nearfuture.budget.latency import Latency, LatencyItem, algorithmic_latency
from nearfuture.budget.planner import largest_lookahead

__all__ = [
    "Blueprint",
    "Cell",
    "ConvolutionShape",
    "Cost",
    "Latency",
    "LatencyItem",
    "Merge",
    "ReceptiveField",
    "algorithmic_latency",
    "convolution_cost",
    "deep_speech_2",
    "features_cost",
    "largest_lookahead",
    "layer_norm_cost",
    "linear_cost",
    "lookahead_cost",
    "recurrent_cost",
]
