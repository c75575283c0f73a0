"""`nearfuture align`: where words of a known text are spoken; long recordings cut up."""

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.progress import track

from nearfuture.cli.console import Console, complain
from nearfuture.cli.output import Output, chosen_format
from nearfuture.cli.spoken import Spoken, spoken
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.data.segmentation import Segmentation, Segments
    from nearfuture.decoding import AlignedWord
    from nearfuture.runtime import Model

Format = Literal["json", "ctm", "textgrid"]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]


def align(
    files: Annotated[list[Path] | None, Parameter(negative="")] = None,
    /,
    *,
    text: str | None = None,
    data: Path | None = None,
    model: str = "digits-bidirectional",
    form: Annotated[Format | None, Parameter(name="--format")] = None,
    out: Path | None = None,
    segment: Path | None = None,
    silence_ms: float | None = None,
    max_s: float | None = None,
    max_cost: float | None = None,
    min_confidence: float | None = None,
    max_cer: float | None = None,
    late: Flag = False,
) -> None:
    """Find where each word of a known text is spoken, or cut long recordings into utterances.

    A recording that cannot be read, has no text, or cannot be aligned is named on stderr and the
    others go on; the exit code is then 1.

    Args:
        files: The recordings; the text of a.wav is in a.txt beside it unless given.
        text: What is said, or a text file; for one recording.
        data: Recordings with their texts instead: a folder, a list of them (CSV, TSV, JSON lines),
            a Kaldi directory or a manifest of Lhotse.
        model: A bundled bidirectional model, or a bundle's folder or zip file.
        form: "json" (one line a recording), "ctm" or "textgrid" (Praat); unless given that of the
            file named by --out, or "json".
        out: A file for all recordings, if it ends in .json, .jsonl, .ctm or .TextGrid; otherwise a
            folder with a file for each. Standard output unless given.
        segment: Cut the recordings where they are silent instead, and write what can be trusted to
            this folder: audio, manifest.tsv and dropped.tsv.
        silence_ms: With --segment: cut where nothing is heard for so long; 300 unless given.
        max_s: With --segment: the longest segment in seconds; 15 unless given.
        max_cost: With --segment: drop what costs more for each character, in nats; 1 unless given.
        min_confidence: With --segment: drop where a word has less; 0.05 unless given.
        max_cer: With --segment: drop where the model by itself reads something else than the text,
            in errors for each character; 0.3 unless given.
        late: Accept a streaming model, whose times come late by its emission delay.
    """
    from nearfuture.runtime import load

    limits = _limits(segment, silence_ms, max_s, max_cost, min_confidence, max_cer)
    if segment and (form or out):
        raise NearfutureError("--segment writes audio and lists: leave --format and --out away")
    recordings, failures = spoken(files or [], text, data)
    recognizer = load(model)
    _check_late(recognizer, late)
    shown = sys.stderr.isatty() and bool(out or segment)
    console = Console(stderr=True)
    with ExitStack() as stack:
        if segment:
            handle = _segmenter(segment, limits)
        else:
            chosen = chosen_format(form, out, ("json", "ctm", "textgrid"))
            output = stack.enter_context(Output(chosen, out, recordings=len(recordings)))
            handle = _aligner(chosen, output)
        for recording in track(
            recordings, "aligning", console=console, transient=True, disable=not shown
        ):
            try:
                handle(recording, recognizer)
            except NearfutureError as error:
                message = str(error)
                failures.append(
                    message if recording.name in message else f"{recording.name}: {message}"
                )
    for line in failures:
        complain(line)
    if failures:
        sys.exit(1)


Handle = Callable[[Spoken, "Model"], None]


def _check_late(model: "Model", late: bool) -> None:
    name, streams = model.manifest.name, model.manifest.kind == "streaming"
    if streams and not late:
        raise NearfutureError(
            f"{name} streams: it writes a character some time after its sound, so that all times "
            f"would come late by that emission delay; take a bidirectional model, such as "
            f"digits-bidirectional, or say --late to accept it"
        )
    if late and not streams:
        raise NearfutureError(f"{name} is bidirectional, and its times are not late: omit --late")
    if streams:
        print(f"nearfuture: {name} streams: times come late by its emission delay", file=sys.stderr)


