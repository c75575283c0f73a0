"""Options by the names of their fields, wherever they are nested; data that is batches alone."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nearfuture.data import Batches
from nearfuture.model import Recognizer
from nearfuture.training import TrainingData, TrainingOptions
from tests.training.tones import spoken


def changed(options: TrainingOptions, **fields: Any) -> TrainingOptions:
    """The options with some fields set: `changed(options, steps=3, ema=0.0)`."""
    nested = {}
    for part in dataclasses.fields(options):
        value = getattr(options, part.name)
        if part.name not in fields and dataclasses.is_dataclass(value):
            inside = {field.name for field in dataclasses.fields(value)} & fields.keys()
            own = {name: fields.pop(name) for name in inside}
            nested[part.name] = dataclasses.replace(value, **own)  # type: ignore[type-var]
    return dataclasses.replace(options, **nested, **fields)


def training_options(**fields: Any) -> TrainingOptions:
    return changed(TrainingOptions(), **fields)


@dataclass(frozen=True, kw_only=True)
class ScriptedData(TrainingData):
    """Batches, and metrics that a function writes."""

    script: Callable[[Recognizer], Mapping[str, float]]

    def metrics(self, model: Recognizer) -> Mapping[str, float]:
        return self.script(model)


def scripted(batches: Batches, script: Callable[[Recognizer], Mapping[str, float]]) -> ScriptedData:
    return ScriptedData(batches=batches, script=script, validation=[spoken("a")])


def plain(batches: Batches, **about: Any) -> TrainingData:
    return TrainingData(batches=batches, about=about)
