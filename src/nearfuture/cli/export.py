"""`nearfuture export`: the bundle of a training's best weights so far, finished or not."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.cli.extra import HOW_TO_TRAIN
from nearfuture.error import MissingDependency, NearfutureError
from nearfuture.training.options import BIDIRECTIONAL, STREAMING


def export(run: Path, /, *, out: Annotated[Path | None, Parameter(name="--out")] = None) -> None:
    """Make a bundle of the best weights of a training so far.

    The training may be going on, interrupted or finished. The streaming model is exported
    if its training has begun, unless RUN is the folder of the bidirectional one.

    Args:
        run: The folder that `nearfuture train --out` named, or that of one model in it.
        out: Folder for the bundle; by default `bundle` in the model's own folder.
    """
    try:
        from nearfuture.training.bundle import export_best
        from nearfuture.training.checkpoint import BEST, CHECKPOINT
    except ModuleNotFoundError as error:
        raise MissingDependency("exporting", error.name, HOW_TO_TRAIN) from error
    trainings = [
        folder
        for folder in (run, run / STREAMING, run / BIDIRECTIONAL)
        if (folder / BEST).is_file() or (folder / CHECKPOINT).is_file()
    ]
    if not trainings:
        raise NearfutureError(
            f"{run} holds no training: it is the folder that nearfuture train --out named, with "
            f"{STREAMING} or {BIDIRECTIONAL} in it",
            code="not_found",
            parameter="run",
        )
    bundle, header = export_best(trainings[0], to=out)
    best = header["best"]
    errors = f", {100 * best['cer']:.2f} % of characters in error" if "cer" in best else ""
    console = Console()
    console.print(Text(f"weights of step {header['step']}{errors}"))
    for other in trainings[1:]:
        console.print(Text(f"the other model: nearfuture export {other}"), soft_wrap=True)
    console.print(Text(f"nearfuture transcribe --model {bundle} FILE …"), soft_wrap=True)
