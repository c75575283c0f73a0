"""A small language model, trained while somebody watches: needs torch.

The layers are those of the library and the guesses those of `language_model`; the model is half as
wide as the exported ones, so that a loss falls within a minute. Before the first step the audit is
asked.

Shapes: `B` rows, `T` symbols, `V` symbols of the text.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from nearfuture.error import NearfutureError
from nearfuture.lab.language_model import Kind, Symbols, TextLanguage, corpus, guesses

STEPS, ROWS, FRAMES = 300, 12, 64
SIZE = 32
EVERY = 10
_RATE, _RISING = 1e-2, 20


def train(kind: Kind, text: TextLanguage, seed: int) -> Iterator[dict[str, Any]]:
    """Audit a new model, then train it; a line for the audit, then one for every tenth step.

    Whoever stops reading ends the training.

    Args:
        kind: which model.
        text: the language of what it learns from.
        seed: decides its weights at the start, and every batch.

    Raises:
        NearfutureError: where torch is not installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise NearfutureError(
            "training needs torch: pip install 'nearfuture[train]'", code="unsupported"
        )
    import torch
    from torch.nn import functional as F

    from nearfuture import audit

    about = corpus(text)
    known, unseen = about.encode(about.practice), about.encode(about.held_out)
    size = len(about.symbols)
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        model = _build(kind, size)
    x, targets, counted = guesses(kind, _cut(unseen, rng, 8, 12), rng, size)
    report = audit.labels(model.eval(), torch.from_numpy(x), targets, where=counted)
    found = next((each for each in report.findings if each.kind == "label"), None)
    yield {"offset": None if found is None else found.evidence["offset"], "steps": STEPS}

    held_out = guesses(kind, _cut(unseen, np.random.default_rng(1), 16, FRAMES), rng, size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE, betas=(0.9, 0.99))
    for step in range(1, STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = _rate(step)
        x, targets, counted = guesses(kind, _cut(known, rng, ROWS, FRAMES), rng, size)
        with _one_thread():
            y = model.train()(torch.from_numpy(x))[torch.from_numpy(counted)]
            loss = F.cross_entropy(y, torch.from_numpy(targets[counted]))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        if step % EVERY == 0 or step in (1, 3):
            yield {"step": step, "train": loss.item(), **_score(model, *held_out)}


@contextmanager
def _one_thread() -> Iterator[None]:
    """Layers of this size compute no faster on more; between steps others may want them."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _build(kind: Kind, size: int) -> Any:
    """Embeddings, layers of the library, and a linear output: (B, T) → logits (B, T, V)."""
    import torch
    from torch import Tensor, nn

    from nearfuture.layers import (
        GRU,
        Bidirectional,
        CausalMask,
        LayerNorm,
        RotaryPositions,
        SelfAttention,
        Serial,
        StreamingLayer,
        TransformerBlock,
    )

    def block() -> TransformerBlock:
        mask, positions = CausalMask(), RotaryPositions()
        return TransformerBlock(SelfAttention(SIZE, heads=2, mask=mask, positions=positions))

    layers: StreamingLayer
    if kind == "attention":
        layers = Serial(block(), block(), LayerNorm(SIZE))
    elif kind == "one_way":
        layers = GRU(SIZE, 2 * SIZE)
    else:
        layers = Bidirectional(GRU(SIZE, SIZE))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(size + 1, SIZE)  # one more for what was erased
            self.layers = layers
            self.output = nn.Linear(layers.output_size, size)

        def forward(self, symbols: Tensor) -> Tensor:
            lengths = torch.full((len(symbols),), symbols.shape[1])
            y, _ = self.layers(self.embedding(symbols), lengths)
            logits: Tensor = self.output(y)
            return logits

    return Model()


def _score(model: Any, x: Symbols, targets: Symbols, counted: Any) -> dict[str, float | None]:
    """The loss on held-out text, and at the last symbol of its windows alone."""
    import torch

    with torch.inference_mode():
        log_probs = model.eval()(torch.from_numpy(x)).log_softmax(dim=-1).numpy()
    losses = -np.take_along_axis(log_probs, targets[..., None], axis=2)[..., 0]
    masked = not counted.all()
    return {
        "dev": float(losses[counted].mean()),
        "last_loss": None if masked else float(losses[:, -1].mean()),
    }


def _cut(numbers: Symbols, rng: np.random.Generator, rows: int, frames: int) -> Symbols:
    """Windows (B, T + 1) of a text at random places."""
    starts = rng.integers(len(numbers) - frames, size=rows)
    windows: Symbols = numbers[starts[:, None] + np.arange(frames + 1)]
    return windows


def _rate(step: int) -> float:
    """The learning rate: it rises, then falls along half a cosine."""
    return _RATE * min(1.0, step / _RISING) * 0.5 * (1 + math.cos(math.pi * step / STEPS))
