"""A training's whole state in one safetensors file: tensors, and JSON in its header.

It is written to a temporary file and renamed, so that a process that ends while it writes leaves
the old one whole; a machine that loses its power may not.
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
from nearfuture.training.ema import EMA
from nearfuture.training.optimizer import Optimizer
from nearfuture.training.resumption import MAY_CHANGE, OtherTrainingError, changed_fields

CHECKPOINT, BEST = "checkpoint.safetensors", "best.safetensors"
"""The files in a training's folder: its last state, and the best model so far."""

_SCHEMA = 3
_MODEL, _EMA, _OPTIMIZER = "model.", "ema.", "optimizer."
_PROGRESS = ("step", "history", "skipped", "validated_step", "best")


@dataclass(kw_only=True)
class Checkpoint:
    """The state of a training: averaged weights, optimiser, options and progress.

    Attributes:
        ema: The model with its weights and feature statistics, and their running average.
        optimizer: The moments of every parameter.
        options: The training options by field.
        data: What the training remembers of its data.
        run: How the steps are computed, and the teacher.
        step: The number of steps done.
        history: A record for each report of progress.
        skipped: The number of utterances skipped so far.
        validated_step: The step of the last validation.
        best: The metrics of the best model so far and its step; empty before the first validation.
    """

    ema: EMA
    optimizer: Optimizer
    options: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    step: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    skipped: int = 0
    validated_step: int = 0
    best: dict[str, float] = field(default_factory=dict)

    @property
    def model(self) -> Recognizer:
        """The model that is trained."""
        return self.ema.source

    def save(self, path: Path) -> None:
        """Write the file; a reader finds all of it, or the one before."""
        tensors = _with_prefix(_MODEL, self.model.state_dict())
        tensors |= _with_prefix(_OPTIMIZER, self.optimizer.state())
        self._write(path, tensors)

    def save_model(self, path: Path) -> None:
        """Write the averaged model alone, which is what others need; it cannot be resumed."""
        self._write(path, {})

    def _write(self, path: Path, tensors: dict[str, Tensor]) -> None:
        tensors = {**tensors, **_with_prefix(_EMA, self.ema.model.state_dict())}
        header = {
            "schema": _SCHEMA,
            **self._identity(),
            "ema_updates": self.ema.updates,
            **{name: getattr(self, name) for name in _PROGRESS},
        }
        partial = path.with_suffix(".partial")
        save_file(
            {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
            partial,
            metadata={"nearfuture": json.dumps(header)},
        )
        partial.chmod(path.parent.stat().st_mode & 0o666)  # else it would be for its owner alone
        os.replace(partial, path)

    def _identity(self) -> dict[str, Any]:
        """Return what makes this training another one than others, as JSON values."""
        return {
            "options": self.options,
            "data": self.data,
            "run": self.run,
            "model": self.model.config.to_json(),
        }

    def restore(self, path: Path) -> dict[str, tuple[Any, Any]]:
        """Read the file into this checkpoint's own model, average and optimiser.

        Returns:
            The fields that differ and may: their values before and now, by name.

        Raises:
            NearfutureError: The file is no checkpoint of ours.
            OtherTrainingError: It is of a training with other options, data or model.
        """
        header, tensors = _read(path)
        now = json.loads(json.dumps(self._identity()))  # tuples come back as lists
        model = changed_fields(header["model"], now.pop("model"))
        changes = changed_fields({name: header[name] for name in now}, now)
        forbidden = {name: pair for name, pair in changes.items() if name not in MAY_CHANGE}
        if forbidden or model:  # what changes in the model mostly follows from other changes
            raise OtherTrainingError(path, forbidden or model)
        weights = _without_prefix(_MODEL, tensors)
        if not weights:
            raise NearfutureError(
                f"{path} holds a model alone, without the state of its training: it cannot be "
                f"resumed; give the folder of its checkpoint",
                code="unsupported",
            )
        _load(self.model, weights, path)
        _load(self.ema.model, _without_prefix(_EMA, tensors), path)
        # A copy: what was read is the file itself, which the next checkpoint replaces.
        moments = _without_prefix(_OPTIMIZER, tensors)
        self.optimizer.restore({name: tensor.clone() for name, tensor in moments.items()})
        for name in _PROGRESS:
            setattr(self, name, header[name])
        self.ema.updates = header["ema_updates"]
        return changes


def load_model(path: Path) -> tuple[Recognizer, dict[str, Any]]:
    """Load the averaged model of a checkpoint, ready to use, and the header of the file.

    Returns:
        The model, and by the names of `Checkpoint` how far the training was, what it was trained
        on, and how.

    Raises:
        NearfutureError: The file is no checkpoint of ours.
    """
    header, tensors = _read(path)
    model = Recognizer(RecognizerConfig.from_json(header["model"]))
    _load(model, _without_prefix(_EMA, tensors), path)
    return model.eval(), {name: header[name] for name in ("options", "data", "run", *_PROGRESS)}


def _load(model: Recognizer, tensors: dict[str, Tensor], path: Path) -> None:
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise NearfutureError(
            f"{path} does not hold the weights of its model: {reason}", code="damaged"
        ) from error


def _with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def _without_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            header = dict(json.loads((file.metadata() or {})["nearfuture"]))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise NearfutureError(f"there is no checkpoint {path}", code="not_found") from error
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise NearfutureError(
            f"{path} is no checkpoint of nearfuture: {error}", code="damaged"
        ) from error
    if header.get("schema") != _SCHEMA:
        raise NearfutureError(
            f"{path} has schema {header.get('schema')}, this version reads {_SCHEMA}: use the "
            f"version of nearfuture that wrote it, or start afresh in another folder",
            code="unsupported",
        )
    needed = {"model", "options", "data", "run", "ema_updates", *_PROGRESS}
    if missing := needed - set(header):
        raise NearfutureError(
            f"{path} is no checkpoint of nearfuture: it lacks {', '.join(sorted(missing))}",
            code="damaged",
        )
    return header, tensors
