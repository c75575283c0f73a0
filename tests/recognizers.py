"""Configurations of recognisers that tests share."""

from typing import Any

from nearfuture.budget import RecognizerConfig

PLAIN: dict[str, Any] = {
    "projection": False,
    "biases": 1,
    "layer_norm": False,
    "residual": False,
    "batch_norm": True,
    "output_hidden": False,
}
"""Deep Speech 2's plain stack: batch norms instead of layer norms, shortcuts and linear layers."""


def recognizer_config(**fields: Any) -> RecognizerConfig:
    """The small model but for some fields, see `RecognizerConfig.replace`."""
    return RecognizerConfig().replace(**fields)
