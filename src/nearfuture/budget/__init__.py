"""The configuration of a recogniser, its latency and its cost, in pure Python."""

from nearfuture.budget.attention import AttentionConfig, Block, attention_cost
from nearfuture.budget.component import ConvolutionConfig, FeatureConfig, RecurrenceConfig
from nearfuture.budget.config import RecognizerConfig
from nearfuture.budget.cost import (
    GATES,
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
from nearfuture.budget.presets import (
    PRESETS,
    Preset,
    base,
    deep_speech_2_deployed,
    deep_speech_2_research,
    small,
    small_conformer,
    tiny,
)

__all__ = [
    "GATES",
    "PRESETS",
    "AttentionConfig",
    "Block",
    "Cell",
    "ConvolutionConfig",
    "Cost",
    "FeatureConfig",
    "Latency",
    "LatencyItem",
    "Merge",
    "Preset",
    "ReceptiveField",
    "RecognizerConfig",
    "RecurrenceConfig",
    "algorithmic_latency",
    "attention_cost",
    "base",
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
    "small",
    "small_conformer",
    "tiny",
]
