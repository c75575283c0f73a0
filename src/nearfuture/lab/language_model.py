"""Four kinds of small language models: what they may look at, how they score, what they write.

They guess the next symbol of an English text, or the next jamo of a Korean one; a masked model
guesses symbols that were erased. `tools/make_lab_language_models.py` trained and exported them.

Shapes: `B` rows, `T` symbols, `V` symbols of the text.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from nearfuture.lab.graphs import open_session
from nearfuture.lab.page import ASSETS

Kind = Literal["one_way", "both_ways", "masked", "attention"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TextLanguage = Literal["en", "ko"]

FOLDER = ASSETS / "language_models"
WINDOW = 128
"""Symbols that a model reads at once, as many as in training."""

_ERASED_SHARE = 0.15

Symbols = NDArray[np.int64]


@dataclass(frozen=True)
class Corpus:
    """A text and its symbols, decomposed (NFD).

    Attributes:
        symbols: V of them, in the order of their numbers.
        practice: some of what the models learned from.
        held_out: what they never saw.
        about: curves, numbers of weights, and how the models were made.
    """

    symbols: str
    practice: str
    held_out: str
    about: dict[str, Any]

    def encode(self, text: str) -> Symbols:
        """Numbers (T,) of the symbols of a text that has no others."""
        return np.array([self.symbols.index(each) for each in text], np.int64)

    def decode(self, numbers: Symbols) -> str:
        """A text of symbols, Korean put together into syllables."""
        return unicodedata.normalize("NFC", "".join(self.symbols[n] for n in numbers.tolist()))


@cache
def corpus(language: TextLanguage) -> Corpus:
    """The text of a language.

    >>> corpus("ko").decode(corpus("ko").encode(corpus("ko").held_out[:11]))[:2]
    '제4'
    """
    about = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    practice, held_out = (
        unicodedata.normalize("NFD", about.pop(part)) for part in ("practice", "held_out")
    )
    return Corpus(about.pop("symbols"), practice, held_out, about)


@dataclass(frozen=True)
class Score:
    """How a model predicts held-out text, in nats a symbol.

    Attributes:
        loss: the mean of -ln p.
        right: the share of targets that are the most probable symbol.
        last: the loss at the last symbol of each window, which no future follows; None if masked.
    """

    loss: float
    right: float
    last: float | None


@dataclass(frozen=True)
class Verdict:
    """What `audit.labels` says.

    Attributes:
        matrix: (T, T), which output depends on which input.
        offset: how far ahead of an output its target lies in what it reads; None: nowhere.
        message: of the finding, "" where there is none.
    """

    matrix: NDArray[np.bool_]
    offset: int | None
    message: str


class LanguageModel:
    """One of the models: `symbols (B, T) → log-probabilities (B, T, V)`."""

    def __init__(self, kind: Kind, language: TextLanguage) -> None:
        self.kind = kind
        self.corpus = corpus(language)
        self.erased = len(self.corpus.symbols)
        self._session = open_session(FOLDER / f"{language}-{kind.replace('_', '-')}.onnx")

    def __call__(self, symbols: Any) -> NDArray[np.float32]:
        """Log-probabilities (B, T, V) of symbols (B, T)."""
        x = np.asarray(symbols, np.int64)
        feed = {"symbols": x, "lengths": np.full(len(x), x.shape[1], np.int64)}
        y: NDArray[np.float32] = self._session.run(None, feed)[0]
        return y

    def guesses(self, windows: Symbols, seed: int) -> tuple[Symbols, Symbols, NDArray[np.bool_]]:
        """What it reads of windows (B, T + 1), what it is to guess, and which guesses count."""
        return guesses(self.kind, windows, np.random.default_rng(seed), self.erased)

    def following(self, written: Symbols) -> NDArray[np.float64]:
        """The distribution (V,) of the symbol behind a text (T,); nothing is known of the future.

        The input of a model that reads both ways ends where the text ends. A masked one gets an
        erased symbol behind it.
        """
        window = written[-WINDOW:]
        if self.kind == "masked":
            window = np.append(window[1 - WINDOW :], self.erased)
        p = np.exp(self(window[None])[0, -1].astype(np.float64))
        share: NDArray[np.float64] = p / p.sum()
        return share


@cache
def language_model(kind: Kind, language: TextLanguage) -> LanguageModel:
    """Open a model, once in a process."""
    return LanguageModel(kind, language)


def guesses(
    kind: Kind, windows: Symbols, rng: np.random.Generator, erased: int
) -> tuple[Symbols, Symbols, NDArray[np.bool_]]:
    """What a model reads of windows (B, T + 1), what it is to guess, and which guesses count.

    The next symbol; for a masked model the symbols that are erased from what it reads.

    Args:
        kind: of the model.
        windows: symbols of a text.
        rng: decides what is erased.
        erased: the number that stands for an erased symbol.

    >>> x, targets, counted = guesses("one_way", np.array([[3, 1, 4]]), np.random.default_rng(0), 9)
    >>> x.tolist(), targets.tolist()
    ([[3, 1]], [[1, 4]])
    """
    x = windows[:, :-1]
    if kind != "masked":
        return x, windows[:, 1:], np.ones(x.shape, np.bool_)
    gone = rng.random(x.shape) < _ERASED_SHARE
    gone[:, 0] |= ~gone.any(axis=1)  # every row has something to guess
    return np.where(gone, erased, x), x, gone


def verdict(model: LanguageModel, frames: int = 12, rows: int = 8) -> Verdict:
    """Ask whether a model can read what it is to guess: `audit.labels` on a batch of held-out text.

    >>> [verdict(language_model(kind, "en")).offset for kind in KINDS]
    [None, 1, None, None]
    """
    from nearfuture import audit

    windows = _windows(model.corpus, frames)[:rows]
    x, targets, counted = model.guesses(windows, seed=0)
    report = audit.labels(model, x, targets, where=counted)
    assert report.matrix is not None
    found = next((each for each in report.findings if each.kind == "label"), None)
    return Verdict(
        matrix=report.matrix,
        offset=None if found is None else int(found.evidence["offset"]),
        message="" if found is None else found.message,
    )


def score(model: LanguageModel) -> Score:
    """Score a model on all of the held-out text, cut into windows of 128 symbols."""
    x, targets, counted = model.guesses(_windows(model.corpus, WINDOW), seed=1)
    log_probs = model(x)
    losses = -np.take_along_axis(log_probs, targets[..., None], axis=2)[..., 0].astype(np.float64)
    right = log_probs.argmax(axis=2) == targets
    return Score(
        loss=float(losses[counted].mean()),
        right=float(right[counted].mean()),
        last=None if model.kind == "masked" else float(losses[:, -1].mean()),
    )


def write(model: LanguageModel, count: int, seed: int) -> Iterator[str]:
    """Let a model write, symbol by symbol as its distribution says; yield all of it so far."""
    rng = np.random.default_rng(seed)
    written = model.corpus.encode("\n")
    for _ in range(count):
        p = model.following(written)
        written = np.append(written, rng.choice(len(p), p=p))
        yield model.corpus.decode(written[1:])


@dataclass(frozen=True)
class Filled:
    """A passage whose symbols a masked model guessed where they were erased, symbol by symbol.

    Attributes:
        guess: as the model filled it, composed; blanks and truth likewise.
        right: the share of blanks that it filled rightly.
    """

    blanks: str
    guess: str
    truth: str
    right: float


def fill(model: LanguageModel, seed: int) -> Filled:
    """Erase some symbols of a held-out passage and let a masked model guess them all at once."""
    windows = _windows(model.corpus, WINDOW)
    window = windows[seed % len(windows)]
    x, _, erased = model.guesses(window[None], seed)
    truth = window[:-1]
    guess = np.where(erased[0], model(x)[0].argmax(axis=1), truth)
    decode = model.corpus.decode
    shown = [
        "_" if gone else model.corpus.symbols[n] for gone, n in zip(erased[0], truth, strict=True)
    ]
    right = float((guess == truth)[erased[0]].mean()) if erased.any() else 1.0
    return Filled(unicodedata.normalize("NFC", "".join(shown)), decode(guess), decode(truth), right)


def guessing(language: TextLanguage) -> float:
    """The loss of whoever knows nothing: ln V, in nats."""
    return math.log(len(corpus(language).symbols))


def _windows(text: Corpus, frames: int) -> Symbols:
    """The held-out text in windows one after another, (B, frames + 1)."""
    numbers = text.encode(text.held_out)
    count = (len(numbers) - 1) // frames
    starts = frames * np.arange(count)
    windows: Symbols = numbers[starts[:, None] + np.arange(frames + 1)]
    return windows
