"""The best weights of a training, finished or not, as a bundle, and a bundle's weights again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from nearfuture.error import NearfutureError
from nearfuture.export import ModelCard, export_bundle
from nearfuture.model import Recognizer
from nearfuture.runtime import Bundle
from nearfuture.training.checkpoint import BEST, CHECKPOINT, load_model

WEIGHTS = "weights.safetensors"


def export_best(folder: Path, *, to: Path | None = None) -> tuple[Path, dict[str, Any]]:
    """Export the best weights of a training so far; it may still be running.

    The weights are those that made the fewest errors, or before the first validation the average of
    the last checkpoint. The bundle holds `weights.safetensors`, so that it can be trained on. Its
    name is `RUN-MODEL`, after the names of the two folders.

    Args:
        folder: The folder of one model's training, e.g. `runs/mine/streaming`.
        to: The folder of the bundle; by default `folder/bundle`.

    Returns:
        The bundle's folder, and what the file of the weights says about its training.

    Raises:
        NearfutureError: There are no weights, or none that a step has changed.
    """
    path = next((folder / name for name in (BEST, CHECKPOINT) if (folder / name).is_file()), None)
    if path is None:
        raise NearfutureError(
            f"{folder} holds no training: it has neither {BEST} nor {CHECKPOINT}", code="not_found"
        )
    model, header = load_model(path)
    if header["step"] == 0:
        raise NearfutureError(f"{path} has not learnt anything yet: no step has been done")
    last = load_model(folder / CHECKPOINT)[1] if (folder / CHECKPOINT).is_file() else header
    name, task = folder.resolve().name, header["data"].get("task", "recordings")
    bundle = export_bundle(
        model,
        folder / "bundle" if to is None else to,
        ModelCard(
            name=f"{folder.resolve().parent.name}-{name}",
            description=f"The {name} model of a training on {task}.",
            training={
                **header["data"],
                "steps": last["step"],
                "best_step": header["step"],
                "seed": header["options"]["seed"],
            },
        ),
        trainable=True,
    )
    return bundle, header


def recognizer_of(source: str | Path) -> Recognizer:
    """Load the model of a bundle, as it can be trained on.

    Args:
        source: A bundle's name, folder or zip file.

    Raises:
        NearfutureError: It is no bundle, or holds no weights to train on.
    """
    bundle = Bundle.open(source)
    if WEIGHTS not in bundle.manifest.files:
        raise NearfutureError(
            f"{source} cannot be trained on: it holds no {WEIGHTS}; where its training is still at "
            f"hand, nearfuture export makes a bundle that does",
            code="unsupported",
            parameter="init_from",
        )
    model = Recognizer(bundle.manifest.architecture)
    try:
        model.load_state_dict(load_file(bundle.folder / WEIGHTS))
    except (SafetensorError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise NearfutureError(
            f"{source}: {WEIGHTS} are not those of its model: {reason}", code="damaged"
        ) from error
    return model
