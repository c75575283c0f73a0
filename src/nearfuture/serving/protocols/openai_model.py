"""Which model a client of OpenAI's means."""

from __future__ import annotations

from nearfuture.serving.limits import shown
from nearfuture.serving.protocols.openai_error import OpenAIError
from nearfuture.serving.service import Service

_THEIRS = ("whisper-", "gpt-")
"""OpenAI's own models for speech; clients often cannot be told another name."""


def chosen(service: Service, name: str | None) -> str:
    """The name of the model that runs: what is named, or the first for OpenAI's own names.

    Raises:
        OpenAIError: for a model that is not served, naming those that are.
    """
    if name in service.models:
        return name
    if name is None or (name.startswith(_THEIRS) and "diarize" not in name):
        return service.models[0]
    raise OpenAIError(
        f"there is no model {shown(name, 80)} here: {', '.join(service.models)} (names of OpenAI's "
        f"own models that begin with {' or '.join(_THEIRS)} stand for {service.models[0]}; none "
        f"tells speakers apart)",
        param="model",
        code="model_not_found",
        status=404,
    )
