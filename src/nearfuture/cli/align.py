"""`nearfuture align`: where the words of a known text are spoken; long recordings cut up."""

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.progress import track

from nearfuture.cli.console import Console, complain
from nearfuture.cli.flags import explain
from nearfuture.cli.options import Flag
from nearfuture.cli.reference import Reference, references
from nearfuture.cli.results import ResultFiles, choose_format
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.data.segmentation import SegmentationOptions, Segments
    from nearfuture.decoding import AlignedWord
    from nearfuture.runtime import Model

Format = Literal["json", "ctm", "textgrid"]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReferenceOptions:
    """The source of the transcripts.

    Attributes:
        text: The transcript, or a text file with it; for one recording.
        data: Recordings with their texts instead: a folder, a list of them (CSV, TSV, JSON lines),
            a Kaldi directory or a Lhotse manifest.
    """

    text: str | None = None
    data: Path | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AlignmentOutput:
    """The format and the destination of alignments.

    Attributes:
        form: "json" (one line per recording), "ctm" or "textgrid" (Praat); by default the format of
            the file named by --out, or "json".
        out: A file for all recordings, if it ends in .json, .jsonl, .ctm or .TextGrid; otherwise a
            folder with a file for each. Standard output by default.
    """

    form: Annotated[Format | None, Parameter(name="--format")] = None
    out: Path | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SegmentOptions:
    """Options for cutting long recordings into utterances.

    Attributes:
        silence_ms: With --segment: shortest silence to cut at, in ms; 300 by default.
        max_s: With --segment: the longest segment in seconds; 15 by default.
        max_cost: With --segment: drop segments with a higher cost per character in nats; 1 by
            default.
        min_confidence: With --segment: drop segments with a word below this confidence; 0.05 by
            default.
        max_cer: With --segment: drop segments whose text differs from what the model recognises
            by a higher character error rate; 0.3 by default.
    """

    silence_ms: float | None = None
    max_s: float | None = None
    max_cost: float | None = None
    min_confidence: float | None = None
    max_cer: float | None = None

    def segmentation(self) -> "SegmentationOptions":
        """Fill in the defaults of the library."""
        from nearfuture.data.segmentation import SegmentationOptions

        return SegmentationOptions(
            **{name: value for name, value in asdict(self).items() if value is not None}
        )


def align(
    files: Annotated[list[Path] | None, Parameter(negative="")] = None,
    /,
    *,
    reference: ReferenceOptions = ReferenceOptions(),
    model: str = "digits-bidirectional",
    output: AlignmentOutput = AlignmentOutput(),
    segment: Path | None = None,
    cutting: SegmentOptions = SegmentOptions(),
    late: Flag = False,
) -> None:
    """Find where each word of a known text is spoken, or cut long recordings into utterances.

    A recording that cannot be read, has no text, or cannot be aligned is reported on stderr, and
    the others follow; the exit code is then 1.

    Args:
        files: The recordings; the text of a.wav is in a.txt beside it, unless --text names it.
        reference: The source of the transcripts.
        model: A bundled bidirectional model, or a bundle's folder or zip file.
        output: The format and the destination of alignments.
        segment: Cut the recordings in their silences instead, and write the segments whose text can
            be trusted to this folder: audio, manifest.tsv and dropped.tsv.
        cutting: How recordings are cut, and which segments are dropped.
        late: Accept a streaming model, whose times come late by its emission delay.
    """
    from nearfuture.runtime import load

    if segment is None and cutting != SegmentOptions():
        raise NearfutureError(
            "options of segmentation have an effect only with `segment`", code="conflict"
        )
    if segment and (output.form or output.out):
        raise NearfutureError(
            "`segment` writes audio and lists: omit `form` and `out`",
            code="conflict",
            parameter="segment",
        )
    limits = cutting.segmentation()
    recordings, failures = references(files or [], reference.text, reference.data)
    recognizer = load(model)
    _check_late(recognizer, late)
    shown = sys.stderr.isatty() and bool(output.out or segment)
    console = Console(stderr=True)
    with ExitStack() as stack:
        if segment:
            process = _segmenter(segment, limits)
        else:
            form = choose_format(output.form, output.out, ("json", "ctm", "textgrid"))
            results = ResultFiles(form, output.out, recordings=len(recordings))
            process = _aligner(form, stack.enter_context(results))
        for recording in track(
            recordings, "aligning", console=console, transient=True, disable=not shown
        ):
            try:
                process(recording, recognizer)
            except NearfutureError as error:
                message = explain(error)
                named = recording.cut.name in message
                failures.append(message if named else f"{recording.cut.name}: {message}")
    for line in failures:
        complain(line)
    if failures:
        sys.exit(1)


