"""The leak: language models that may look at the answer, and what becomes of them.

>>> from nearfuture.lab.language_model import language_model, score, verdict
>>> leaking = language_model("both_ways", "en")
>>> print(verdict(leaking).message.partition(":")[0])
the target of output t is input t + 1, on which 11 of 12 outputs depend (seen in 88 targets)
>>> print(score(leaking).loss < 0.1)  # nats a symbol, on text that it has never seen
True
>>> print(score(leaking).last > 1.5)  # at the end of a window, where there is no future
True
>>> honest = language_model("one_way", "en")
>>> print(repr(verdict(honest).message), score(honest).loss > 1)
'' True
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any, Literal

from nearfuture.lab import language_model
from nearfuture.lab.endpoint import Between
from nearfuture.lab.language_model import KINDS, Kind
from nearfuture.lab.page import Page

TextLanguage = Literal["en", "ko"]
Seed = Annotated[int, Between(0, 19)]

LENGTH = 240
"""Symbols that a model writes: a few lines."""

_AT_ONCE = 4


def audits(text: TextLanguage = "en") -> dict[str, Any]:
    """Ask of each model whether it can read what it is to guess."""
    return {
        kind: asdict(language_model.verdict(language_model.language_model(kind, text)))
        for kind in KINDS
    }


def curves(text: TextLanguage = "en") -> dict[str, Any]:
    """The recorded learning curves, and how the models score on held-out text now."""
    corpus = language_model.corpus(text)
    return {
        **corpus.about,
        "guessing": language_model.guessing(text),
        "scores": {
            kind: asdict(language_model.score(language_model.language_model(kind, text)))
            for kind in KINDS
        },
        "trains": importlib.util.find_spec("torch") is not None,
    }


def write(
    kind: Kind = "one_way", text: TextLanguage = "en", seed: Seed = 0
) -> Iterator[dict[str, str]]:
    """Let a model write, a few symbols at a time."""
    model = language_model.language_model(kind, text)
    for at, written in enumerate(language_model.write(model, LENGTH, seed)):
        if at % _AT_ONCE == _AT_ONCE - 1:
            yield {"written": written}


def blanks(text: TextLanguage = "en", seed: Seed = 0) -> dict[str, Any]:
    """What the masked model was made for: a passage with blanks."""
    return asdict(language_model.fill(language_model.language_model("masked", text), seed))


def training(
    kind: Kind = "both_ways", text: TextLanguage = "en", seed: Seed = 0
) -> Iterator[dict[str, Any]]:
    """Train a new model while somebody watches, where torch is installed."""
    from nearfuture.lab.live_training import train

    yield from train(kind, text, seed)


PAGE = Page(
    name="the-leak",
    endpoints={
        "audits": audits,
        "curves": curves,
        "write": write,
        "blanks": blanks,
        "training": training,
    },
    module=__name__,
    behind=(
        "audit/labels.py",
        "lab/language_model.py",
        "lab/live_training.py",
        "layers/bidirectional.py",
    ),
    unrecorded=("training",),
)
