"""What OpenAI's two protocols share: names of models, options that are not offered, languages.

A client that asks for a prompt to be used, for noise reduction or for probabilities is refused. One
that sends such an option with its default, as many do, asks for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from nearfuture.serving.errors import RequestError
from nearfuture.serving.json_fields import brief
from nearfuture.serving.service import Service

_OPENAI_MODELS = ("whisper-", "gpt-")
"""OpenAI's own models for speech; many clients cannot be configured to use another name."""

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*")


def not_offered(parameter: str, value: object, remedy: str) -> RequestError:
    """Return the error for a value that OpenAI's API has and this server has not.

    >>> str(not_offered("temperature", 1, "send 0"))
    'temperature 1 is not offered: send 0'
    """
    message = f"{parameter} {brief(value)} is not offered: {remedy}"
    return RequestError("unsupported_value", message, parameter)


def resolve_model(service: Service, name: str | None) -> str:
    """Return the name of the model that runs: the one named, or the first for OpenAI's own names.

    Raises:
        RequestError: for a model that is not served, naming those that are.
    """
    if name in service.models:
        return name
    if name is None or (name.startswith(_OPENAI_MODELS) and "diarize" not in name):
        return service.models[0]
    raise RequestError(
        "model_not_found",
        f"there is no model {brief(name, 80)} here: {', '.join(service.models)} (names of OpenAI's "
        f"own models that begin with {' or '.join(_OPENAI_MODELS)} stand for {service.models[0]}; "
        f"none distinguishes speakers)",
        "model",
    )


def refuse_options(
    fields: Mapping[str, Any],
    *,
    read: Collection[str],
    defaults: Mapping[str, tuple[object, ...]],
    path: str = "",
) -> None:
    """Refuse what a client asks for and does not get.

    Args:
        fields: as the client sent them.
        read: the names of the fields that have an effect.
        defaults: fields without effect, with the values that ask for nothing; null always does.
        path: to the fields, for the message.

    Raises:
        RequestError: for another value, and for a field that means nothing, by its path.

    >>> refuse_options({"threshold": 0.5}, read=(), defaults={"threshold": (0.5,)})
    >>> refuse_options({"threshold": 0.9}, read=(), defaults={"threshold": (0.5,)}, path="a")
    Traceback (most recent call last):
    nearfuture.serving.errors.RequestError: a.threshold 0.9 is not offered: leave it out, or send...
    """
    for name, value in fields.items():
        parameter = f"{path}.{name}" if path else name
        if name in read:
            continue
        if name not in defaults:
            raise RequestError(
                "unknown_parameter",
                f"{brief(parameter, 80)} means nothing here: there are "
                f"{', '.join(sorted({*read, *defaults}))}",
                parameter[:80],
            )
        accepted = defaults[name]
        if value is None or any(_equal(value, default) for default in accepted):
            continue
        instead = f", or send {brief(accepted[0])}" if accepted else ""
        raise not_offered(parameter, value, f"leave it out{instead}")


def read_object(
    value: object,
    path: str,
    *,
    read: Collection[str],
    defaults: Mapping[str, tuple[object, ...]] | None = None,
) -> Mapping[str, Any]:
    """Return the object at a path of a client's JSON, without options that are not offered.

    Args:
        value: the object; null has no fields.
        path: to it, for messages.
        read: as for `refuse_options`.
        defaults: likewise.

    Raises:
        RequestError: for another type, and for what `refuse_options` refuses.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RequestError(
            "invalid", f"{path} is {type(value).__name__}, but an object is expected", path
        )
    refuse_options(value, read=read, defaults=defaults or {}, path=path)
    return value


def _equal(value: object, other: object) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def as_language(value: object, parameter: str) -> str | None:
    """Return a language as its tag, such as `en` or `zh-TW`; None for none.

    A model knows the languages that it was trained on, whatever a client names: it is repeated to
    the client and changes nothing.

    Raises:
        RequestError: for what is no tag of a language.

    >>> as_language("en", "language"), as_language("", "language")
    ('en', None)
    """
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not _LANGUAGE.fullmatch(value):
        raise RequestError(
            "invalid_value",
            f"{parameter} {brief(value)} is no language: a tag such as 'en' is expected",
            parameter,
        )
    return value
