"""`nearfuture audit`: how far a model looks ahead, what leaks, and which operation causes it."""

import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token, convert
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.cli.example import cast, drawn, read, tensor, whole_numbers
from nearfuture.cli.options import Flag
from nearfuture.cli.target import Target, named, resolve, seeded
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.audit import Report


def _either_dash(type_: Any, tokens: Sequence[Token]) -> Any:
    """Accept padding_mask, its name in Python, for padding-mask."""
    return convert(type_, [token.evolve(value=token.value.replace("_", "-")) for token in tokens])


Takes = Literal["nothing", "lengths", "mask", "padding-mask"]

_STYLES = {
    "plain": "",
    "title": "bold",
    "good": "bold green",
    "bad": "bold red",
    "notice": "yellow",
    "quiet": "dim",
    "past": "blue",
    "future": "yellow",
}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class InputFlags:
    """The example that a model is audited with.

    Attributes:
        shape: Shape of an input, drawn at random: "1,200,80".
        example: An input instead, as a .npy, .npz or .pt file.
        dtype: Type of the values; by default float32 if they are drawn, otherwise that of the file.
        tokens: Draw integers below this instead of values.
        lengths: Valid frames of each row, "200,150"; then padding is checked.
    """

    shape: str | None = None
    example: Path | None = None
    dtype: Literal["float32", "float64"] | None = None
    tokens: int | None = None
    lengths: str | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CallFlags:
    """The call of a model, and the output that is audited.

    Attributes:
        frame_ms: Milliseconds of one input frame.
        layout: A letter for every axis of the input: N rows, T time, any other for the rest.
        output: Which output of the model to audit, by number or name; for a bundle, its head.
        output_layout: The axes of the output; without T it is one output for the sequence.
        takes: Argument that describes the padding to the model: none, lengths or a mask.
        padding: On which side of a row its padding is.
        keyword: Name of the argument for lengths or mask; by default it is positional.
        frame_samples: How many samples count as one frame.
        stride: Input frames per output frame; measured by default.
        observed: How many input frames are known beforehand: depending on them is no lookahead.
        train: Audit a torch module in train mode instead of eval mode.
        seed: Seed of everything random, and of what your code draws to build the model.
    """

    frame_ms: float | None = None
    layout: str | None = None
    output: str | None = None
    output_layout: str | None = None
    takes: Annotated[Takes | None, Parameter(converter=_either_dash)] = None
    padding: Literal["right", "left"] = "right"
    keyword: str | None = None
    frame_samples: int = 1
    stride: int | None = None
    observed: int = 0
    train: Flag = False
    seed: int = 0


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StreamingFlags:
    """The functions by which a model is streamed, named like the model.

    Attributes:
        step: Your step(chunk, state) -> (frames, state), compared with one call.
        start: A function that returns the state before the first chunk.
        finish: A function that returns the frames still pending, from the last state.
        chunks: The sizes that a chunk may have, in frames: "8" or "8,16,24"; any by default.
        first_chunk: The size of the first chunk.
    """

    step: str | None = None
    start: str | None = None
    finish: str | None = None
    chunks: str | None = None
    first_chunk: int | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReportFlags:
    """What is written.

    Attributes:
        lookahead_only: Do not measure the dependency matrix: fast even for very long inputs.
        out: Write the report to this file too: .html (a page), .json, .xml (JUnit) or .sarif; can
            be given several times.
        as_json: Print one JSON object.
    """

    lookahead_only: Flag = False
    out: Annotated[tuple[Path, ...], Parameter(negative="")] = ()
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False


def audit(
    target: str,
    /,
    *,
    inputs: InputFlags = InputFlags(),
    at_most: str | None = None,
    call: CallFlags = CallFlags(),
    streaming: StreamingFlags = StreamingFlags(),
    torch: Flag = False,
    output: ReportFlags = ReportFlags(),
) -> None:
    """Measure how far a model looks ahead, find what leaks, and name the operation that causes it.

    The exit code is 0 if everything holds, 1 if not, 2 if the model cannot be run, and 3 if some
    property could not be decided. Ctrl-C prints what is known so far. On GitHub Actions, findings
    are annotations of their lines too.

    Args:
        target: "package.module:name" or "file.py:name" (a torch module; a class, or a function
            that needs no argument, is called to get one; any other function is audited itself),
            "model.onnx", or a bundle: its folder, zip file or name.
        inputs: The example.
        at_most: The lookahead allowed in input frames, "19", or the worst-case latency, "760ms".
        call: How the model is called.
        streaming: How it is streamed.
        torch: Pass torch tensors to a function instead of numpy arrays.
        output: What is written.
    """
    from nearfuture.audit import AuditInterrupted

    for path in output.out:
        _check_writable(path)
    if streaming.step is None and (streaming.start or streaming.finish):
        raise NearfutureError("`start` and `finish` have no effect without `step`")
    if call.keyword is not None and call.takes in (None, "nothing") and inputs.lengths is None:
        raise NearfutureError("`keyword` has no effect without `takes` or `lengths`")
    if not 0 <= call.seed < 2**32:
        raise NearfutureError(
            f"`seed` is an integer from 0 and below 2**32, not {call.seed}", code="out_of_range"
        )
    limit = _limit(at_most)
    # What the user's code prints must not get between the lines of a report.
    with redirect_stdout(sys.stderr):
        seeded(call.seed)
        model = resolve(target)
        _check(model, call, limit, torch=torch)
        options = asdict(call) | limit
        if call.output is not None and call.output.isdecimal():
            options["output"] = int(call.output)
        options["takes"] = "padding_mask" if call.takes == "padding-mask" else call.takes
        options["name"] = target if model.kind in ("module", "function") else None
        options["matrix"] = False if output.lookahead_only else None
        for part in ("step", "start", "finish"):
            name = getattr(streaming, part)
            options[part] = name and named(name)
        if streaming.chunks is not None:
            options["chunks"] = whole_numbers("--chunks", streaming.chunks)
        options["first_chunk"] = streaming.first_chunk
        if inputs.lengths is not None:
            options["lengths"] = whole_numbers("--lengths", inputs.lengths)
        example = _example(model, inputs, call.seed, torch=torch)
        try:
            report, interrupted = _run(model, example, options), False
        except AuditInterrupted as stopped:
            report, interrupted = stopped.report, True
    for path in output.out:
        _write(report, path)
    _print(report, output)
    if interrupted:
        sys.exit(130)
    if not report.holds:
        sys.exit(1 if report.verdict == "broken" else 3)


