"""A training's whole state in one safetensors file: tensors, and JSON in its header.

Written to a temporary file and renamed, so that an interrupted write leaves the old one whole.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, optim

from nearfuture.error import NearfutureError
from nearfuture.speech import Recognizer, RecognizerConfig

__all__ = ["Checkpoint", "load_model"]

_SCHEMA = 1


@dataclass(kw_only=True)
class Checkpoint:
    """A model, its optimiser and where the training stands.

    Attributes:
        model: weights and feature statistics.
        optimizer: moments of every parameter, in the order of `model.parameters()`.
        step: steps done.
        options: what the training was started with; it must be the same when it is resumed.
        history: one record for each report of progress.
    """

    model: Recognizer
    optimizer: optim.Optimizer
    step: int
    options: dict[str, Any]
    history: list[dict[str, Any]]

    def save(self, path: Path) -> None:
        """Write the file, all of it or nothing."""
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for index, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": value for name, value in moments.items()}
        about = {
            "schema": _SCHEMA,
            "model": self.model.config.to_json(),
            "step": self.step,
            "options": self.options,
            "history": self.history,
        }
        partial = path.with_suffix(".partial")
        save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()},
            partial,
            metadata={"nearfuture": json.dumps(about)},
        )
        os.replace(partial, path)

    def restore(self, path: Path) -> None:
        """Read the file into this checkpoint's own model and optimiser.

        Raises:
            NearfutureError: where the file is none of ours, or of a training with other options.
        """
        about, tensors = _read(path)
        if about["model"] != _as_json(self.model.config.to_json()):
            raise NearfutureError(
                f"{path} holds another model: {about['model']}; give another folder, or the "
                f"options it was started with"
            )
        before, now = about["options"], _as_json(self.options)
        if different := [key for key in before | now if before.get(key) != now.get(key)]:
            changes = ", ".join(f"{key}: {before.get(key)} → {now.get(key)}" for key in different)
            raise NearfutureError(
                f"{path} was started with other options ({changes}); resume with the same ones or "
                f"start afresh in another folder"
            )
        _load(self.model, tensors, path)
        state = self.optimizer.state_dict()
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _under("optimizer.", tensors).items():
            index, moment = name.split(".")
            # A copy: what was read is the file itself, which the next checkpoint replaces.
            moments.setdefault(int(index), {})[moment] = tensor.clone()
        self.optimizer.load_state_dict({**state, "state": moments})
        self.step, self.history = about["step"], about["history"]


def load_model(path: Path) -> tuple[Recognizer, dict[str, Any]]:
    """The model of a checkpoint, ready to use, and what the file says about its training.

    Raises:
        NearfutureError: where the file is none of ours.
    """
    about, tensors = _read(path)
    model = Recognizer(RecognizerConfig.from_json(about["model"]))
    _load(model, tensors, path)
    return model.eval(), {"step": about["step"], **about["options"], "history": about["history"]}


def _load(model: Recognizer, tensors: dict[str, Tensor], path: Path) -> None:
    try:
        model.load_state_dict(_under("model.", tensors))
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise NearfutureError(f"{path} does not hold the weights of its model: {reason}") from error


def _as_json(values: dict[str, Any]) -> dict[str, Any]:
    """The values as they come back from a file: tuples as lists."""
    read: dict[str, Any] = json.loads(json.dumps(values))
    return read


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
            f"version of nearfuture that wrote it"
        )
    if missing := {"model", "step", "options", "history"} - set(about):
        raise NearfutureError(
            f"{path} is no checkpoint of nearfuture: it lacks {', '.join(sorted(missing))}"
        )
    return about, tensors
