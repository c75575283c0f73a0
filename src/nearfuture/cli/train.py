"""`nearfuture train`: a bidirectional model, and the streaming one for every budget it teaches."""

import contextlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from nearfuture.budget import Preset
from nearfuture.cli.console import Console
from nearfuture.cli.extra import HOW_TO_TRAIN
from nearfuture.cli.telling import Bars, Lines
from nearfuture.cli.threads import idle_quietly, threads_asked_for
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.training.checkpoint import OtherTrainingError
    from nearfuture.training.request import Request
    from nearfuture.training.session import Outcome

_STEPS = 6000
_DISTILL = 3.0
_LEARNING_RATE, _FINE_TUNING_RATE = 2e-3, 5e-4
_MATRIX_RATE = 3e-3
_MATRIX_SHARE = _MATRIX_RATE / _LEARNING_RATE
_NOTHING_LEARNT = 0.9  # characters in error


def train(
    *,
    data: Annotated[tuple[Path, ...], Parameter(negative="")] = (),
    preset: Preset | None = None,
    begin_with: Annotated[str | None, Parameter(name="--from")] = None,
    rate: int | None = None,
    heads: str | None = None,
    models: Literal["both", "streaming", "bidirectional"] = "both",
    steps: int | None = None,
    epochs: int | None = None,
    batch_seconds: float | None = None,
    longest: float | None = None,
    learning_rate: float | None = None,
    regularise: bool = True,
    distill: float | None = None,
    shifts: str | None = None,
    delay_penalty: float = 0.0,
    bfloat16: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    seed: int = 0,
    processes: int = 1,
    threads: int | None = None,
    out: Annotated[Path, Parameter(name="--out")] = Path("runs/model"),
) -> None:
    """Train a streaming model with a head for every budget, and its bidirectional twin.

    The twin comes first, and the streaming model learns from it. Ctrl-C stops after the step at
    hand and keeps a checkpoint; the same command goes on from there, as if it had never stopped,
    and nearfuture export makes a bundle of what has been learnt until then.

    Args:
        data: Your own recordings with their texts: a folder, a list of them (CSV, TSV, JSON lines),
            a Kaldi directory or a manifest of Lhotse. Those of the split "train" are trained on,
            those of "dev" are watched; without any, about 5 % are set aside. May be given several
            times: all are trained on, and the first that has a "dev" is watched.
        preset: Size of the models, small unless given. The research model of Deep Speech 2 is
            bidirectional and has no streaming twin.
        begin_with: A bundle whose model is trained on instead, alone, with its own size, rate,
            heads and characters: fine-tuning.
        rate: Samples per second the models hear, the preset's own unless given; recordings are
            resampled.
        heads: Frames of lookahead of the streaming model's heads between commas, such as 0,4,8,19;
            the preset's own unless given.
        models: Which of the two to train.
        steps: Training steps of each model; 6000 unless there are epochs.
        epochs: Passes over the recordings instead.
        batch_seconds: Seconds of audio in a step's batch, padding included; 40 unless given.
        longest: Name and leave out recordings longer than so many seconds; 40 unless given.
        learning_rate: The greatest one, after the warm-up; it falls linearly to 0. 0.002 unless
            given, 0.0005 with --from.
        regularise: With SpecAugment and dropout; a training that is too short to learn its
            recordings by heart is better without.
        distill: How much the streaming model learns from the bidirectional one in the same folder:
            weight of their divergence in nats per frame; 0 for not at all. 3 where both are
            trained, unless given.
        shifts: Frames by which heads follow the bidirectional model later, such as 0:3,4:1.
        delay_penalty: Weight of what draws symbols of the streaming model to earlier frames.
        bfloat16: Multiply the encoder's matrices in bfloat16, for machines that are faster so;
            losses stay in float32.
        seed: Everything random follows from it.
        processes: Processes that share each batch; torchrun starts its own.
        threads: Threads of each process: 1 unless given here or by OMP_NUM_THREADS. Processes use
            cores better.
        out: Folder for checkpoints and bundles.
    """
    if not data:
        raise NearfutureError("say what to train on: --data SOURCE")
    if steps is not None and epochs is not None:
        raise NearfutureError("say how long to train: either --steps or --epochs, not both")
    for name, value, least in (
        ("--steps", steps, 1),
        ("--epochs", epochs, 1),
        ("--processes", processes, 1),
        ("--threads", threads, 1),
        ("--learning-rate", learning_rate, 0),
        ("--distill", distill, 0),
        ("--delay-penalty", delay_penalty, 0),
    ):
        if value is not None and not least <= value < math.inf:
            raise NearfutureError(f"{name} is at least {least}, not {value}")
    idle_quietly()
    try:
        from nearfuture.data.filter import LONGEST_S
        from nearfuture.training.request import BIDIRECTIONAL, STREAMING, Request
    except ModuleNotFoundError as error:
        raise NearfutureError(
            f"training needs {error.name}, which the base install leaves out; "
            f"install it with: {HOW_TO_TRAIN}"
        ) from error
    if begin_with is not None:
        if preset is not None:
            raise NearfutureError(
                f"--from {begin_with} has a size of its own: leave --preset out, or --from"
            )
        models = _kind_of(begin_with) if models == "both" else models
    both = (BIDIRECTIONAL,) if preset == "deep-speech-2-research" else (BIDIRECTIONAL, STREAMING)
    names = both if models == "both" else (models,)
    if STREAMING not in names and (distill or shifts or delay_penalty or heads):
        raise NearfutureError(
            "--heads, --distill, --shifts and --delay-penalty are about the streaming model, which "
            "is not trained: leave them out"
        )
    if distill is None:
        distill = _DISTILL if len(names) == 2 else 0.0
    if shifts and not distill:
        raise NearfutureError("--shifts has no effect where --distill is 0: leave one of them out")
    if learning_rate is None:
        learning_rate = _LEARNING_RATE if begin_with is None else _FINE_TUNING_RATE
    request = Request(
        data=data,
        preset=preset,
        begin_with=begin_with,
        rate=rate,
        heads=None if heads is None else _heads(heads),
        models=names,
        steps=_STEPS if steps is None and epochs is None else steps,
        epochs=epochs,
        batch_seconds=LONGEST_S if batch_seconds is None else batch_seconds,
        longest=LONGEST_S if longest is None else longest,
        learning_rate=learning_rate,
        matrix_rate=_MATRIX_RATE if begin_with is None else _MATRIX_SHARE * learning_rate,
        regularise=regularise,
        distill=distill,
        shifts={} if shifts is None else _shifts(shifts),
        delay_penalty=delay_penalty,
        bfloat16=bfloat16,
        seed=seed,
        threads=threads_asked_for(threads),
        folder=out,
    )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NearfutureError(f"--out {out} cannot be made: {error.strerror}") from error
    console = Console()
    outcomes = _run(request, processes, console)
    if outcomes is not None:
        _print(outcomes, out, console)


