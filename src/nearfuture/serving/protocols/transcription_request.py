"""What a form of OpenAI's `/v1/audio/transcriptions` asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from starlette.datastructures import FormData, UploadFile

from nearfuture.serving.limits import shown
from nearfuture.serving.protocols.openai_error import OpenAIError
from nearfuture.serving.protocols.openai_option import as_language, refuse_options

FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
GRANULARITIES = ("word", "segment")
_GRANULARITIES = "timestamp_granularities"
_STREAMED = ("json", "text")
_READ = (
    *("file", "model", "response_format", _GRANULARITIES),
    *("stream", "language", "temperature"),
)
_USUAL = {
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
        language: as the client names it, or None; it is told back and changes nothing.
    """

    file: UploadFile
    model: str
    format: str
    granularities: frozenset[str]
    stream: bool
    language: str | None

    @classmethod
    def of(cls, form: FormData) -> TranscriptionRequest:
        """The request of a parsed form.

        Raises:
            OpenAIError: for a field that is missing, one that means nothing, and a value that is
                not offered.
        """
        file = form.get("file")
        if file is None:
            raise OpenAIError("the form has no file: send the recording as 'file'", param="file")
        if not isinstance(file, UploadFile):
            raise OpenAIError(
                "'file' is a plain field: send the recording as a file, with a file name",
                param="file",
            )
        model = _field(form, "model")
        if not model:
            raise OpenAIError(
                "the form names no model: GET /v1/models lists what there is", param="model"
            )
        kind = _field(form, "response_format") or "json"
        if kind not in FORMATS:
            raise OpenAIError(
                f"response_format {shown(kind)} is not offered: use one of {', '.join(FORMATS)}",
                param="response_format",
                code="invalid_value",
            )
        stream = _flag(form, "stream")
        if stream and kind not in _STREAMED:
            raise OpenAIError(
                f"response_format {kind!r} cannot be streamed: use {' or '.join(_STREAMED)}, or "
                f"stream=false",
                param="stream",
            )
        for name, value in form.multi_items():
            refuse_options({name.removesuffix("[]"): value}, read=_READ, usual=_USUAL)
            if name in _READ and name != _GRANULARITIES and len(form.getlist(name)) > 1:
                raise OpenAIError(f"the form has more than one {name!r}: send one", param=name)
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
        raise OpenAIError(f"'{name}' is a file, but text is wanted", param=name)
    return value


def _flag(form: FormData, name: str) -> bool:
    value = (_field(form, name) or "false").lower()
    if value not in ("true", "false", "1", "0"):
        raise OpenAIError(f"{name} {shown(value)}: it must be true or false", param=name)
    return value in ("true", "1")


def _granularities(form: FormData, kind: str) -> frozenset[str]:
    name = _GRANULARITIES
    asked = [*form.getlist(f"{name}[]"), *form.getlist(name)]
    for value in asked:
        if value not in GRANULARITIES:
            raise OpenAIError(
                f"{name} {shown(value)} is not offered: use word, segment, or both",
                param=name,
                code="invalid_value",
            )
    if asked and kind != "verbose_json":
        raise OpenAIError(
            f"{name} needs response_format verbose_json, but it is {kind!r}", param=name
        )
    return frozenset(str(value) for value in asked) or frozenset({"segment"})


def _refuse_temperature(value: str | None) -> None:
    try:
        told = 0.0 if not value else float(value)
    except ValueError:
        told = math.nan
    if told != 0:
        raise OpenAIError(
            f"temperature {shown(value)} is not offered: the text is always the most probable one; "
            f"send 0, or leave it out",
            param="temperature",
            code="unsupported_value",
        )