def _limit(at_most: str | None) -> dict[str, float]:
    """Read a limit in frames or in milliseconds."""
    if at_most is None:
        return {}
    text = at_most.strip().lower()
    try:
        number = float(text.removesuffix("ms"))
    except ValueError:
        number = -1
    if not number >= 0:
        raise NearfutureError(
            f"`at_most` is a number of frames, such as 19, or a latency, such as 760ms, not "
            f"{at_most!r}"
        )
    if text.endswith("ms"):
        return {"at_most_ms": number}
    if not number.is_integer():
        raise NearfutureError(
            f"`at_most={at_most}` is no whole number of frames; a latency ends in ms"
        )
    return {"at_most": int(number)}


def _check(model: Target, call: CallFlags, limit: dict[str, float], *, torch: bool) -> None:
    """Refuse flags without effect."""
    if call.train and model.kind != "module":
        raise NearfutureError(f"`train` is for torch modules, and {model.name} is none")
    if torch and model.kind != "function":
        raise NearfutureError(f"`torch` is for functions, and {model.name} is none")
    if model.kind == "bundle":
        for parameter, value in (("frame_ms", call.frame_ms), ("stride", call.stride)):
            if value is not None:
                raise NearfutureError(f"`{parameter}` is known from the bundle: leave it out")


def _example(model: Target, inputs: InputFlags, seed: int, *, torch: bool) -> Any:
    shape, file, dtype, tokens = inputs.shape, inputs.example, inputs.dtype, inputs.tokens
    if shape is not None and file is not None:
        raise NearfutureError("an example has a shape: choose one of `shape` and `example`")
    if shape is None and tokens is not None:
        raise NearfutureError("`tokens` has no effect without `shape`")
    if shape is None and file is None and dtype is not None:
        raise NearfutureError("`dtype` has no effect without `shape` or `example`")
    if dtype is not None and tokens is not None:
        raise NearfutureError("tokens are integers: choose one of `dtype` and `tokens`")
    if file is not None:
        example = read(file) if dtype is None else cast(read(file), dtype)
    elif shape is not None:
        sizes = whole_numbers("--shape", shape)
        example = drawn(sizes, dtype=dtype or "float32", tokens=tokens, seed=seed)
    elif model.kind == "bundle":
        return None
    else:
        raise NearfutureError("describe an input: --shape 1,200,80 or --example FILE")
    if (torch or model.kind == "module") and type(example).__module__ == "numpy":
        return tensor(example)
    return example


def _run(model: Target, example: Any, options: dict[str, Any]) -> "Report":
    from nearfuture import audit

    console = Console(stderr=True)
    waiting = console.status(Text(f"auditing {model.name} …"))

    def progress(stage: str) -> None:
        waiting.update(Text(f"auditing {model.name}: {stage} …"))

    with waiting if console.is_terminal else nullcontext():
        try:
            return audit.model(model.model, example, progress=progress, **options)
        except NearfutureError as error:
            if hint := _hint(model, example, str(error)):
                raise NearfutureError(
                    f"{error} ({hint})", code="unsupported", parameter=error.parameter
                ) from error
            raise


def _hint(model: Target, example: Any, message: str) -> str:
    """Name the flag that may help where the model refuses the type of values."""
    if model.kind == "function" and type(example).__module__ == "numpy" and "Tensor" in message:
        return "does it take torch tensors? --torch"
    if "scalar types: Long, Int" in message:
        return "does it take tokens? --tokens"
    if example is not None and re.search(r"dtype|scalar type|\bdouble\b|DoubleTensor", message):
        dtype = str(example.dtype).removeprefix("torch.")
        other = "float64" if dtype == "float32" else "float32"
        return f"the example holds {dtype}: --dtype {other}?"
    return ""


def _check_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before the audit takes its time."""
    from nearfuture.audit import render

    render.form_of(path)
    if not path.absolute().parent.is_dir():
        raise NearfutureError(
            f"there is no folder {path.parent} to write {path.name} to",
            code="not_found",
            parameter="out",
        )


def _write(report: "Report", path: Path) -> None:
    from nearfuture.audit import render

    try:
        render.save(report, path)
    except OSError as error:
        raise NearfutureError(
            f"{path} cannot be written: {error.strerror}", parameter="out"
        ) from error


def _print(report: "Report", output: ReportFlags) -> None:
    from nearfuture.audit import render

    if output.as_json:
        print(json.dumps(render.to_json(report), ensure_ascii=False))
        return
    console = Console(highlight=False)
    for line in render.lines(report):
        pieces = [(words, _STYLES[role]) for words, role in line]
        console.print(Text.assemble(*pieces), soft_wrap=True)
    if output.out:
        written = ", ".join(map(str, output.out))
        console.print(Text(f"Written to {written}"), soft_wrap=True)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        print("\n".join(render.github_annotations(report)))
