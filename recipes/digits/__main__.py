"""`python -m recipes.digits train` and `… evaluate`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import soundfile
from cyclopts import App, Parameter

from nearfuture import NearfutureError
from nearfuture.cli import main as nearfuture
from nearfuture.training import (
    ArchitectureOptions,
    ProgressEvent,
    ProgressReporter,
    StepProgress,
    TrainingOptions,
    architectures,
    graceful_interrupt,
    init_group,
    train,
)
from recipes.digits import DigitRecordings, symbols, test_strings, training_data

app = App(name="python -m recipes.digits", help="Train and evaluate models of connected digits.")


@app.command(name="train")
def train_digits(
    *,
    model: ArchitectureOptions = ArchitectureOptions(),  # noqa: B008
    options: TrainingOptions = TrainingOptions(),  # noqa: B008
    out: Path = Path("runs/digits"),
) -> None:
    """Train a bidirectional model of connected digits, and the streaming one that learns from it.

    torchrun starts several processes that share each batch.

    Args:
        model: Which models.
        options: How to train them.
        out: Folder for checkpoints and bundles.
    """
    config = next(iter(architectures(model, options, symbols()).values()))
    with init_group() as group:
        data = training_data(config, seed=options.seed)
        train(data, model, options, out, group=group, progress=Printer())


class Printer(ProgressReporter):
    """Prints a line at each validation; Ctrl-C ends the training after the current step."""

    def report(self, model: str, event: ProgressEvent | StepProgress) -> None:
        """Print what happens to a model, by its name."""
        if isinstance(event, ProgressEvent):
            print(f"{model}: {event.activity}", flush=True)
        elif event.validation:
            print(f"{model}: {event}", flush=True)

    def interruption(self) -> AbstractContextManager[Callable[[], bool]]:
        """Let Ctrl-C end the training after the current step."""
        return graceful_interrupt(lambda: print("stopping after this step", flush=True))


@app.command
def evaluate(
    *options: Annotated[str, Parameter(allow_leading_hyphen=True)],
) -> None:
    """Measure errors and delays on the 600 test strings.

    Args:
        options: The options of nearfuture evaluate, apart from --data.
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