Process = Callable[[Reference, "Model"], None]


def _check_late(model: "Model", late: bool) -> None:
    name, is_streaming = model.manifest.name, model.manifest.kind == "streaming"
    if is_streaming and not late:
        raise NearfutureError(
            f"{name} streams: it writes a character some time after its sound, so that all times "
            f"would come late by that emission delay; take a bidirectional model, such as "
            f"digits-bidirectional, or accept it with `late`",
            code="unsupported",
            parameter="late",
        )
    if late and not is_streaming:
        raise NearfutureError(
            f"{name} is bidirectional, and its times are not late: omit `late`",
            code="conflict",
            parameter="late",
        )
    if is_streaming:
        complain(f"{name} streams: times come late by its emission delay")


def _text_of(recording: Reference, model: "Model") -> str:
    """Read the text, and check that the model can write it."""
    text, manifest = recording.text(), model.manifest
    if foreign := sorted(set(text) - set(manifest.vocabulary.symbols)):
        raise NearfutureError(
            f"{manifest.name} does not write {', '.join(map(repr, foreign))}: write the text with "
            f"the characters it has, or take another `model`",
            code="unsupported",
            parameter="model",
        )
    return text


# Alignments


def _aligner(form: str, results: ResultFiles) -> Process:
    from nearfuture.decoding import align_words

    def process(recording: Reference, model: "Model") -> None:
        text = _text_of(recording, model)
        audio = recording.cut.read()
        manifest = model.manifest
        words = align_words(
            model.log_probs(audio.samples, audio.rate),
            text,
            manifest.vocabulary,
            frame_ms=manifest.frame_ms,
            centre_ms=manifest.centre_ms,
        )
        with results.open(recording.cut.name, recording.stem) as write:
            write(_formatted(form, recording, words, 1000 * audio.seconds))

    return process


def _formatted(
    form: str, recording: Reference, words: Sequence["AlignedWord"], duration_ms: float
) -> str:
    from nearfuture.text import ctm, textgrid, timed_json

    if form == "ctm":
        return "".join(ctm(words, name=recording.stem))
    if form == "textgrid":
        characters = [character for word in words for character in word.characters]
        return textgrid({"words": words, "characters": characters}, duration_ms=duration_ms)
    row = {
        "file": recording.cut.name,
        "text": " ".join(word.text for word in words),
        "words": [
            timed_json(word) | {"characters": list(map(timed_json, word.characters))}
            for word in words
        ],
        "audio_ms": round(duration_ms, 1),
    }
    return json.dumps(row, ensure_ascii=False) + "\n"


# Segments


def _segmenter(folder: Path, options: "SegmentationOptions") -> Process:
    from nearfuture.data.segmentation import Emissions, SegmentFolder, segment

    target = SegmentFolder(folder)

    def process(recording: Reference, model: "Model") -> None:
        text = _text_of(recording, model)
        audio = recording.cut.read()
        manifest = model.manifest
        emissions = Emissions(
            log_probs=model.log_probs(audio.samples, audio.rate),
            vocabulary=manifest.vocabulary,
            frame_ms=manifest.frame_ms,
            centre_ms=manifest.centre_ms,
        )
        segments = segment(emissions, text, audio, options)
        target.add(
            segments,
            audio,
            source=recording.cut.name,
            stem=recording.stem,
            speaker=recording.cut.speaker,
        )
        print(f"{recording.cut.name}: {_summary(segments)}", flush=True)

    return process


def _summary(segments: "Segments") -> str:
    seconds = sum(kept.seconds for kept in segments.kept)
    reasons = [dropped.reason for dropped in segments.dropped]
    counts = ", ".join(f"{reasons.count(reason)} {reason}" for reason in dict.fromkeys(reasons))
    return (
        f"{len(segments.kept)} segments of {seconds:.1f} s in all, "
        f"{len(reasons)} dropped{f' ({counts})' if counts else ''}"
    )
