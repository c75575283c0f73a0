"""`nearfuture audit`: how far a model looks ahead, what leaks, and who is to blame."""

import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token, convert
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.cli.example import cast, drawn, read, tensor, whole_numbers
from nearfuture.cli.target import Target, named, resolve, seeded
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.audit import Report


def _either_dash(type_: Any, tokens: Sequence[Token]) -> Any:
    """Take padding_mask, as it is called in Python, for padding-mask."""
    return convert(type_, [one.evolve(value=one.value.replace("_", "-")) for one in tokens])


Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Takes = Literal["nothing", "lengths", "mask", "padding-mask"]

# How the library says it, and what that is on the command line.
_SPELLINGS = (
    (r"\btakes='(\w+)'", r"--takes \1"),
    (r"'mask' or 'padding_mask'", "mask or padding-mask"),
    (r"\bin keyword\b", "in --keyword"),
    (r"\bwith (layout|output)\b", r"with --\1"),
    (r"\ba layout: a letter", "--layout: a letter"),
    (r"\b(an )?output_layout\b", "--output-layout"),
    (r"\bat_most(_ms)?\b", "--at-most"),
    (r"\bframe_ms\b", "--frame-ms"),
    (r"\bobserved counts\b", "--observed counts"),
    (r"\bgive them with (extra=\{.*?\})", r"give them in Python: nearfuture.audit.model(…, \1)"),
)

_STYLES = {
    "plain": "",
    "title": "bold",
    "good": "bold green",
    "bad": "bold red",
    "worth knowing": "yellow",
    "quiet": "dim",
    "past": "blue",
    "future": "yellow",
}


def audit(
    target: str,
    /,
    *,
    shape: str | None = None,
    example: Path | None = None,
    dtype: Literal["float32", "float64"] | None = None,
    tokens: int | None = None,
    lengths: str | None = None,
    at_most: str | None = None,
    frame_ms: float | None = None,
    layout: str | None = None,
    output: str | None = None,
    output_layout: str | None = None,
    takes: Annotated[Takes | None, Parameter(converter=_either_dash)] = None,
    keyword: str | None = None,
    block: int | None = None,
    step: str | None = None,
    start: str | None = None,
    finish: str | None = None,
    stride: int | None = None,
    observed: int = 0,
    torch: Flag = False,
    train: Flag = False,
    lookahead_only: Flag = False,
    seed: int = 0,
    html: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
) -> None:
    """Measure how far a model looks ahead, find what leaks, and name the place where it enters.

    The exit code is 0 if everything holds, 1 if not, and 2 if the model cannot be run.

    Args:
        target: "package.module:name" or "file.py:name" (a torch module; a class, or a function
            that needs no argument, is called to get one; any other function is audited itself),
            "model.onnx", or a bundle: its folder, zip file or name.
        shape: Shape of an input, drawn at random: "1,200,80".
        example: An input instead, as a .npy, .npz or .pt file.
        dtype: Of the values: float32 where they are drawn, as in the file unless given.
        tokens: Draw whole numbers below this instead of values.
        lengths: Valid frames of each row, "200,150"; then padding is checked.
        at_most: The lookahead allowed in input frames, "19", or the latency in the worst case,
            "760ms".
        frame_ms: Milliseconds of one input frame.
        layout: A letter for every axis of the input: N rows, T time, any other for the rest.
        output: Which part of the answer, by number or name; a bundle's head.
        output_layout: The axes of the output; without T it is one output for the sequence.
        takes: What the model is told about padding, besides its input.
        keyword: The name of that argument; positional unless given.
        block: So many samples count as one frame.
        step: Your own step(chunk, state) -> (frames, state), to compare in chunks; named like the
            target.
        start: What gives the state before the first chunk.
        finish: What gives the frames that still waited, from the last state.
        stride: Input frames for one output frame; measured unless given.
        observed: So many input frames are known beforehand: to look at them is no lookahead.
        torch: Hand a function torch tensors instead of numpy arrays.
        train: Audit a torch module as it trains, not as it is used.
        lookahead_only: Do not ask who looks at whom: quick even for very long inputs.
        seed: Everything random follows from it, also what your code draws to build the model.
        html: Write the report to this file too, as a page.
        as_json: Print one JSON object.
    """
    if html is not None and not html.absolute().parent.is_dir():
        raise NearfutureError(f"there is no folder {html.parent} to write {html.name} to")
    if step is None and (start or finish):
        raise NearfutureError("--start and --finish have no effect without --step")
    if keyword is not None and takes in (None, "nothing") and lengths is None:
        raise NearfutureError("--keyword has no effect without --takes or --lengths")
    if not 0 <= seed < 2**32:
        raise NearfutureError(f"--seed is a whole number from 0 and below 2**32, not {seed}")
    frames, latency_ms = _limit(at_most)
    # What the user's code prints must not get between the lines of a report.
    with redirect_stdout(sys.stderr):
        seeded(seed)
        subject = resolve(target)
        _check(subject, torch=torch, train=train, frame_ms=frame_ms, stride=stride, frames=frames)
        if latency_ms is not None and frame_ms is None and subject.kind != "bundle":
            raise NearfutureError(f"--at-most {at_most} needs --frame-ms: how long a frame is")
        given = _example(subject, shape, example, dtype, tokens, seed, torch=torch)
        options: dict[str, Any] = {
            "lengths": None if lengths is None else whole_numbers("--lengths", lengths),
            "frame_ms": frame_ms,
            "at_most": frames,
            "at_most_ms": latency_ms,
            "layout": layout,
            "output": int(output) if output and output.isdecimal() else output,
            "output_layout": output_layout,
            "takes": "padding_mask" if takes == "padding-mask" else takes,
            "keyword": keyword,
            "block": 1 if block is None else block,
            "step": step and named(step),
            "start": start and named(start),
            "finish": finish and named(finish),
            "stride": stride,
            "observed": observed,
            "train": train,
            "matrix": False if lookahead_only else None,
            "seed": seed,
            "name": target if subject.kind in ("module", "function") else None,
        }
        report = _run(subject, given, options)
    if html is not None:
        _write(report, html)
    _print(report, html, as_json=as_json)
    if not report.holds:
        sys.exit(1)


