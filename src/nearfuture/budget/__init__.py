"""What a model waits for and what it costs, before there is a model: pure Python."""

from nearfuture.budget.blueprint import Blueprint, ConvolutionShape
from nearfuture.budget.cost import (
    Cell,
    Cost,
    Merge,
    batch_norm_cost,
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
from nearfuture.budget.presets import deep_speech_2_deployed, deep_speech_2_research

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
    "batch_norm_cost",
    "convolution_cost",
    "deep_speech_2_deployed",
    "deep_speech_2_research",
    "features_cost",
    "largest_lookahead",
    "layer_norm_cost",
    "linear_cost",
    "lookahead_cost",
    "recurrent_cost",
]
