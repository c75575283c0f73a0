"""`nearfuture quantize`: a bundle's graphs in 8 or 4 bits, with their error beside float32."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from nearfuture.cli.console import Console, complain
from nearfuture.cli.dataset import evenly_spaced, warn_skipped
from nearfuture.cli.extra import HOW_TO_TRAIN
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.export import CalibrationData
    from nearfuture.runtime import Bundle, Precision

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
    """Add faster, smaller graphs in low precision to a streaming bundle, and measure their error.

    int8 is for many streams at once, int4 for up to about four of a wide model. Only large matrix
    products change. Every second recording calibrates the scales, the others measure the error. A
    precision that this processor does not support is reported and skipped: the exit code is 1.

    Args:
        model: The bundle: a folder, which gets the graphs; or a bundled model or a zip file with
            --to.
        precision: int8, int4, or both between commas; auto is each that this processor supports.
        data: Recordings like those of later use, with their texts: a folder, a list of them (CSV,
            TSV, JSON lines), a Kaldi directory or a Lhotse manifest. Without any, calibration
            uses noise and synthetic voices that say digits, and there is no error rate.
        limit: At most so many recordings, spread evenly over the data; 200 by default.
        to: A folder for a copy with the graphs; the bundle itself then stays as it is.
    """
    if find_spec("onnx") is None or find_spec("torch") is None:
        raise NearfutureError(
            f"quantize rewrites graphs, which the base install cannot; install what it needs with: "
            f"{HOW_TO_TRAIN}",
            code="missing_dependency",
        )
    from nearfuture.export import quantize as quantize_bundle
    from nearfuture.export.quantization import check_precisions
    from nearfuture.runtime import AUTO, LOW_PRECISIONS, Bundle, UnsupportedPrecision

    unsupported: list[UnsupportedPrecision] = []
    supported = []
    for name in LOW_PRECISIONS if precision == AUTO else dict.fromkeys(precision.split(",")):
        try:
            check_precisions([name])
            supported.append(name)
        except UnsupportedPrecision as error:
            unsupported.append(error)
    if not supported:
        raise unsupported[0]
    if limit is not None and (data is None or limit < 2):
        raise NearfutureError(
            "`limit` is a number of recordings of `data`, from 2", parameter="limit"
        )
    bundle = Bundle.open(model)
    if to is None and bundle.folder != Path(model):
        raise NearfutureError(
            f"{model} stays as it is: name a folder for a quantized copy with `to`", parameter="to"
        )
    calibration = None if data is None else _load(data, bundle.manifest.rate, limit or _LIMIT)
    errors: dict[str, Precision] = {}
    with _target(bundle, to) as folder:
        for name in supported:
            try:
                errors |= quantize_bundle(folder, [name], calibration)
            except UnsupportedPrecision as error:  # only the whole graph showed it
                unsupported.append(error)
        if not errors:
            raise unsupported[-1]
    console = Console()
    console.print(_table(errors, folder))
    console.print(Text(f"written: {folder} ({next(iter(errors.values())).audio})"))
    for refusal in unsupported:
        complain(f"skipped: {refusal}")
    if unsupported and precision != AUTO:
        sys.exit(1)


@contextmanager
def _target(bundle: "Bundle", to: Path | None) -> Iterator[Path]:
    """The folder to write to: the bundle's own, or a copy, which goes again after an error."""
    if to is None:
        yield bundle.folder
        return
    if to.exists():
        raise NearfutureError(
            f"`to={to}` exists already: name a new folder", code="conflict", parameter="to"
        )
    try:
        shutil.copytree(bundle.folder, to)
    except OSError as error:
        raise NearfutureError(f"`to={to}` cannot be written: {error}", parameter="to") from error
    try:
        yield to
    except BaseException:
        shutil.rmtree(to, ignore_errors=True)
        raise


def _load(data: Path, rate: int, limit: int) -> "CalibrationData":
    from nearfuture.data import read_source
    from nearfuture.export import CalibrationData

    recordings, transcripts, problems = [], [], []
    for cut in evenly_spaced(read_source(data).cuts, limit):
        try:
            recordings.append(cut.load(rate).samples)
            transcripts.append(cut.text)
        except NearfutureError as error:
            problems.append(str(error))
    warn_skipped(problems)
    return CalibrationData.split(recordings, transcripts)


def _table(errors: "dict[str, Precision]", folder: Path) -> Table:
    table = Table("precision", "mean |Δ log p|", "worst", "frames changed", "CER", "weights")

    def add(name: str, cer: float | None, file: str, *differences: str) -> None:
        size = f"{(folder / file).stat().st_size / 1e6:.1f} MB"
        table.add_row(name, *differences, "" if cer is None else f"{100 * cer:.2f} %", size)

    add("float32", next(iter(errors.values())).float32_cer, "weights.bin", "", "", "")
    for name, error in errors.items():
        differences = (f"{error.mean:.4f}", f"{error.worst:.2f}", f"{error.changed_percent:.2f} %")
        add(name, error.cer, f"weights.{name}.bin", *differences)
    return table
