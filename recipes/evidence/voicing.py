"""Recognisers of one sound: /t/ or /d/, decided at the burst by models of each lookahead.

Each model is a small streaming recogniser with frames of 10 ms. Its training asks for the answer at
the frame of the burst and for the blank everywhere else; a CTC loss would let a model without
lookahead answer later, where the voice has been heard. How long the onset of voicing lasts is drawn
for each consonant around what people do: 5 ms for /d/ and 70 ms for /t/.

Source: Lisker and Abramson, "A cross-language study of voicing in initial stops", 1964.

Shapes: `B` tokens, `N` samples, `T` frames, `K` onsets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from nearfuture.budget import FeatureConfig, RecognizerConfig, RecurrenceConfig
from nearfuture.model import Recognizer
from recipes.amounts import Amounts
from recipes.evidence.plosives import BEFORE_MS, RATE, VOTS_MS, Voices, synthesise

FRAME_MS = 10
BURST_FRAME = BEFORE_MS // FRAME_MS
LOOKAHEADS = tuple(range(7))
SYMBOLS = ("d", "t")

_MEAN_MS, _SPREAD_MS = {"d": 5.0, "t": 70.0}, {"d": 10.0, "t": 20.0}
_BLANK_WEIGHT = 0.2
_BATCH = 64
_TEST_SEED = 2026


@dataclass(frozen=True, kw_only=True)
class VoicingOptions(Amounts):
    """How much is trained and tested.

    Args:
        tokens: consonants that each seed trains on.
        steps: of training.
        tests: voices that say every onset in the test.
        seeds: trainings of each lookahead; each has tokens and initial weights of its own.

    Raises:
        NearfutureError: for a number below 1.
    """

    tokens: int = 1000
    steps: int = 250
    tests: int = 30
    seeds: int = 3


def onset_probabilities(consonant: str) -> NDArray[np.float64]:
    """How often each onset of `VOTS_MS` occurs in a consonant: a normal distribution, cut off.

    >>> [round(float(onset_probabilities(c) @ np.array(VOTS_MS))) for c in "dt"]
    [9, 68]
    """
    deviation = (np.array(VOTS_MS) - _MEAN_MS[consonant]) / _SPREAD_MS[consonant]
    density = np.exp(-0.5 * deviation**2)
    return np.asarray(density / density.sum())


def ideal_t(lookahead_frames: int) -> NDArray[np.float64]:
    """The probability of /t/ for whoever knows the distributions and hears all that may be heard.

    At the burst with lookahead τ that is 10·(τ+1) ms: an onset within them, exactly; of a later
    one, that it is later.

        P(/t/ | onset v) = p(v | t) / (p(v | t) + p(v | d)),   and for v ≥ 10·(τ+1) the same of sums

    Returns:
        (K,): by onset.

    >>> ideal_t(0).round(2)[[0, 1, 2, -1]].tolist()
    [0.0, 0.0, 0.66, 0.66]
    """
    t, d = onset_probabilities("t"), onset_probabilities("d")
    later = np.array(VOTS_MS) >= FRAME_MS * (lookahead_frames + 1)
    t, d = (np.where(later, p[later].sum(), p) for p in (t, d))
    return np.asarray(t / (t + d))


def config(lookaheads: Sequence[int]) -> RecognizerConfig:
    """The recogniser: 10 ms windows side by side, one GRU, a head for each lookahead."""
    return RecognizerConfig(
        symbols=SYMBOLS,
        features=FeatureConfig(rate=RATE, window_ms=FRAME_MS, hop_ms=FRAME_MS, mel_bins=16),
        stack=1,
        recurrence=RecurrenceConfig(hidden=24, layers=1),
        heads=tuple(lookaheads),
        output_hidden=False,
        dropout=0.0,
    )


def consonants(
    count: int, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """So many consonants, with onsets as people have them: (B, N), and 0 for d, 1 for t."""
    labels = rng.integers(0, 2, count)
    onsets = np.stack([rng.choice(VOTS_MS, count, p=onset_probabilities(c)) for c in SYMBOLS])
    vot_ms = onsets[labels, np.arange(count)]
    return synthesise(vot_ms, Voices.draw(count, rng), rng), labels


def train(
    lookaheads: Sequence[int],
    options: VoicingOptions,
    *,
    seed: int,
    report: Callable[[int, float], None] = lambda step, loss: None,
    data: tuple[NDArray[np.float32], NDArray[np.int64]] | None = None,
) -> Recognizer:
    """Train a recogniser with these heads.

    Args:
        lookaheads: one head, or several over one encoder.
        options: how many tokens and steps.
        seed: decides the tokens, the initial weights and the batches.
        report: called after each step with its loss.
        data: what `consonants` gave for this seed, where it is at hand.
    """
    rng = np.random.default_rng(seed)
    pcm, labels = data or consonants(options.tokens, rng)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        model = Recognizer(config(lookaheads))
    features, frames = _features(model, pcm)
    targets = torch.zeros(len(pcm), features.shape[1], dtype=torch.int64)
    targets[:, BURST_FRAME] = torch.from_numpy(labels) + 1  # behind the blank
    weight = torch.full((features.shape[1],), _BLANK_WEIGHT / features.shape[1])
    weight[BURST_FRAME] = 1.0
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=options.steps)
    model.train()
    for step in range(options.steps):
        rows = torch.from_numpy(rng.integers(0, len(pcm), _BATCH))
        heads, _ = model(features[rows], frames[rows])
        losses = [
            F.nll_loss(head.transpose(1, 2), targets[rows], reduction="none") for head in heads
        ]
        loss = (torch.stack(losses).mean(dim=(0, 1)) * weight).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        report(step + 1, float(loss.detach()))
    return model.eval()


def t_probabilities(model: Recognizer, pcm: NDArray[np.float32]) -> dict[int, NDArray[np.float64]]:
    """The probability of /t/ against /d/ at the burst, (B,) by lookahead."""
    with torch.inference_mode():
        heads, _ = model(*_features(model, pcm))
    return {
        tau: head[:, BURST_FRAME, 1:].double().softmax(dim=-1)[:, 1].numpy()
        for tau, head in zip(model.config.heads, heads, strict=True)
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class Identification:
    """How models of each lookahead hear the continuum between /d/ and /t/.

    Args:
        lookaheads: τ in frames of 10 ms.
        t: (seeds, τ, K), the mean probability of /t/ over the test voices.
        answered_t: (seeds, τ, K), the share of test voices in which /t/ is the answer.
        shared: (seeds, τ, K), the probability of one model with a head for each lookahead.
    """

    lookaheads: tuple[int, ...]
    t: NDArray[np.float64]
    answered_t: NDArray[np.float64]
    shared: NDArray[np.float64]

    def accuracy(self) -> NDArray[np.float64]:
        """(seeds, τ): the share of right answers, onsets as often as people have them."""
        t, d = onset_probabilities("t"), onset_probabilities("d")
        return np.asarray(0.5 * (self.answered_t @ t + (1 - self.answered_t) @ d))

    @classmethod
    def join(cls, parts: Sequence[Identification]) -> Identification:
        """The seeds of several, one behind another."""
        return cls(
            lookaheads=parts[0].lookaheads,
            **{
                name: np.concatenate([getattr(part, name) for part in parts])
                for name in ("t", "answered_t", "shared")
            },
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        arrays = {name: getattr(self, name).tolist() for name in ("t", "answered_t", "shared")}
        return {"lookaheads": list(self.lookaheads), "onsets_ms": list(VOTS_MS), **arrays}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Identification:
        """The inverse of `to_json`."""
        arrays = {name: np.array(values[name]) for name in ("t", "answered_t", "shared")}
        return cls(lookaheads=tuple(values["lookaheads"]), **arrays)


def ideal_accuracy(lookahead_frames: int) -> float:
    """The share of right answers of whoever answers by `ideal_t`.

    >>> [round(100 * ideal_accuracy(tau), 1) for tau in (0, 1, 2, 3, 6)]
    [74.2, 93.1, 98.4, 98.4, 98.4]
    """
    said = ideal_t(lookahead_frames) > 0.5
    return float(0.5 * (onset_probabilities("t") @ said + onset_probabilities("d") @ ~said))


def identify(
    options: VoicingOptions,
    *,
    seed: int,
    lookaheads: Sequence[int] = LOOKAHEADS,
    report: Callable[[str], None] = lambda activity: None,
) -> Identification:
    """Train a model of each lookahead, and let them hear the whole continuum.

    The test voices are new to every model and the same for all seeds. One model more carries all
    lookaheads as heads over one encoder.

    Args:
        options: how much is trained and tested.
        seed: of the tokens and of the initial weights.
        lookaheads: τ of each.
        report: called with what is done next.
    """
    rng = np.random.default_rng(_TEST_SEED)
    voices = Voices.draw(options.tests, rng).repeat(len(VOTS_MS))
    continuum = synthesise(np.tile(VOTS_MS, options.tests), voices, rng)
    report(f"seed {seed}: speaking {options.tokens} consonants")
    data = consonants(options.tokens, np.random.default_rng(seed))
    t, answered = [], []
    for tau in lookaheads:
        report(f"seed {seed}: training τ = {tau}")
        model = train((tau,), options, seed=seed, data=data)
        p = t_probabilities(model, continuum)[tau].reshape(options.tests, -1)
        t.append(p.mean(axis=0))
        answered.append((p > 0.5).mean(axis=0))
    report(f"seed {seed}: training one model of all lookaheads")
    by_head = t_probabilities(train(lookaheads, options, seed=seed, data=data), continuum)
    shared = [by_head[tau].reshape(options.tests, -1).mean(axis=0) for tau in lookaheads]
    return Identification(
        lookaheads=tuple(lookaheads),
        t=np.array([t]),
        answered_t=np.array([answered]),
        shared=np.array([shared]),
    )


def _features(model: Recognizer, pcm: NDArray[np.float32]) -> tuple[Tensor, Tensor]:
    lengths = torch.full((len(pcm),), pcm.shape[1])
    with torch.no_grad():
        return model.features(torch.from_numpy(pcm)[..., None], lengths)
