"""What is asked of a training: what to train, on what, how, and where to keep it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nearfuture.budget import PRESETS, Preset, RecognizerConfig
from nearfuture.data.filter import LONGEST_S
from nearfuture.error import NearfutureError
from nearfuture.runtime import Bundle
from nearfuture.training.augmentation import SpecAugment
from nearfuture.training.options import TrainingOptions

BIDIRECTIONAL, STREAMING = "bidirectional", "streaming"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to train, on what, how, and where to keep it; the same for every process.

    Attributes:
        data: sources of recordings.
        preset: the size of the models; None for that of the bundle that is trained on.
        begin_with: a bundle whose model is trained on, alone; None to begin afresh.
        rate: that they hear; None for the preset's own.
        heads: lookahead frames of the streaming model; None for the preset's own.
        models: those to train, in this order.
        steps: of each; None where epochs say how many.
        epochs: passes over the recordings; None where steps say how many.
        batch_seconds: audio in a batch, at most.
        longest: seconds of a recording; longer ones are left out.
        seed: everything random follows from it.
        learning_rate: the greatest.
        matrix_rate: the greatest of the encoder's matrices, which Muon moves; 0 for AdamW.
        regularise: with SpecAugment and dropout. A training that is too short to learn its
            recordings by heart is better without.
        distill: how much the streaming model learns from the bidirectional one in the same folder.
        shifts: by how many frames each of its heads follows it later.
        delay_penalty: how much it is drawn to earlier frames.
        bfloat16: matrix products of the encoders in bfloat16, for machines that are faster so.
        threads: of torch, in each process.
        folder: each model has its own in there.
    """

    data: tuple[Path, ...] = ()
    preset: Preset | None = None
    begin_with: str | None = None
    rate: int | None = None
    heads: tuple[int, ...] | None = None
    models: tuple[str, ...] = (BIDIRECTIONAL, STREAMING)
    steps: int | None = None
    epochs: int | None = None
    batch_seconds: float = LONGEST_S
    longest: float = LONGEST_S
    seed: int = 0
    learning_rate: float = 2e-3
    matrix_rate: float = 3e-3
    regularise: bool = True
    distill: float = 0.0
    shifts: Mapping[int, int] = field(default_factory=dict)
    delay_penalty: float = 0.0
    bfloat16: bool = False
    threads: int = 1
    folder: Path

    def configs(self, symbols: tuple[str, ...]) -> dict[str, RecognizerConfig]:
        """The models by name.

        Raises:
            NearfutureError: for a streaming model of a preset that has none; and where a bundle is
                trained on that cannot write the symbols, or is not what is asked for.
        """
        if self.begin_with is not None:
            return self._config_of_bundle(symbols)
        config = PRESETS[self.preset or "small"](symbols=symbols)
        if self.rate is not None:
            config = config.replace(rate=self.rate)
        if STREAMING in self.models and config.recurrence.bidirectional:
            raise NearfutureError(
                f"{self.preset} reads every recording to its end before its first output and "
                f"cannot stream; choose --preset deep-speech-2-deployed, or --models bidirectional"
            )
        if self.heads is not None and not config.recurrence.bidirectional:
            config = config.replace(heads=self.heads)
        config = self._regularised(config)
        configs = {STREAMING: config, BIDIRECTIONAL: config.twin()}
        return {name: configs[name] for name in self.models}

    def _config_of_bundle(self, symbols: tuple[str, ...]) -> dict[str, RecognizerConfig]:
        assert self.begin_with is not None
        manifest = Bundle.open(self.begin_with).manifest
        config = manifest.architecture
        kind = BIDIRECTIONAL if config.recurrence.bidirectional else STREAMING
        if self.models != (kind,):
            raise NearfutureError(
                f"{self.begin_with} is a {kind} model, which is trained on alone: choose --models "
                f"{kind}"
            )
        for what, told, has in (
            ("rate", self.rate, config.features.rate),
            ("heads", self.heads, config.heads),
        ):
            if told is not None and told != has:
                its = has if isinstance(has, int) else ", ".join(map(str, has))
                raise NearfutureError(
                    f"--{what}: the model of {self.begin_with} has {its}, and keeps it: leave "
                    f"--{what} out, or --from to begin afresh"
                )
        if unknown := sorted(set(symbols) - set(config.symbols)):
            raise NearfutureError(
                f"the texts have characters that {self.begin_with} cannot write, "
                f"{' '.join(map(repr, unknown))}; it writes {''.join(config.symbols)!r}. "
                f"Spell them with those, or leave --from out to begin afresh"
            )
        return {kind: self._regularised(config)}

    def _regularised(self, config: RecognizerConfig) -> RecognizerConfig:
        return config if self.regularise else config.replace(dropout=0.0)

    def options(self, name: str, steps: int) -> TrainingOptions:
        """How a model is trained for so many steps."""
        plain = TrainingOptions(
            steps=steps,
            learning_rate=self.learning_rate,
            matrix_rate=self.matrix_rate,
            augmentation=SpecAugment() if self.regularise else SpecAugment.none(),
            bfloat16=self.bfloat16,
            seed=self.seed,
            warmup=min(300, math.ceil(steps / 10)),
            watch_every=min(500, math.ceil(steps / 10)),
            report_every=min(50, math.ceil(steps / 100)),
        )
        if name != STREAMING:
            return plain
        return dataclasses.replace(
            plain,
            distill=self.distill,
            shift_frames=self.shifts,
            delay_penalty=self.delay_penalty,
        )
