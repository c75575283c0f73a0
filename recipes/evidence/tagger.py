"""Which sense has a word? A tagger one way, one way with a lookahead, and both ways.

All three are a GRU over words with one output at each word; the one at the word of two senses is
asked. What it is after each word that arrives is its output on the words so far as if they were
all: one way it is settled at the word itself, with a lookahead τ words later, both ways at the end.

Shapes: `B` sentences, `T` words, `V` vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture import NearfutureError
from nearfuture.layers import GRU, Bidirectional, Lookahead, Pointwise, Serial
from recipes.amounts import Amounts
from recipes.evidence.sentences import AmbiguousWord, Sentence

KINDS = ("one way", "lookahead 2", "lookahead 4", "both ways")
_WIDTH = 32
_BATCH = 32
_UNKNOWN_SHARE = 0.05  # of the words in training, so that a new word means nothing
_CUT_SHARE = 0.5  # of the sentences in training end early: the tagger is asked before the end, too


@dataclass(frozen=True, kw_only=True)
class TaggerOptions(Amounts):
    """How taggers are trained and tested.

    Args:
        steps: of training, each of 32 sentences.
        tests: sentences for each distance of the evidence.
        seeds: trainings of each kind.

    Raises:
        NearfutureError: for a number below 1.
    """

    steps: int = 500
    tests: int = 40
    seeds: int = 3


class Tagger:
    """A trained tagger of one word.

    Args:
        layer: (B, T, V) one-hot words → (B, T, 2) logits of the two senses.
        vocabulary: the words; the first one stands for all others.
    """

    def __init__(self, layer: Serial, vocabulary: Sequence[str]) -> None:
        self.layer = layer
        self.vocabulary = tuple(vocabulary)
        self._index = {word: number for number, word in enumerate(self.vocabulary)}

    def encode(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """One-hot words (B, T, V) and lengths (B,)."""
        lengths = torch.tensor([len(words) for words in sentences])
        size = int(lengths.max())
        ids = [[self._index.get(word, 0) for word in words] for words in sentences]
        padded = torch.tensor([row + [0] * (size - len(row)) for row in ids])
        return F.one_hot(padded, len(self.vocabulary)).float(), lengths

    def probability(self, sentences: Sequence[Sequence[str]], target: int) -> NDArray[np.float64]:
        """The probability of the second sense at a word of each sentence, (B,)."""
        x, lengths = self.encode(sentences)
        with torch.inference_mode():
            y, _ = self.layer(x, lengths)
        return np.asarray(y[:, target].double().softmax(dim=-1)[:, 1].numpy())

    def as_words_arrive(self, words: Sequence[str], target: int) -> NDArray[np.float64]:
        """The probability of the second sense at a word, after that word and after each behind it.

        Args:
            words: of the sentence.
            target: where the word of two senses is.

        Returns:
            (T - target,).
        """
        return self.probability([words[:end] for end in range(target + 1, len(words) + 1)], target)


def build(kind: str, vocabulary: int) -> Serial:
    """The layers of a tagger: "one way", "lookahead τ" with its τ in words, or "both ways".

    Raises:
        NearfutureError: for another kind.

    >>> [build(kind, 9).field.right for kind in KINDS]
    [0, 2, 4, inf]
    """
    first = Pointwise(nn.Linear(vocabulary, _WIDTH, bias=False), vocabulary, _WIDTH)
    last = Pointwise(nn.Linear(_WIDTH, 2), _WIDTH, 2)
    if kind == "both ways":
        return Serial(first, Bidirectional(GRU(_WIDTH, _WIDTH // 2)), last)
    if kind == "one way":
        return Serial(first, GRU(_WIDTH, _WIDTH), last)
    name, _, frames = kind.partition(" ")
    if name != "lookahead" or not frames.isdecimal():
        raise NearfutureError(
            f"a tagger reads one way, with a lookahead like 'lookahead 2', or both ways, "
            f"not {kind!r}",
            parameter="kind",
        )
    return Serial(first, GRU(_WIDTH, _WIDTH), Lookahead(_WIDTH, int(frames)), last)


def train(
    word: AmbiguousWord,
    kind: str,
    *,
    steps: int,
    seed: int,
    report: Callable[[int, float], None] = lambda step, loss: None,
) -> Tagger:
    """Train a tagger on the training sentences of a word.

    Half of a batch has its evidence before the word, half behind it; half of the sentences are cut
    somewhere behind the word.

    Args:
        word: whose senses it learns.
        kind: one of `KINDS`, or a lookahead of another τ.
        steps: of training.
        seed: decides weights and batches.
        report: called after each step with its loss.
    """
    rng = np.random.default_rng(seed)
    vocabulary = word.vocabulary
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        tagger = Tagger(build(kind, len(vocabulary)), vocabulary)
    layer = tagger.layer
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-2, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
    layer.train()
    for step in range(steps):
        batch = [word.draw(rng, behind=bool(row % 2)) for row in range(_BATCH)]
        x, lengths = tagger.encode([_worn(sentence, rng) for sentence in batch])
        y, _ = layer(x, lengths)
        targets = torch.tensor([sentence.target for sentence in batch])
        senses = torch.tensor([sentence.sense for sentence in batch])
        loss = F.cross_entropy(y[torch.arange(len(batch)), targets], senses)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        report(step + 1, float(loss.detach()))
    layer.eval()
    return tagger


def _worn(sentence: Sentence, rng: np.random.Generator) -> list[str]:
    """The words of a sentence, some of them unknown, perhaps cut behind the word of two senses."""
    words = [
        "" if index != sentence.target and rng.random() < _UNKNOWN_SHARE else word
        for index, word in enumerate(sentence.words)
    ]
    if rng.random() < _CUT_SHARE:
        words = words[: int(rng.integers(sentence.target + 1, len(words) + 1))]
    return words


def accuracy_by_distance(tagger: Tagger, word: AmbiguousWord, tests: int) -> dict[int, float]:
    """The share of right answers on test sentences, by how far behind the word the evidence comes.

    Evidence before the word counts as distance 0: it is there when the word is.
    """
    sentences = word.before("test") + word.behind("test")
    groups: dict[int, list[Sentence]] = {}
    for sentence in sentences:
        groups.setdefault(max(0, sentence.distance), []).append(sentence)
    found = {}
    for distance, group in sorted(groups.items()):
        chosen = _balanced(group, tests)
        if not chosen:  # of one sense only
            continue
        right = [
            (tagger.probability([each.words], each.target)[0] > 0.5) == each.sense
            for each in chosen
        ]
        found[distance] = float(np.mean(right))
    return found


def _balanced(group: Sequence[Sentence], count: int) -> list[Sentence]:
    """The same sentences each time, half of either sense."""
    rng = np.random.default_rng(0)
    senses = [[each for each in group if each.sense == sense] for sense in (0, 1)]
    size = min(count // 2, *map(len, senses))
    return [one[index] for one in senses for index in rng.choice(len(one), size, replace=False)]
