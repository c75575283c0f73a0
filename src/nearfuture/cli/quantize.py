"""`nearfuture quantize`: twins of a bundle in 8 or 4 bits, with their error beside float32."""

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.cli.extra import HOW_TO_TRAIN
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.export import Sounds
    from nearfuture.runtime.precision import Precision

_LIMIT = 200


def quantize(
    model: str,
    /,
    *,
    precision: str = "int8",
    data: Path | None = None,
    limit: int | None = None,
    to: Path | None = None,
) -> None:
    """Add low-precision twins to a streaming bundle: faster, smaller, their error measured.

    int8 is for many streams at once, int4 for up to about four of a wide model. Only large matrix
    products change. Every other recording sets the scales, the others measure the error. One of
    several precisions that this processor does not offer is named and left out: the exit code is 1.

    Args:
        model: The bundle: a folder, which gets the twins; or a bundled model or a zip file with
            --to.
        precision: int8, int4, or both between commas; auto is what this processor offers of them.
        data: Recordings like those that will be heard, with their texts: a folder, a list of them
            (CSV, TSV, JSON lines), a Kaldi directory or a manifest of Lhotse. Without any, noise
            and synthetic voices that say digits have to do, and there is no error rate.
        limit: At most so many recordings, spread evenly over the data; 200 unless given.
        to: A folder for a copy with the twins; the bundle itself then stays as it is.
    """
    if find_spec("onnx") is None or find_spec("torch") is None:
        raise NearfutureError(
            f"quantize rewrites graphs, which the base install cannot; install what it needs with: "
            f"{HOW_TO_TRAIN}"
        )
    from nearfuture.export import quantize as add_twins
    from nearfuture.export.quantization import check_precisions
    from nearfuture.runtime import Bundle
    from nearfuture.runtime.precision import LOW_PRECISIONS
    from nearfuture.runtime.processor import AUTO, UnsupportedPrecision

    refused: list[UnsupportedPrecision] = []
    precisions = []
    asked = LOW_PRECISIONS if precision == AUTO else dict.fromkeys(precision.split(","))
    for one in asked:
        try:
            check_precisions([one])
            precisions.append(one)
        except UnsupportedPrecision as error:
            refused.append(error)
    if not precisions:
        raise refused[0]
    if limit is not None and (data is None or limit < 2):
        raise NearfutureError("--limit is a number of recordings of --data, from 2")
    bundle = Bundle.open(model)
    if to is None and bundle.folder != Path(model):
        raise NearfutureError(
            f"{model} stays as it is: name a folder for a copy with the twins with --to"
        )
    sounds = None if data is None else _sounds(data, bundle.manifest.rate, limit or _LIMIT)
    folder = bundle.folder
    if to is not None:
        folder = _copied(bundle.folder, to)
    errors: dict[str, Precision] = {}
    try:
        for one in precisions:
            try:
                errors |= add_twins(folder, [one], sounds)
            except UnsupportedPrecision as error:  # the whole graph told what a product did not
                refused.append(error)
        if not errors:
            raise refused[-1]
    except BaseException:
        if to is not None:
            shutil.rmtree(to, ignore_errors=True)
        raise
    console = Console()
    console.print(_table(errors, folder))
    console.print(Text(f"written: {folder} ({next(iter(errors.values())).audio})"))
    for told in refused:
        print(f"nearfuture: left out: {told}", file=sys.stderr)
    if refused and precision != AUTO:
        sys.exit(1)


def _copied(source: Path, to: Path) -> Path:
    if to.exists():
        raise NearfutureError(f"--to {to} exists already: name a new folder")
    try:
        shutil.copytree(source, to)
    except OSError as error:
        raise NearfutureError(f"--to {to} cannot be written: {error}") from error
    return to


def _sounds(data: Path, rate: int, limit: int) -> "Sounds":
    from nearfuture.data import read_source
    from nearfuture.export import given_sounds

    cuts = read_source(data).cuts
    spread = [cuts[number * len(cuts) // limit] for number in range(limit)]
    recordings, texts = [], []
    for cut in cuts if len(cuts) <= limit else spread:
        try:
            recordings.append(cut.load(rate).samples)
            texts.append(cut.text)
        except NearfutureError as error:
            print(f"nearfuture: left out: {error}", file=sys.stderr)
    return given_sounds(recordings, texts)


def _table(errors: "dict[str, Precision]", folder: Path) -> Table:
    table = Table("precision", "mean |Δ log p|", "worst", "frames changed", "CER", "weights")
    spoken = next(iter(errors.values())).float32_cer
    rows = [("float32", "", "", "", spoken, "weights.bin")]
    rows += [
        (
            name,
            f"{error.mean:.4f}",
            f"{error.worst:.2f}",
            f"{error.changed_percent:.2f} %",
            error.cer,
            f"weights.{name}.bin",
        )
        for name, error in errors.items()
    ]
    for name, mean, worst, changed, cer, file in rows:
        size = f"{(folder / file).stat().st_size / 1e6:.1f} MB"
        table.add_row(name, mean, worst, changed, "" if cer is None else f"{100 * cer:.2f} %", size)
    return table
