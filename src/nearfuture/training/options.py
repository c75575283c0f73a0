"""How a training goes: plain values that the command line fills and the checkpoint stores."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from nearfuture.budget import Preset
from nearfuture.error import NearfutureError

BIDIRECTIONAL, STREAMING = "bidirectional", "streaming"
"""The names of both models, and of their folders."""

_STEPS = 6000
_LEARNING_RATE, _MUON_LR = 2e-3, 3e-3
_DISTILL = 3.0
_FINE_TUNING_LEARNING_RATE = 5e-4
_LIBRARY_ONLY = Parameter(parse=False)  # what the command line does not offer


def _head_frames(_: object, tokens: Sequence[Any]) -> tuple[int, ...]:
    frames = tuple(sorted({int(frames) for frames in tokens[0].value.split(",")}))
    if frames[0] < 0:
        raise ValueError("frames of lookahead are 0 or more, between commas, such as 0,4,8")
    return frames


def _head_shifts(_: object, tokens: Sequence[Any]) -> dict[int, int]:
    pairs = [pair.partition(":") for pair in tokens[0].value.split(",")]
    if not all(frames for *_, frames in pairs):
        raise ValueError("give heads and frames between commas, such as 0:3,4:1")
    return {int(head): int(frames) for head, _, frames in pairs}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Recordings to train on.

    Attributes:
        data: Your own recordings with their texts: a folder, a list of them (CSV, TSV, JSON lines),
            a Kaldi directory or a Lhotse manifest. The split "train" is trained on, the split "dev"
            is for validation; without it, about 5 % are set aside. May be repeated: all sources
            are trained on, and the first that has a "dev" is for validation.
        batch_seconds: Seconds of audio in a step's batch, padding included.
        longest: Skip recordings longer than so many seconds, and report them.
    """

    data: Annotated[tuple[Path, ...], Parameter(negative="")] = ()
    batch_seconds: float = 40.0
    longest: float = 40.0


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ArchitectureOptions:
    """The models to train and their architecture.

    Attributes:
        preset: Size of the models; by default small. The research model of Deep Speech 2 is
            bidirectional and has no streaming version.
        init_from: Fine-tune the model of this bundle instead, with its own size, rate, heads and
            characters.
        rate: Sampling rate of the models in Hz, by default the preset's; recordings are resampled.
        heads: Frames of lookahead of the streaming model's heads between commas, such as 0,4,8,19;
            by default the preset's.
        models: Which of the two models to train.
    """

    preset: Preset | None = None
    init_from: Annotated[str | None, Parameter(name="--from")] = None
    rate: int | None = None
    heads: Annotated[
        tuple[int, ...] | None, Parameter(converter=_head_frames, n_tokens=1, negative="")
    ] = None
    models: Literal["both", "streaming", "bidirectional"] = "both"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScheduleOptions:
    """The length of a training and the schedule of its learning rates.

    Attributes:
        steps: Training steps of each model; by default 6000. A training may be resumed with more or
            fewer; the learning rate then follows the new number.
        epochs: Passes over the recordings, instead of a number of steps.
        warmup: Steps over which the learning rate rises.
        decay: How the learning rate falls to 0 afterwards: linearly, along half a cosine, or not at
            all.
        save_every: Steps between checkpoints.
        validate_every: Steps between validations.
        report_every: Steps between records of the history and of TensorBoard.
    """

    steps: int | None = None
    epochs: int | None = None
    warmup: Annotated[int, _LIBRARY_ONLY] = 300
    decay: Annotated[Literal["linear", "cosine", "none"], _LIBRARY_ONLY] = "linear"
    save_every: Annotated[int, _LIBRARY_ONLY] = 250
    validate_every: Annotated[int, _LIBRARY_ONLY] = 500
    report_every: Annotated[int, _LIBRARY_ONLY] = 50

    def __post_init__(self) -> None:
        _at_least(self, steps=1, epochs=1, warmup=0, save_every=1, validate_every=1, report_every=1)
        if self.steps is not None and self.epochs is not None:
            raise NearfutureError(
                "give either `steps` or `epochs`, not both", code="conflict", parameter="epochs"
            )
        if self.decay not in ("linear", "cosine", "none"):
            raise NearfutureError(
                f"`decay` is linear, cosine or none, not {self.decay!r}", parameter="decay"
            )

    @property
    def total_steps(self) -> int:
        """The total number of steps, unless epochs determine it."""
        return _STEPS if self.steps is None else self.steps

    def scaled(self, steps: int) -> ScheduleOptions:
        """The schedule for so many steps; a short training warms up and validates accordingly."""
        return dataclasses.replace(
            self,
            steps=steps,
            epochs=None,
            warmup=min(self.warmup, math.ceil(steps / 10)),
            validate_every=min(self.validate_every, math.ceil(steps / 10)),
            report_every=min(self.report_every, math.ceil(steps / 100)),
        )

    def lr_scale(self, step: int) -> float:
        """The factor between a step's learning rates and their peaks.

        >>> ScheduleOptions(steps=1000, warmup=100).lr_scale(550)
        0.5
        """
        steps = self.total_steps
        rising = min(1.0, (step + 1) / max(1, self.warmup))
        remaining = (steps - step) / max(1, steps - self.warmup)
        remaining = min(1.0, max(0.0, remaining))
        falling = {
            "linear": remaining,
            "cosine": (1 - math.cos(math.pi * remaining)) / 2,
            "none": 1.0,
        }[self.decay]
        return min(rising, falling)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OptimizerOptions:
    """Optimisers and their learning rates.

    Attributes:
        learning_rate: Peak learning rate, after the warm-up; by default 0.002, or 0.0005 for
            fine-tuning.
        muon_lr: Peak learning rate of the encoder's matrices, which Muon optimises; by default
            0.003, or 1.5 times `learning_rate` for fine-tuning. With 0 AdamW optimises them too.
        weight_decay: Weight decay of AdamW, for all parameters.
        clip: Largest norm of the gradient.
    """

    learning_rate: float | None = None
    muon_lr: Annotated[float | None, _LIBRARY_ONLY] = None
    weight_decay: Annotated[float, _LIBRARY_ONLY] = 0.01
    clip: Annotated[float, _LIBRARY_ONLY] = 1.0

    def __post_init__(self) -> None:
        _at_least(self, learning_rate=0, muon_lr=0)
        if not self.clip > 0:
            raise NearfutureError(
                f"`clip` is a norm above 0, not {self.clip}; inf clips nothing",
                code="out_of_range",
                parameter="clip",
            )

    @property
    def rates(self) -> tuple[float, float]:
        """The peak learning rates of AdamW and of Muon."""
        return (
            _LEARNING_RATE if self.learning_rate is None else self.learning_rate,
            _MUON_LR if self.muon_lr is None else self.muon_lr,
        )

    def fine_tuning(self) -> OptimizerOptions:
        """Return these options with the default rates of fine-tuning."""
        rate = self.learning_rate
        rate = _FINE_TUNING_LEARNING_RATE if rate is None else rate
        muon_lr = _MUON_LR / _LEARNING_RATE * rate if self.muon_lr is None else self.muon_lr
        return dataclasses.replace(self, learning_rate=rate, muon_lr=muon_lr)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DistillationOptions:
    """Distillation from the bidirectional to the streaming model, and emission delay.

    Attributes:
        distill: How much the streaming model learns from the bidirectional one in the same folder:
            weight of their divergence in nats per frame; 0 for not at all. By default 3 if both
            are trained.
        shifts: Frames by which the targets from the bidirectional model are delayed for a head,
            such as 0:3,4:1.
        delay_penalty: Weight of the divergence of each frame from the next, in nats per frame,
            which moves the symbols of the streaming model to earlier frames.
    """

    distill: float | None = None
    shifts: Annotated[
        Mapping[int, int], Parameter(converter=_head_shifts, n_tokens=1, show_default=False)
    ] = field(default_factory=dict)
    delay_penalty: float = 0.0

    def __post_init__(self) -> None:
        _at_least(self, distill=0, delay_penalty=0)
        if self.shifts and self.distill == 0:
            raise NearfutureError(
                "`shifts` has no effect where `distill` is 0: leave one of them out",
                code="conflict",
                parameter="shifts",
            )

    @property
    def weight(self) -> float:
        """The weight of the divergence; 0 where none is given."""
        return self.distill or 0.0

    def resolved(self, *, both: bool) -> DistillationOptions:
        """Fill in the weight where none is given: only with both models one teaches the other."""
        default = _DISTILL if both else 0.0
        distill = default if self.distill is None else self.distill
        return dataclasses.replace(self, distill=distill)

    def check_heads(self, heads: Sequence[int]) -> None:
        """Refuse shifts of heads that a model does not have."""
        if unknown := sorted(set(self.shifts) - set(heads)):
            raise NearfutureError(
                f"`shifts` names heads of {', '.join(map(str, unknown))} frames; the model has "
                f"heads of {', '.join(map(str, heads))}",
                code="not_found",
                parameter="shifts",
            )


