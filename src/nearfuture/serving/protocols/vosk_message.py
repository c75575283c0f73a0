"""The messages of vosk-server's websocket protocol, parsed as JSON and written as its clients read.

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
from nearfuture.serving.limits import Refused, shown
from nearfuture.serving.pcm import as_rate


class Command(Enum):
    """What is demanded: `EOF`, the last result; `RESET`, a result and a fresh start."""

    EOF = "eof"
    RESET = "reset"


@dataclass(frozen=True)
class Config:
    """What a `config` message sets.

    Attributes:
        sample_rate: of the audio, in Hz; None where it is not named.
        words: whether results list their words; None where it is not named.
        max_alternatives: how many readings a result may list, 0 for the plain form; None where it
            is not named.
        model: by its name; None where it is not named.
    """

    sample_rate: int | None = None
    words: bool | None = None
    max_alternatives: int | None = None
    model: str | None = None


Control: TypeAlias = Command | Config

_OPTIONS = {"sample_rate", "words", "max_alternatives", "model", "phrase_list"}


def parse(text: str) -> Control:
    """A text message, however it is spaced.

    Raises:
        Refused: for what is no such message, and for a config that asks for what is not offered.

    >>> parse('{"eof":1}'), parse('{ "config" : { "sample_rate" : 16000 } }').sample_rate
    (<Command.EOF: 'eof'>, 16000)
    """
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused("bad_message", f"text that is not JSON: {shown(text)}") from error
    if isinstance(told, dict):
        if "config" in told:
            return _config(told["config"])
        for command in Command:
            if told.get(command.value) in (1, True):
                return command
    raise Refused(
        "bad_message",
        f'not understood: {shown(text)}; there are {{"config": {{"sample_rate": 16000}}}}, '
        f'{{"eof": 1}} and {{"reset": 1}}, and audio is binary',
    )


def partial(text: str) -> str:
    """The reply while somebody speaks.

    >>> partial("two on")
    '{"partial": "two on"}'
    """
    return _written({"partial": text})


def result(text: str, words: Sequence[Word], *, listed: bool, alternatives: bool = False) -> str:
    """The reply when an utterance has ended; its words are left out where there are none.

    Args:
        text: of the utterance.
        words: of it.
        listed: whether to list them.
        alternatives: whether to answer in the form that lists readings. There is one, the most
            probable; its confidence is the mean of its words'.

    >>> print(result("two", [Word("two", 307.5, 747.5, 0.93412345)], listed=True))
    {"result": [{"conf": 0.934123, "end": 0.7475, "start": 0.3075, "word": "two"}], "text": "two"}
    >>> result("", [], listed=True), result("", [], listed=True, alternatives=True)
    ('{"text": ""}', '{"alternatives": [{"confidence": 1.0, "text": ""}]}')
    """
    told: dict[str, Any] = {}
    if listed and text:
        told["result"] = [_word(word, sure=not alternatives) for word in words]
    if alternatives:
        sure = [word.confidence for word in words]
        confidence = round(sum(sure) / len(sure), 6) if sure else 1.0
        return _written({"alternatives": [{"confidence": confidence, **told, "text": text}]})
    return _written({**told, "text": text})


def _word(word: Word, *, sure: bool) -> dict[str, Any]:
    return {
        **({"conf": round(word.confidence, 6)} if sure else {}),
        "end": round(word.end_ms / 1000, 6),
        "start": round(word.start_ms / 1000, 6),
        "word": word.text,
    }


def _config(told: object) -> Config:
    if not isinstance(told, dict):
        raise Refused("bad_request", f"config is {shown(told)}, but an object is wanted")
    if odd := sorted(set(told) - _OPTIONS):
        raise Refused(
            "bad_request",
            f"config has {shown(odd[0])}, which means nothing here: {', '.join(sorted(_OPTIONS))} "
            f"do",
        )
    if told.get("phrase_list"):
        raise Refused(
            "bad_request",
            "phrase_list is not offered: the model hears all that it has learned; leave it out",
        )
    rate, words, model = told.get("sample_rate"), told.get("words"), told.get("model")
    if not isinstance(model, str | None):
        raise Refused("bad_request", f"model is {shown(model)}, but a name is wanted")
    return Config(
        sample_rate=None if rate is None else _rate(rate),
        words=None if words is None else bool(words),
        max_alternatives=_alternatives(told.get("max_alternatives")),
        model=model,
    )


def _alternatives(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Refused(
            "bad_request", f"max_alternatives is {shown(value)}: a whole number from 0 is wanted"
        )
    return value


def _rate(value: object) -> int:
    """A rate, which some clients write as text."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    return as_rate(value)


def _written(told: dict[str, Any]) -> str:
    return json.dumps(told, ensure_ascii=False)