# Alignments


def _aligner(form: str, output: Output) -> Handle:
    def handle(recording: Spoken, model: "Model") -> None:
        from nearfuture.decoding import align_words

        said = _said(recording, model)
        audio = recording.audio()
        about = model.manifest
        words = align_words(
            model.log_probs(audio.samples, audio.rate),
            said,
            about.vocabulary,
            frame_ms=about.frame_ms,
            centre_ms=about.centre_ms,
        )
        with output.of(recording.name, recording.stem) as write:
            write(_formatted(form, recording, words, 1000 * audio.seconds))

    return handle


def _said(recording: Spoken, model: "Model") -> str:
    """Its text, which the model can write."""
    said, about = recording.text(), model.manifest
    if foreign := sorted(set(said) - set(about.vocabulary.symbols)):
        raise NearfutureError(
            f"{about.name} does not write {', '.join(map(repr, foreign))}: write the text with the "
            f"characters it has, or take another --model"
        )
    return said


def _formatted(
    form: str, recording: Spoken, words: Sequence["AlignedWord"], duration_ms: float
) -> str:
    from nearfuture.text.timed import ctm, described, textgrid

    if form == "ctm":
        return "".join(ctm(words, name=recording.stem))
    if form == "textgrid":
        characters = [character for word in words for character in word.characters]
        return textgrid({"words": words, "characters": characters}, duration_ms=duration_ms)
    told = {
        "file": recording.name,
        "text": " ".join(word.text for word in words),
        "words": [
            described(word) | {"characters": [described(one) for one in word.characters]}
            for word in words
        ],
        "audio_ms": round(duration_ms, 1),
    }
    return json.dumps(told, ensure_ascii=False) + "\n"


# Segments


def _limits(
    segment: Path | None,
    silence_ms: float | None,
    max_s: float | None,
    max_cost: float | None,
    min_confidence: float | None,
    max_cer: float | None,
) -> "Segmentation":
    from nearfuture.data.segmentation import Segmentation

    given = {
        "silence_ms": silence_ms,
        "longest_s": max_s,
        "highest_cost": max_cost,
        "lowest_confidence": min_confidence,
        "highest_error_rate": max_cer,
    }
    values = {name: value for name, value in given.items() if value is not None}
    if values and segment is None:
        raise NearfutureError("how to cut has a meaning only with --segment FOLDER")
    return Segmentation(**values)


def _segmenter(folder: Path, limits: "Segmentation") -> Handle:
    from nearfuture.data.segment_folder import SegmentFolder
    from nearfuture.data.segmentation import segment

    target = SegmentFolder(folder)

    def handle(recording: Spoken, model: "Model") -> None:
        said = _said(recording, model)
        audio = recording.audio()
        about = model.manifest
        found = segment(
            model.log_probs(audio.samples, audio.rate),
            said,
            about.vocabulary,
            samples=audio.samples,
            rate=audio.rate,
            frame_ms=about.frame_ms,
            centre_ms=about.centre_ms,
            limits=limits,
        )
        target.add(
            found,
            audio.samples,
            audio.rate,
            source=recording.name,
            stem=recording.stem,
            speaker=recording.speaker,
        )
        print(f"{recording.name}: {_summary(found)}", flush=True)

    return handle


def _summary(found: "Segments") -> str:
    seconds = sum(kept.end_ms - kept.start_ms for kept in found.kept) / 1000
    reasons = [one.reason for one in found.dropped]
    counted = ", ".join(f"{reasons.count(reason)} {reason}" for reason in dict.fromkeys(reasons))
    return (
        f"{len(found.kept)} segments of {seconds:.1f} s in all, "
        f"{len(reasons)} dropped{f' ({counted})' if counted else ''}"
    )