@dataclass(frozen=True, kw_only=True)
class SpecAugmentOptions:
    """Random frequency and time masks, where features are set to 0 (Park et al. 2019, §2).

    Attributes:
        freq_masks: Number of frequency masks.
        freq_mask_bins: Largest width of a frequency mask, in mel bins.
        time_masks: Number of time masks.
        time_mask_frames: Largest length of a time mask; none is longer than a fifth of its row,
            rounded up.
    """

    freq_masks: int = 1
    freq_mask_bins: int = 8
    time_masks: int = 1
    time_mask_frames: int = 12


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class HardwareOptions:
    """Precision and threads of the computation.

    Attributes:
        bfloat16: Multiply the encoder's matrices in bfloat16, on hardware where this is faster;
            losses stay in float32.
        threads: Threads of each process; by default OMP_NUM_THREADS, or else 1. More processes use
            cores better than more threads.
    """

    bfloat16: Annotated[bool, Parameter(negative="", show_default=False)] = False
    threads: int | None = None

    def __post_init__(self) -> None:
        _at_least(self, threads=1)

    @property
    def thread_count(self) -> int:
        """The threads given, or else those of OMP_NUM_THREADS, or else 1.

        >>> HardwareOptions(threads=3).thread_count
        3
        """
        if self.threads is not None:
            return self.threads
        variable = os.environ.get("OMP_NUM_THREADS", "")
        first = variable.split(",")[0].strip()  # "4,2": of nested regions
        return max(1, int(first)) if first.isdecimal() else 1


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The options of a training, apart from data and architecture.

    Attributes:
        schedule: How long to train.
        optimizer: Optimisers and their learning rates.
        regularise: Train with SpecAugment and dropout. A training that is too short to overfit is
            better without.
        augmentation: The masks of SpecAugment.
        distillation: Distillation from the bidirectional to the streaming model.
        ema: Decay of the moving average of the weights, which is validated, kept and exported:
            `a ← a + (1 - d) (w - a)` with `d = min(ema, (1 + n) / (10 + n))` after n updates.
            With 0 the average is the weights themselves.
        checkpoint_metric: The validation metric of the best checkpoint; lower is better.
        hardware: Precision and threads of the computation.
        seed: Seed of everything random.

    Raises:
        NearfutureError: A value is outside its range.
    """

    schedule: ScheduleOptions = field(default_factory=ScheduleOptions)
    optimizer: OptimizerOptions = field(default_factory=OptimizerOptions)
    regularise: bool = True
    augmentation: Annotated[SpecAugmentOptions, _LIBRARY_ONLY] = field(
        default_factory=SpecAugmentOptions
    )
    distillation: DistillationOptions = field(default_factory=DistillationOptions)
    ema: Annotated[float, _LIBRARY_ONLY] = 0.999
    checkpoint_metric: Annotated[str, _LIBRARY_ONLY] = "cer"
    hardware: HardwareOptions = field(default_factory=HardwareOptions)
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.ema < 1:
            raise NearfutureError(
                f"`ema` is from 0 to below 1, not {self.ema}", code="out_of_range", parameter="ema"
            )

    def stored(self) -> dict[str, Any]:
        """The values by field, those that depend on others filled in; `threads` is the run's."""
        values = dataclasses.asdict(self)
        values["schedule"] |= {"steps": self.schedule.total_steps}
        values["optimizer"] |= dict(
            zip(("learning_rate", "muon_lr"), self.optimizer.rates, strict=True)
        )
        values["distillation"] |= {
            "distill": self.distillation.weight,
            "shifts": sorted(self.distillation.shifts.items()),  # JSON has no numbers as keys
        }
        del values["hardware"]["threads"]
        return values


def _at_least(options: object, **limits: float) -> None:
    for name, least in limits.items():
        value = getattr(options, name)
        if value is not None and not least <= value < math.inf:
            raise NearfutureError(
                f"`{name}` is at least {least}, not {value}", code="out_of_range", parameter=name
            )
