"""All models of a language: audited before their first step, trained, scored, and let write."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from recipes.language_models.generation import Filled, fill, generate
from recipes.language_models.judge import NGram, Quality, quality
from recipes.language_models.model import TITLES, CharacterModel, Kind
from recipes.language_models.task import audit_labels, batch, random_windows
from recipes.language_models.text import Language, Text
from recipes.language_models.training import Point, Score, Trained, TrainingConfig, score, train

PROMPT = "\n"
"""Texts begin as a paragraph does."""

_SAMPLES, _SAMPLE_SYMBOLS = 24, 200
_FILLED_SYMBOLS = 160


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What `audit.labels` says of a model that has not been trained.

    Attributes:
        lookahead: symbols after its own that an output depends on; inf: all.
        offset: how far ahead of an output its target lies in the input, None where it does not.
        message: the finding in words, "" where there is none.
    """

    lookahead: float
    offset: int | None
    message: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One model of a language after its training.

    Attributes:
        language: of its text.
        trained: the model and its curve.
        verdict: of the audit before the first step.
        dev: how it predicts held-out text.
        written: what it writes, decomposed; all continue a paragraph's beginning.
        quality: of what it writes.
        filled: blanks that the masked model filled; none for the others.
    """

    language: Language
    trained: Trained
    verdict: Verdict
    dev: Score
    written: tuple[str, ...]
    quality: Quality
    filled: tuple[Filled, ...]

    @property
    def kind(self) -> Kind:
        """Which model."""
        return self.trained.model.kind


@dataclass(frozen=True, kw_only=True)
class Anchors:
    """What the figures of a language are to be read beside.

    Attributes:
        symbols: V.
        uniform: ln V, the loss of one who knows nothing.
        ngram: loss on held-out text of a 5-gram model of the training text.
        real: quality of real text, of the same length as what a model writes: the beginning of
            what the models learn from, which the judge has not read.
        shuffled: quality of its symbols in random order.
    """

    symbols: int
    uniform: float
    ngram: float
    real: Quality
    shuffled: Quality


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All that a language's models and anchors are.

    Attributes:
        text: of the language.
        outcomes: its models, in the order in which they were trained.
        anchors: what they are to be read beside.
    """

    text: Text
    outcomes: tuple[Outcome, ...]
    anchors: Anchors


def anchors(text: Text) -> Anchors:
    """Measure what needs no model: ln V, counting, real text, and shuffled text."""
    size = len(text.symbols)
    real = text.train[: _SAMPLES * _SAMPLE_SYMBOLS]
    order = torch.randperm(len(real), generator=torch.Generator().manual_seed(0))
    return Anchors(
        symbols=size,
        uniform=math.log(size),
        ngram=NGram(text.train, symbols=size).cross_entropy(text.dev),
        real=quality(real, text),
        shuffled=quality("".join(real[i] for i in order.tolist()), text),
    )


def verdict(kind: Kind, text: Text, config: TrainingConfig) -> Verdict:
    """Audit the labels of a model as it is before the first step, on a batch as in training."""
    torch.manual_seed(config.seed)
    model = CharacterModel(kind, len(text.symbols), size=config.size)
    generator = torch.Generator().manual_seed(config.seed)
    windows = random_windows(text.encode(text.train), 4, 24, generator)
    report = audit_labels(model, batch(kind, windows, generator))
    found = next((f for f in report.findings if f.kind == "label"), None)
    return Verdict(
        lookahead=math.nan if report.lookahead is None else report.lookahead,
        offset=None if found is None else int(found.evidence["offset"]),
        message="" if found is None else found.message,
    )


def run(
    text: Text,
    config: TrainingConfig,
    folder: Path | None = None,
    *,
    kinds: Sequence[Kind] = tuple(TITLES),
    temperature: float = 1.0,
    progress: Callable[[Kind, Point], None] = lambda kind, point: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> list[Outcome]:
    """Audit, train and try each model; those already trained in the folder are not trained again.

    Args:
        text: what they learn.
        config: how they are trained.
        folder: where their checkpoints are kept, if at all.
        kinds: which models.
        temperature: at which they write.
        progress: called at each validation.
        interrupted: asked after each step; True ends the training, and what is there is judged.
    """
    numbers, dev = text.encode(text.train), text.encode(text.dev)
    outcomes = []
    for kind in kinds:
        said = verdict(kind, text, config)
        trained = train(
            kind,
            len(text.symbols),
            numbers,
            dev,
            config,
            checkpoint=folder and folder / f"{kind}.safetensors",
            progress=lambda point, kind=kind: progress(kind, point),  # type: ignore[misc]
            interrupted=interrupted,
        )
        outcomes.append(_outcome(text, trained, said, config, temperature))
        if not trained.finished or interrupted():
            break
    return outcomes


def _outcome(
    text: Text, trained: Trained, said: Verdict, config: TrainingConfig, temperature: float
) -> Outcome:
    model = trained.model
    written = generate(
        model,
        text,
        PROMPT,
        count=_SAMPLE_SYMBOLS,
        rows=_SAMPLES,
        temperature=temperature,
        seed=config.seed,
    )
    filled: list[Filled] = []
    if model.kind == "masked":
        truths = [text.dev[i : i + _FILLED_SYMBOLS] for i in (0, 1000, 2000)]
        filled = [fill(model, text, truth, seed=i) for i, truth in enumerate(truths) if truth]
    return Outcome(
        language=text.language,
        trained=trained,
        verdict=said,
        dev=score(model, text.encode(text.dev), frames=config.frames),
        written=tuple(written),
        quality=quality("".join(written), text),
        filled=tuple(filled),
    )
