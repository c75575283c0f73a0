"""A training's whole state in one safetensors file: tensors, and JSON in its header.

Written to a temporary file and renamed, so that a process that ends while it writes leaves the old
one whole; a machine that loses its power may not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from nearfuture.budget import RecognizerConfig
from nearfuture.error import NearfutureError
from nearfuture.model import Recognizer
from nearfuture.training.averaging import Average
from nearfuture.training.optimizer import Optimizer
from nearfuture.training.resumption import MAY_CHANGE

_SCHEMA = 2
_MODEL, _AVERAGE, _OPTIMIZER = "model.", "average.", "optimizer."


class OtherTrainingError(NearfutureError):
    """A checkpoint of a training with other options, or of another model.

    Attributes:
        path: of the checkpoint.
        changes: what it was started with and what is asked for now, by the name of the option, or
            of what is configured about the model.
    """

    code = "conflict"

    def __init__(self, path: Path, changes: Mapping[str, tuple[Any, Any]]) -> None:
        self.path, self.changes = path, changes
        told = ", ".join(f"{key}: {before} → {now}" for key, (before, now) in changes.items())
        super().__init__(
            f"{path} was started with other options ({told}); resume with the same ones or start "
            f"afresh in another folder"
        )


@dataclass(kw_only=True)
class Checkpoint:
    """A model, its average, its optimiser and where the training stands.

    Attributes:
        average: the model with its weights and feature statistics, and their running average.
        optimizer: moments of every parameter.
        options: what the training was started with; when it is resumed it must be the same, but
            for what `MAY_CHANGE` names.
        step: steps done.
        history: one record for each report of progress.
        left_out: utterances that were left out so far.
        looked: the step of the last look at the recordings kept apart.
        best: the figures of the best model so far, and its step; empty before the first look.
    """

    average: Average
    optimizer: Optimizer
    options: dict[str, Any]
    step: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    left_out: int = 0
    looked: int = 0
    best: dict[str, float] = field(default_factory=dict)

    @property
    def model(self) -> Recognizer:
        """The model that is trained."""
        return self.average.source

    def save(self, path: Path) -> None:
        """Write the file; whoever reads it finds all of it, or the one before."""
        tensors = _named(_MODEL, self.model.state_dict())
        tensors |= _named(_OPTIMIZER, self.optimizer.state())
        self._write(path, tensors)

    def save_model(self, path: Path) -> None:
        """Write the averaged model alone, which is what others need; it cannot be resumed."""
        self._write(path, {})

    def _write(self, path: Path, tensors: dict[str, Tensor]) -> None:
        tensors = {**tensors, **_named(_AVERAGE, self.average.model.state_dict())}
        about = {
            "schema": _SCHEMA,
            "model": self.model.config.to_json(),
            "step": self.step,
            "options": self.options,
            "history": self.history,
            "left_out": self.left_out,
            "updates": self.average.updates,
            "looked": self.looked,
            "best": self.best,
        }
        partial = path.with_suffix(".partial")
        save_file(
            {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
            partial,
            metadata={"nearfuture": json.dumps(about)},
        )
        partial.chmod(path.parent.stat().st_mode & 0o666)  # else it would be for its owner alone
        os.replace(partial, path)

    def restore(self, path: Path) -> dict[str, tuple[Any, Any]]:
        """Read the file into this checkpoint's own model, average and optimiser.

        Returns:
            The options that were others and may be: before and now, by name.

        Raises:
            NearfutureError: where the file is none of ours.
            OtherTrainingError: where it is of a training with other options.
        """
        about, tensors = _read(path)
        pairs = (
            (about["model"], _as_json(self.model.config.to_json())),
            (about["options"], _as_json(self.options)),
        )
        changes = {
            key: (before.get(key), now.get(key))
            for before, now in pairs
            for key in _different(before, now)
        }
        if other := {key: pair for key, pair in changes.items() if key not in MAY_CHANGE}:
            raise OtherTrainingError(path, other)
        weights = _under(_MODEL, tensors)
        if not weights:
            raise NearfutureError(
                f"{path} holds a model alone, without the state of its training: it cannot be "
                f"resumed; give the folder of its checkpoint"
            )
        _load(self.model, weights, path)
        _load(self.average.model, _under(_AVERAGE, tensors), path)
        # A copy: what was read is the file itself, which the next checkpoint replaces.
        moments = {name: tensor.clone() for name, tensor in _under(_OPTIMIZER, tensors).items()}
        self.optimizer.restore(moments)
        self.step, self.history = about["step"], about["history"]
        self.left_out, self.looked, self.best = about["left_out"], about["looked"], about["best"]
        self.average.updates = about["updates"]
        return changes


def load_model(path: Path) -> tuple[Recognizer, dict[str, Any]]:
    """The averaged model of a checkpoint, ready to use, and what the file says about its training.

    Raises:
        NearfutureError: where the file is none of ours.
    """
    about, tensors = _read(path)
    model = Recognizer(RecognizerConfig.from_json(about["model"]))
    _load(model, _under(_AVERAGE, tensors), path)
    kept = {key: about[key] for key in ("step", "history", "best", "left_out")}
    return model.eval(), {**about["options"], **kept}


def _different(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The options that are not the same."""
    return [key for key in before | now if before.get(key) != now.get(key)]


def _load(model: Recognizer, tensors: dict[str, Tensor], path: Path) -> None:
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise NearfutureError(f"{path} does not hold the weights of its model: {reason}") from error


def _as_json(values: dict[str, Any]) -> dict[str, Any]:
    """The values as they come back from a file: tuples as lists."""
    read: dict[str, Any] = json.loads(json.dumps(values))
    return read


def _named(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            about = dict(json.loads((file.metadata() or {})["nearfuture"]))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise NearfutureError(f"there is no checkpoint {path}") from error
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise NearfutureError(f"{path} is no checkpoint of nearfuture: {error}") from error
    if about.get("schema") != _SCHEMA:
        raise NearfutureError(
            f"{path} has schema {about.get('schema')}, this version reads {_SCHEMA}: use the "
            f"version of nearfuture that wrote it, or start afresh in another folder"
        )
    needed = {"model", "step", "options", "history", "left_out", "updates", "looked", "best"}
    if missing := needed - set(about):
        raise NearfutureError(
            f"{path} is no checkpoint of nearfuture: it lacks {', '.join(sorted(missing))}"
        )
    return about, tensors