def _kind_of(bundle: str) -> 'Literal["streaming", "bidirectional"]':
    from nearfuture.runtime import Bundle

    return "streaming" if Bundle.open(bundle).manifest.kind == "streaming" else "bidirectional"


def _heads(told: str) -> tuple[int, ...]:
    try:
        frames = tuple(sorted({int(one) for one in told.split(",")}))
    except ValueError:
        frames = ()
    if not frames or frames[0] < 0:
        raise NearfutureError(f"--heads is frames from 0 between commas, like 0,4,8, not {told!r}")
    return frames


def _shifts(told: str) -> dict[int, int]:
    try:
        pairs = [one.split(":") for one in told.split(",")]
        return {int(head): int(frames) for head, frames in pairs}
    except ValueError as error:
        raise NearfutureError(
            f"--shifts is heads and frames between commas, like 0:3,4:1, not {told!r}"
        ) from error


def _run(request: "Request", processes: int, console: Console) -> "dict[str, Outcome] | None":
    """The outcomes; None in a process that is not the first."""
    from nearfuture.training.checkpoint import OtherTrainingError
    from nearfuture.training.company import company, gently
    from nearfuture.training.distributed import join, joined
    from nearfuture.training.session import train as train_models

    if joined() and processes > 1:
        raise NearfutureError("torchrun has started processes already: leave --processes out")
    with contextlib.ExitStack() as stack:
        others = stack.enter_context(company(request, processes))
        group = stack.enter_context(join(ranks=processes, meeting=others.meeting))
        if not group.first:
            train_models(request, group, interruption=lambda: gently(lambda: None))
            return None
        show = stack.enter_context(
            Bars(request.models, console) if console.is_terminal else Lines(console)
        )
        try:
            outcomes = train_models(
                request, group, tell=show.tell, interruption=lambda: gently(show.stopping)
            )
            show.summary()
            return outcomes
        except OtherTrainingError as error:
            others.dismiss()
            raise NearfutureError(_in_our_words(error)) from error
        except RuntimeError as error:
            if not others.lost():
                others.dismiss()
                raise
            raise NearfutureError(
                "a process that shares the work ended unexpectedly; the last checkpoint is kept, "
                "the same command goes on from there"
            ) from error
        except KeyboardInterrupt:
            others.dismiss()
            show.say("stopped; the same command goes on from the checkpoint, or begins without one")
            raise
        except BaseException:
            others.dismiss()  # before they find that this process has left
            raise