def _limit(at_most: str | None) -> tuple[float | None, float | None]:
    """Frames and milliseconds, of which one is None."""
    if at_most is None:
        return None, None
    words = at_most.strip().lower()
    try:
        number = float(words.removesuffix("ms"))
        if not number >= 0:
            raise ValueError
    except ValueError:
        raise NearfutureError(
            f"--at-most takes frames, such as 19, or a latency, such as 760ms, not {at_most!r}"
        ) from None
    if words.endswith("ms"):
        return None, number
    if not number.is_integer():
        raise NearfutureError(
            f"--at-most {at_most} is no whole number of frames; a latency ends in ms"
        )
    return int(number), None


def _check(
    subject: Target,
    *,
    torch: bool,
    train: bool,
    frame_ms: float | None,
    stride: int | None,
    frames: float | None,
) -> None:
    """Refuse what would have no effect."""
    if train and subject.kind != "module":
        raise NearfutureError(f"--train is for torch modules, and {subject.name} is none")
    if torch and subject.kind != "function":
        raise NearfutureError(f"--torch is for functions, and {subject.name} is none")
    if subject.kind == "bundle":
        for flag, value in (("--frame-ms", frame_ms), ("--stride", stride)):
            if value is not None:
                raise NearfutureError(f"{flag} is what a bundle knows of itself: leave it out")
        if frames is not None:
            raise NearfutureError(
                f"a bundle reads samples, not frames: limit its latency instead of --at-most "
                f"{frames:g}, such as --at-most 400ms"
            )


def _example(
    subject: Target,
    shape: str | None,
    file: Path | None,
    dtype: str | None,
    tokens: int | None,
    seed: int,
    *,
    torch: bool,
) -> Any:
    if shape is not None and file is not None:
        raise NearfutureError("an example has a shape: choose one of --shape and --example")
    if shape is None and tokens is not None:
        raise NearfutureError("--tokens has no effect without --shape")
    if shape is None and file is None and dtype is not None:
        raise NearfutureError("--dtype has no effect without --shape or --example")
    if dtype is not None and tokens is not None:
        raise NearfutureError("tokens are whole numbers: choose one of --dtype and --tokens")
    if file is not None:
        given = read(file) if dtype is None else cast(read(file), dtype)
    elif shape is not None:
        given = drawn(
            whole_numbers("--shape", shape), dtype=dtype or "float32", tokens=tokens, seed=seed
        )
    elif subject.kind == "bundle":
        return None
    else:
        raise NearfutureError("say what an input looks like: --shape 1,200,80 or --example FILE")
    if (torch or subject.kind == "module") and type(given).__module__ == "numpy":
        return tensor(given)
    return given


def _run(subject: Target, example: Any, options: dict[str, Any]) -> "Report":
    from nearfuture.audit import model

    console = Console(stderr=True)
    waiting = console.status(Text(f"auditing {subject.name} …"))
    with waiting if console.is_terminal else nullcontext():
        try:
            report = model(subject.model, example, **options)
        except NearfutureError as error:
            told = str(error)
            raise NearfutureError(f"{_spelled(told)}{_hint(subject, example, told)}") from error
    return replace(report, notes=tuple(map(_spelled, report.notes)))


def _spelled(message: str) -> str:
    """The library's words with flags for its arguments; what the model itself says stays."""
    ours, failed, theirs = message.partition(" cannot be run on ")
    for argument, flag in _SPELLINGS:
        ours = re.sub(argument, flag, ours)
    return f"{ours}{failed}{theirs}"


def _hint(subject: Target, example: Any, message: str) -> str:
    """Which flag may mend it, where the model did not like the kind of values."""
    if subject.kind == "function" and type(example).__module__ == "numpy" and "Tensor" in message:
        return " (does it take torch tensors? --torch)"
    if "scalar types: Long, Int" in message:
        return " (does it take tokens? --tokens)"
    if example is not None and re.search(r"dtype|scalar type|\bdouble\b|DoubleTensor", message):
        dtype = str(example.dtype).removeprefix("torch.")
        other = "float64" if dtype == "float32" else "float32"
        return f" (the example holds {dtype}: --dtype {other}?)"
    return ""


def _write(report: "Report", path: Path) -> None:
    try:
        report.save(path)
    except OSError as error:
        raise NearfutureError(f"{path} cannot be written: {error.strerror}") from error


def _print(report: "Report", html: Path | None, *, as_json: bool) -> None:
    from nearfuture.audit.report import dumps
    from nearfuture.audit.text import lines

    if as_json:
        print(dumps(report))
        return
    console = Console(highlight=False)
    for line in lines(report):
        pieces = [(words, _STYLES[role]) for words, role in line]
        console.print(Text.assemble(*pieces), soft_wrap=True)
    if html is not None:
        console.print(Text(f"The same as a page: {html}"), soft_wrap=True)
