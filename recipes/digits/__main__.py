"""`python -m recipes.digits train` and `… evaluate`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Literal

import soundfile
from cyclopts import App, Parameter

from nearfuture import NearfutureError
from nearfuture.cli import main as nearfuture
from nearfuture.training import Note, Progress, Request, gently, join, train
from recipes.digits import DigitRecordings, symbols, test_strings, training_data

app = App(name="python -m recipes.digits", help="Train and evaluate models of connected digits.")


@app.command(name="train")
def train_digits(
    *,
    preset: Literal["tiny", "base", "small"] = "small",
    heads: Annotated[tuple[int, ...] | None, Parameter(negative="")] = None,
    steps: int = 6000,
    regularise: bool = True,
    distill: float = 3.0,
    seed: int = 0,
    threads: int = 1,
    out: Path = Path("runs/digits"),
) -> None:
    """Train a bidirectional model of connected digits, and the streaming one that learns from it.

    torchrun starts several processes that share each batch.

    Args:
        preset: Size of the models.
        heads: Frames of lookahead of a head of the streaming model, once for each head.
        steps: Training steps of each model.
        regularise: With SpecAugment and dropout.
        distill: Weight of the divergence from the bidirectional model, in nats per frame.
        seed: Everything random follows from it.
        threads: Threads of each process.
        out: Folder for checkpoints and bundles.
    """
    request = Request(
        preset=preset,
        heads=heads,
        steps=steps,
        regularise=regularise,
        distill=distill,
        seed=seed,
        threads=threads,
        folder=out,
    )
    config = request.configs(symbols())[request.models[0]]
    with join() as group:
        train(
            request,
            group,
            material=training_data(config, seed=seed),
            tell=_print,
            interruption=lambda: gently(lambda: print("stopping after this step")),
        )


def _print(name: str, message: Note | Progress) -> None:
    if isinstance(message, Note):
        print(f"{name}: {message.doing}", flush=True)
    elif message.watched:
        errors = ", ".join(f"{key} {100 * rate:.2f} %" for key, rate in message.watched.items())
        print(f"{name}: step {message.step}, loss {message.loss:.3f}, {errors}", flush=True)


@app.command
def evaluate(
    *options: Annotated[str, Parameter(allow_leading_hyphen=True)],
) -> None:
    """Measure errors and delays on the 600 test strings.

    Args:
        options: Those of `nearfuture evaluate`, `--data` apart.
    """
    with tempfile.TemporaryDirectory() as folder:
        nearfuture(["evaluate", "--data", str(write_test_strings(Path(folder))), *options])


def write_test_strings(folder: Path, *, rate: int = 8000) -> Path:
    """Write the test strings as recordings, and the manifest that lists them; its path."""
    rows = [("path", "transcript", "speaker", "split")]
    for number, string in enumerate(test_strings(DigitRecordings.load(rate=rate))):
        path = folder / f"{number:03d}.wav"
        soundfile.write(path, string.samples, rate, subtype="FLOAT")
        rows.append((path.name, string.text, string.speaker, "test"))
    manifest = folder / "manifest.tsv"
    manifest.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return manifest


if __name__ == "__main__":
    try:
        app()
    except NearfutureError as error:
        raise SystemExit(f"digits: {error}") from error
