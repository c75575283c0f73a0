"""Deep Speech 2 at the size it was deployed at, as a bundle: with random weights.

Random weights will do for speed, and for nothing else. The batch norms have run on some noise, so
that activations have the sizes they would have. Once written it is kept.

    python benchmarks/_deployed.py runs/deep-speech-2-deployed
"""

import sys
from pathlib import Path

import torch

from nearfuture.budget import RecognizerConfig, deep_speech_2_deployed
from nearfuture.export import ModelCard, export_bundle
from nearfuture.layers import SequenceBatchNorm
from nearfuture.model import Recognizer
from nearfuture.runtime import Bundle
from nearfuture.runtime.precision import LOW_PRECISIONS
from nearfuture.runtime.processor import offered

FOLDER = Path("runs/deep-speech-2-deployed")
SEED = 0


def deployed(folder: Path = FOLDER) -> Bundle:
    """The bundle in what this processor offers; at first it takes minutes and 6 GB of memory."""
    if not (folder / "model.json").is_file():
        print(f"writing {folder}: 187 million random weights, some minutes", file=sys.stderr)
        low = tuple(name for name in LOW_PRECISIONS if name in offered())
        written(deep_speech_2_deployed(), folder, low)
    return Bundle.open(folder)


def written(config: RecognizerConfig, folder: Path, precisions: tuple[str, ...]) -> Path:
    """A bundle of untrained weights whose batch norms and features have run on noise."""
    torch.manual_seed(SEED)
    model = Recognizer(config)
    pcm, lengths = 0.1 * torch.randn(2, 32_000, 1), torch.tensor([32_000, 20_000])
    with torch.no_grad():
        features, frames = model.features(pcm, lengths)
        model.features.fit(features[0])
        features, frames = model.features(pcm, lengths)
        for module in model.modules():
            if isinstance(module, SequenceBatchNorm):
                module.momentum = 1.0
        model.train()(features, frames)
    return export_bundle(
        model.eval(),
        folder,
        ModelCard(
            name=folder.name,
            description="Deep Speech 2 at its deployed size with random weights: for speed only.",
            training={"data": [], "weights": "random", "seed": SEED},
        ),
        precisions=precisions,
    )


if __name__ == "__main__":
    print(deployed(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER).folder)
