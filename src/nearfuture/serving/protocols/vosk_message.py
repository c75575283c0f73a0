"""The messages of vosk-server's websocket protocol, parsed as JSON and written as its clients read.

Source: alphacep/vosk-server, `websocket/asr_server.py`, and what its recogniser returns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from nearfuture.decoding import Word
from nearfuture.serving.limits import Refused, shown
from nearfuture.serving.pcm import as_rate

__all__ = ["Command", "Config", "Control", "parse", "partial", "result"]


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
    """

    sample_rate: int | None = None
    words: bool | None = None


Control: TypeAlias = Command | Config


def parse(text: str) -> Control:
    """A text message, however it is spaced.

    In a config, `phrase_list`, `max_alternatives`, `model` and anything else is passed over.

    Raises:
        Refused: for what is no such message.

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


def result(text: str, words: Iterable[Word], *, listed: bool) -> str:
    """The reply when an utterance has ended; its words are left out where there are none.

    >>> print(result("two", [Word("two", 307.5, 747.5, 0.93412345)], listed=True))
    {"result": [{"conf": 0.934123, "end": 0.7475, "start": 0.3075, "word": "two"}], "text": "two"}
    >>> result("", [], listed=True)
    '{"text": ""}'
    """
    told: dict[str, Any] = {}
    if listed and text:
        told["result"] = [
            {
                "conf": round(word.confidence, 6),
                "end": round(word.end_ms / 1000, 6),
                "start": round(word.start_ms / 1000, 6),
                "word": word.text,
            }
            for word in words
        ]
    return _written({**told, "text": text})


def _config(told: object) -> Config:
    if not isinstance(told, dict):
        raise Refused("bad_request", f"config is {shown(told)}, but an object is wanted")
    rate, words = told.get("sample_rate"), told.get("words")
    return Config(
        sample_rate=None if rate is None else _rate(rate),
        words=None if words is None else bool(words),
    )


def _rate(value: object) -> int:
    """A rate, which some clients write as text."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    return as_rate(value)


def _written(told: dict[str, Any]) -> str:
    return json.dumps(told, ensure_ascii=False)
