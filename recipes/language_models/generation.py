"""What a trained model writes: one symbol after another, or into blanks.

Shapes: `B` rows, `T` symbols, `V` symbols of the text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from nearfuture import NearfutureError
from recipes.language_models.model import CharacterModel
from recipes.language_models.text import Text

WINDOW = 128
"""Symbols before the next one that a model reads: as many as in training."""


def check_temperature(temperature: float) -> None:
    """Refuse a temperature at which nothing can be drawn."""
    if not 0 < temperature < math.inf:
        raise NearfutureError(
            f"`temperature` must be above 0 and finite, not {temperature:g}: a small one, such as "
            f"0.01, draws what is most likely",
            code="out_of_range",
            parameter="temperature",
        )


@torch.inference_mode()
def next_log_probs(model: CharacterModel, written: Tensor) -> Tensor:
    """Log-probabilities (B, V) of the symbol after (B, T), T ≥ 1, whose last 128 are read.

    Nothing is known of the future. A one-way or attention model needs nothing of it. A model that
    reads both ways gets what there is: its input ends here, so its backward direction begins at the
    last symbol. A masked one is asked for a symbol that is erased at the end.
    """
    model.eval()
    window = written[:, -WINDOW:]
    if model.kind == "masked":
        blank = torch.full_like(window[:, :1], model.erased)
        window = torch.cat([window[:, -WINDOW + 1 :], blank], dim=1)
    log_probs: Tensor = model(window)
    return log_probs[:, -1]


def generate(
    model: CharacterModel,
    text: Text,
    prompt: str,
    *,
    count: int,
    rows: int = 1,
    temperature: float = 1.0,
    seed: int = 0,
) -> list[str]:
    """Continue a prompt by symbols that are drawn one by one from the model's distribution.

    Args:
        model: any of the four.
        text: whose symbols it knows.
        prompt: how each row begins; it is not part of what is returned.
        count: symbols to write in each row.
        rows: how many texts.
        temperature: below 1 it prefers what is likely; 1 draws as the model says.
        seed: decides what is drawn.

    Returns:
        What was written, decomposed as the model writes it (`text.decode` composes syllables).

    Raises:
        NearfutureError: for a temperature that is not above 0, or is infinite.
    """
    check_temperature(temperature)
    generator = torch.Generator().manual_seed(seed)
    written = text.encode(prompt)[None].repeat(rows, 1)
    for _ in range(count):
        p = torch.softmax(next_log_probs(model, written) / temperature, dim=-1)
        written = torch.cat([written, torch.multinomial(p, 1, generator=generator)], dim=1)
    begun = written.shape[1] - count
    return ["".join(text.symbols[n] for n in row[begun:]) for row in written.tolist()]


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A text with blanks, as a masked model filled them.

    Attributes:
        blanks: the text with `_` for what was erased.
        guess: the text as the model filled it.
        truth: the text.
        accuracy: the share of blanks that it filled rightly.
    """

    blanks: str
    guess: str
    truth: str
    accuracy: float


@torch.inference_mode()
def fill(
    model: CharacterModel, text: Text, truth: str, *, share: float = 0.15, seed: int = 0
) -> Filled:
    """Erase a share of the symbols of a text and let a masked model guess all of them at once."""
    numbers = text.encode(truth)
    generator = torch.Generator().manual_seed(seed)
    erased = torch.rand(len(numbers), generator=generator) < share
    best = model.eval()(numbers.masked_fill(erased, model.erased)[None])[0].argmax(dim=-1)
    guess = torch.where(erased, best, numbers)
    shown = [
        "_" if blank else text.symbols[n]
        for n, blank in zip(numbers.tolist(), erased.tolist(), strict=True)
    ]
    right = (guess == numbers)[erased].double().mean().item() if erased.any() else 1.0
    return Filled(
        blanks="".join(shown), guess=text.decode(guess), truth=text.decode(numbers), accuracy=right
    )
