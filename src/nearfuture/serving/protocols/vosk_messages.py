"""The messages of vosk-server's websocket protocol, read and written as its clients expect.

Source: alphacep/vosk-server, `websocket/asr_server.py`, and what its recogniser returns.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from nearfuture.decoding import Word
from nearfuture.serving.errors import RequestError
from nearfuture.serving.json_fields import as_rate, as_text, brief

Reply: TypeAlias = dict[str, Any]


class Command(Enum):
    """A command of the client: `EOF`, the last result; `RESET`, a result and a fresh start."""

    EOF = "eof"
    RESET = "reset"


@dataclass(frozen=True)
class VoskConfig:
    """The options of a `config` message.

    Attributes:
        sample_rate: of the audio, in Hz; None where it is not named.
        words: whether results list their words; None where it is not named.
        max_alternatives: how many transcripts a result may list, 0 for the plain form; None where
            it is not named.
        model: by its name; None where it is not named.
    """

    sample_rate: int | None = None
    words: bool | None = None
    max_alternatives: int | None = None
    model: str | None = None


_OPTIONS = {"sample_rate", "words", "max_alternatives", "model", "phrase_list"}


def parse(text: str | bytes) -> Command | VoskConfig:
    """Parse a control message, however it is spaced.

    Raises:
        RequestError: for what is no such message, and for a config that asks for what is not
            offered.

    >>> parse('{"eof":1}'), parse('{ "config" : { "sample_rate" : 16000 } }').sample_rate
    (<Command.EOF: 'eof'>, 16000)
    """
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError("bad_message", f"text that is not JSON: {brief(text)}") from error
    if isinstance(fields, dict):
        if "config" in fields:
            return _config(fields["config"])
        for command in Command:
            if fields.get(command.value) in (1, True):
                return command
    raise RequestError(
        "bad_message",
        f'not understood: {brief(text)}; there are {{"config": {{"sample_rate": 16000}}}}, '
        f'{{"eof": 1}} and {{"reset": 1}}, and audio is binary',
    )


def partial(text: str) -> Reply:
    """Return the reply within an utterance.

    >>> partial("two on")
    {'partial': 'two on'}
    """
    return {"partial": text}


def result(text: str, words: Sequence[Word], *, listed: bool, alternatives: bool = False) -> Reply:
    """Return the reply at the end of an utterance; without a word it lists none.

    Args:
        text: of the utterance.
        words: of it.
        listed: whether to list them.
        alternatives: whether to answer in the form that lists transcripts. There is one, the most
            probable; its confidence is the mean of its words'.

    >>> result("two", [Word("two", 307.5, 747.5, 0.93412345)], listed=True)["result"]
    [{'conf': 0.934123, 'end': 0.7475, 'start': 0.3075, 'word': 'two'}]
    >>> result("", [], listed=True), result("", [], listed=True, alternatives=True)
    ({'text': ''}, {'alternatives': [{'confidence': 1.0, 'text': ''}]})
    """
    reply: Reply = {}
    if listed and text:
        reply["result"] = [_word(word, confidence=not alternatives) for word in words]
    if alternatives:
        confidences = [word.confidence for word in words]
        mean = round(sum(confidences) / len(confidences), 6) if confidences else 1.0
        return {"alternatives": [{"confidence": mean, **reply, "text": text}]}
    return {**reply, "text": text}


def _word(word: Word, *, confidence: bool) -> dict[str, Any]:
    return {
        **({"conf": round(word.confidence, 6)} if confidence else {}),
        "end": round(word.end_ms / 1000, 6),
        "start": round(word.start_ms / 1000, 6),
        "word": word.text,
    }


def _config(fields: object) -> VoskConfig:
    if not isinstance(fields, dict):
        raise RequestError("invalid", f"config is {brief(fields)}, but an object is expected")
    if unknown := sorted(set(fields) - _OPTIONS):
        raise RequestError(
            "invalid",
            f"config has {brief(unknown[0])}, which means nothing here: "
            f"{', '.join(sorted(_OPTIONS))} do",
        )
    if fields.get("phrase_list"):
        raise RequestError(
            "unsupported",
            "phrase_list is not offered: the model knows what it was trained on; leave it out",
            "phrase_list",
        )
    rate, words, model = fields.get("sample_rate"), fields.get("words"), fields.get("model")
    return VoskConfig(
        sample_rate=None if rate is None else _rate(rate),
        words=None if words is None else bool(words),
        max_alternatives=_alternatives(fields.get("max_alternatives")),
        model=None if model is None else as_text(model, "model"),
    )


def _alternatives(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise RequestError(
            "invalid",
            f"max_alternatives is {brief(value)}: a whole number from 0 is expected",
            "max_alternatives",
        )
    return value


def _rate(value: object) -> int:
    """Return a rate, which some clients write as text."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    return as_rate(value)
