"""The form of OpenAI's `/v1/audio/transcriptions`, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass

from starlette.datastructures import FormData, UploadFile

from nearfuture.serving.errors import RequestError
from nearfuture.serving.json_fields import brief
from nearfuture.serving.protocols.openai_fields import (
    as_language,
    not_offered,
    refuse_options,
)

FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
GRANULARITIES = ("word", "segment")
_GRANULARITIES = "timestamp_granularities"
_STREAMED = ("json", "text")
_READ = (
    *("file", "model", "response_format", _GRANULARITIES),
    *("stream", "language", "temperature"),
)
_DEFAULTS = {
    "prompt": ("",),
    "keywords": ("",),
    "languages": ("",),
    "include": ("",),
    "chunking_strategy": ("auto", ""),
}


@dataclass(frozen=True, kw_only=True)
class TranscriptionRequest:
    """A form that asks for something that can be done.

    Attributes:
        file: the upload, at its beginning.
        model: as the client calls it.
        format: one of `FORMATS`.
        granularities: what `verbose_json` lists, any of `word` and `segment`.
        stream: whether to send the text while it is being made.
        language: as the client names it, or None; it is repeated and changes nothing.
    """

    file: UploadFile
    model: str
    format: str
    granularities: frozenset[str]
    stream: bool
    language: str | None

    @classmethod
    def of(cls, form: FormData) -> TranscriptionRequest:
        """Return the request of a parsed form.

        Raises:
            RequestError: for a field that is missing, one that means nothing, and a value that is
                not offered.
        """
        file = form.get("file")
        if file is None:
            raise RequestError(
                "invalid", "the form has no file: send the recording as 'file'", "file"
            )
        if not isinstance(file, UploadFile):
            raise RequestError(
                "invalid",
                "'file' is a plain field: send the recording as a file, with a file name",
                "file",
            )
        model = _field(form, "model")
        if not model:
            raise RequestError(
                "invalid", "the form names no model: GET /v1/models lists what there is", "model"
            )
        kind = _field(form, "response_format") or "json"
        if kind not in FORMATS:
            raise not_offered("response_format", kind, f"use one of {', '.join(FORMATS)}")
        stream = _flag(form, "stream")
        if stream and kind not in _STREAMED:
            raise RequestError(
                "invalid",
                f"response_format {kind!r} cannot be streamed: use {' or '.join(_STREAMED)}, or "
                f"stream=false",
                "stream",
            )
        for name, value in form.multi_items():
            refuse_options({name.removesuffix("[]"): value}, read=_READ, defaults=_DEFAULTS)
            if name in _READ and name != _GRANULARITIES and len(form.getlist(name)) > 1:
                raise RequestError(
                    "invalid", f"the form has more than one {name!r}: send one", name
                )
        _refuse_temperature(_field(form, "temperature"))
        return cls(
            file=file,
            model=model,
            format=kind,
            granularities=_granularities(form, kind),
            stream=stream,
            language=as_language(_field(form, "language"), "language"),
        )


def _field(form: FormData, name: str) -> str | None:
    value = form.get(name)
    if isinstance(value, UploadFile):
        raise RequestError("invalid", f"'{name}' is a file, but text is expected", name)
    return value


def _flag(form: FormData, name: str) -> bool:
    value = (_field(form, name) or "false").lower()
    if value not in ("true", "false", "1", "0"):
        raise RequestError("invalid", f"{name} {brief(value)}: it must be true or false", name)
    return value in ("true", "1")


def _granularities(form: FormData, kind: str) -> frozenset[str]:
    name = _GRANULARITIES
    names = [*form.getlist(f"{name}[]"), *form.getlist(name)]
    for value in names:
        if value not in GRANULARITIES:
            raise not_offered(name, value, "use word, segment, or both")
    if names and kind != "verbose_json":
        raise RequestError(
            "invalid", f"{name} needs response_format verbose_json, but it is {kind!r}", name
        )
    return frozenset(str(value) for value in names) or frozenset({"segment"})


def _refuse_temperature(value: str | None) -> None:
    try:
        temperature = 0.0 if not value else float(value)
    except ValueError:
        temperature = math.nan
    if temperature != 0:
        remedy = "the text is always the most probable one; send 0, or leave it out"
        raise not_offered("temperature", value, remedy)