_OPTIONS = {
    "batch_seconds": "--batch-seconds",
    "longest": "--longest",
    "learning_rate": "--learning-rate",
    "distill": "--distill",
    "shift_frames": "--shifts",
    "delay_penalty": "--delay-penalty",
    "frames": "--heads",
    "rate": "--rate",
    "seed": "--seed",
    "noise": "noises of NEARFUTURE_CORPORA:",
    "rir": "rooms of NEARFUTURE_CORPORA:",
}
"""What a checkpoint remembers, in the words of the command."""

_OTHERS = {
    "recordings_sha256": "the recordings",
    "task": "--data",
    "begin_with": "--from",
    "symbols": "the characters of the texts",
    "hidden": "--preset",
    "dropout": "--regularise",
}
"""What it remembers by a digest or a name alone."""


def _in_our_words(error: "OtherTrainingError") -> str:
    """Which options of the command are others; what follows from them goes without saying."""
    changes = [
        f"{_OPTIONS[key]} {before} → {now}"
        for key, (before, now) in error.changes.items()
        if key in _OPTIONS
    ]
    changes += [f"{words} changed" for key, words in _OTHERS.items() if key in error.changes]
    if not changes:
        return str(error)
    return (
        f"{error.path} was started otherwise: {', '.join(changes)}; say what was said then, or "
        f"start afresh with another --out"
    )


def _print(outcomes: "dict[str, Outcome]", out: Path, console: Console) -> None:
    if not all(outcome.done for outcome in outcomes.values()):
        text = f"stopped; checkpoints are in {out}. The same command goes on from there; "
        text += "a bundle of the best weights so far comes with:"
        console.print(Text(text), soft_wrap=True)
        console.print(Text(f"nearfuture export {out}"), soft_wrap=True)
        raise KeyboardInterrupt
    watched = next(iter(outcomes.values())).watched
    table = Table("model", "waits for", "WER %", "CER %", title=f"errors on {watched}")
    table.caption = "waits for: at the rate the models hear; at another a resampler adds to it"
    for name, outcome in outcomes.items():
        for (_, words, characters), wait_ms in zip(outcome.rates, outcome.wait_ms, strict=True):
            wait = "everything" if wait_ms == math.inf else f"{wait_ms:g} ms"
            table.add_row(name, wait, f"{100 * words:.2f}", f"{100 * characters:.2f}")
    console.print(table)
    best = min(characters for outcome in outcomes.values() for _, _, characters in outcome.rates)
    if best >= _NOTHING_LEARNT:
        console.print(
            Text(
                "The models have learnt next to nothing yet: they need more steps (--epochs), or "
                "more recordings.",
                style="bold yellow",
            ),
            soft_wrap=True,
        )
    for outcome in outcomes.values():
        console.print(Text(f"nearfuture transcribe --model {outcome.bundle} FILE …"))
