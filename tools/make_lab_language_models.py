"""Train and export the character models of the lab's page on leaks, with their learning curves.

`python tools/make_lab_language_models.py` trains all eight (minutes on one core; it goes on where
it was stopped) by the recipe that docs/language-models.md describes, only smaller, and writes into
`assets/lab/language_models`:

| file | what it holds |
|---|---|
| `en-one-way.onnx` … | `symbols (B, T), lengths (B,) → log_probs (B, T, V)`, in eight bits |
| `en.json`, `ko.json` | symbols, a text to learn from and a held-out one, curves, how it was made |

Shapes: `B` rows, `T` symbols, `V` symbols of the text.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import unicodedata
from pathlib import Path
from typing import get_args

import torch
from torch import Tensor, nn

from nearfuture.export.graphs.offline import OnnxRecurrence
from nearfuture.export.graphs.translation import translate
from nearfuture.layers import Bidirectional, Recurrent
from recipes.compact import compact
from recipes.language_models import TITLES, CharacterModel, Language, Text, TrainingConfig, train
from recipes.language_models.training import Trained
from recipes.report import about

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "src" / "nearfuture" / "assets" / "lab" / "language_models"
RUNS = ROOT / "runs" / "lab_language_models"
CONFIG = TrainingConfig(steps=800, size=64)
PRACTICE = 24_000
"""Symbols of the text that models learn from in the lab, where torch is installed."""


class LanguageGraph(nn.Module):
    """A character model with its recurrent layer as ONNX's own operator, so that T stays free."""

    def __init__(self, model: CharacterModel) -> None:
        super().__init__()
        self.embedding, self.output = model.embedding, model.output
        self.layers: nn.Module = model.layers
        if isinstance(model.layers, Recurrent | Bidirectional):
            self.layers = OnnxRecurrence(model.layers)

    def forward(self, symbols: Tensor, lengths: Tensor) -> Tensor:
        """(B, T) int64 → log-probabilities (B, T, V)."""
        hidden, _ = self.layers(self.embedding(symbols), lengths)
        return torch.log_softmax(self.output(hidden), dim=-1)


def export(model: CharacterModel) -> bytes:
    """Export a model; its weights are stored in eight bits."""
    inputs = {
        "symbols": (torch.zeros(2, 7, dtype=torch.int64), {0: "B", 1: "T"}),
        "lengths": (torch.tensor([7, 5]), {0: "B"}),
    }
    erased = model.erased if model.kind == "masked" else None
    graph = translate(
        LanguageGraph(model.eval()), inputs, ["log_probs"], {"kind": model.kind, "erased": erased}
    )
    compact(graph)
    return graph.SerializeToString()


def described(text: Text, trained: dict[str, Trained]) -> dict[str, object]:
    """What the page needs besides the graphs."""
    return {
        "symbols": text.symbols,
        "practice": unicodedata.normalize("NFC", text.train[:PRACTICE]),
        "held_out": unicodedata.normalize("NFC", text.dev),
        "curves": {
            kind: [
                {key: _rounded(value) for key, value in dataclasses.asdict(point).items()}
                for point in each.curve
            ]
            for kind, each in trained.items()
        },
        "parameters": {kind: each.model.parameter_count for kind, each in trained.items()},
        "config": dataclasses.asdict(CONFIG),
        "made": {**about(), "command": "python tools/make_lab_language_models.py"},
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def main(languages: list[str]) -> None:
    """Train and export the models of these languages, or of all."""
    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for language in get_args(Language):
        if languages and language not in languages:
            continue
        text = Text.load(language)
        trained = {}
        for kind in TITLES:
            print(f"{language}: {TITLES[kind]}", flush=True)
            trained[kind] = train(
                kind,
                len(text.symbols),
                text.encode(text.train),
                text.encode(text.dev),
                CONFIG,
                checkpoint=RUNS / language / f"{kind}.safetensors",
                progress=lambda point: print(f"  {point.step}: {point.dev:.3f}", flush=True),
            )
            name = f"{language}-{kind.replace('_', '-')}.onnx"
            (FOLDER / name).write_bytes(export(trained[kind].model))
        content = json.dumps(described(text, dict(trained)), ensure_ascii=False, indent=1)
        (FOLDER / f"{language}.json").write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
