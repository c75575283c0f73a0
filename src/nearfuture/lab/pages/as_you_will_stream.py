"""Training as you will stream: a bidirectional model without its backward direction.

>>> from nearfuture.lab import recordings
>>> from nearfuture.lab.forward_alone import heard_forwards
>>> recording = recordings.recordings()[0]
>>> both_ways = recordings.log_probs_of_twin(recording)
>>> forwards, log_mel = heard_forwards(recording)
>>> live = recordings.log_probs_of_heads(recording)[8]
>>> for log_probs in (both_ways, forwards, live):
...     print(recordings.text_of(log_probs, recordings.twin().manifest))
seven five four two three
eeen ve our o e
seven five four two shree
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearfuture.lab import forward_alone, recordings
from nearfuture.lab.endpoint import Between
from nearfuture.lab.page import ASSETS, Page
from nearfuture.lab.recordings import LogProbs, Recording
from nearfuture.text import BLANK

if TYPE_CHECKING:
    from nearfuture.decoding import Alignment

# `python benchmarks/drop_backward.py | tail -n 1` wrote it.
MEASURED = ASSETS / "measured" / "forward-alone.json"

Number = Annotated[int, Between(1, 6)]
Lookahead = Literal["0", "4", "8", "19"]

_SEEN = 0.05  # a symbol that is never more probable is not drawn


def spectrogram(recording: Number = 1) -> dict[str, Any]:
    """What the models hear: log-mel features, 0 to 255 from the quietest to the loudest."""
    _, log_mel = forward_alone.heard_forwards(_recording(recording))
    low, high = np.percentile(log_mel, [2, 99.5])
    shades = np.clip(255 * (log_mel - low) / (high - low), 0, 255).round().astype(int)
    return {"shades": shades, "hop_ms": 10.0, "centre_ms": 12.5}


def lanes(recording: Number = 1, tau: Lookahead = "0") -> Generator[dict[str, Any], None, None]:
    """Let three models hear a recording: a line about it, then what each writes and where."""
    chosen = _recording(recording)
    both_ways = recordings.log_probs_of_twin(chosen)
    reference = _aligned(both_ways, chosen)
    manifest = recordings.twin().manifest
    sound = recordings.audio(chosen)
    yield {
        "said": chosen.text,
        "ms": 1000 * len(sound.samples) / sound.rate,
        "frame_ms": manifest.frame_ms,
        "centre_ms": manifest.centre_ms,
        "frames": len(both_ways),
    }
    yield {"lane": "twin", **_lane(both_ways, chosen, reference)}
    forwards, _ = forward_alone.heard_forwards(chosen)
    yield {"lane": "alone", **_lane(forwards, chosen, reference)}
    live = recordings.log_probs_of_heads(chosen)[int(tau)]
    yield {"lane": "trained", **_lane(live, chosen, reference)}


def measured() -> dict[str, Any]:
    """The errors of all of them on test strings, as the benchmark printed them."""
    line: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return line


def _recording(number: int) -> Recording:
    return recordings.recordings()[number - 1]


def _aligned(log_probs: LogProbs, recording: Recording) -> Alignment:
    from nearfuture.decoding import align

    return align(log_probs, recordings.twin().manifest.vocabulary.encode(recording.text))


def _lane(log_probs: LogProbs, recording: Recording, reference: Alignment) -> dict[str, Any]:
    """What one model writes, and the alignment of what was said, beside the twin's."""
    manifest = recordings.twin().manifest
    alignment = _aligned(log_probs, recording)
    characters = [
        (token, other)
        for token, other, character in zip(
            alignment.tokens, reference.tokens, recording.text, strict=True
        )
        if character != " "
    ]
    late = [token.first - other.first for token, other in characters]
    lengths = [token.last - token.first + 1 for token, _ in characters]
    text = recordings.text_of(log_probs, manifest)
    return {
        "words": recordings.judged(recording.text, text),
        "curves": _curves(np.exp(log_probs)),
        "letters": [
            {"text": manifest.vocabulary.decode([token.index]), "frame": token.first}
            for token, _ in characters
        ],
        "late_ms": manifest.frame_ms * float(np.median(late)),
        "frames_a_letter": float(np.mean(lengths)),
        "blank": float(np.mean(log_probs.argmax(axis=1) == BLANK)),
        "nats": -alignment.score / len(alignment.tokens),
    }


def _curves(probabilities: NDArray[np.float32]) -> list[dict[str, Any]]:
    """The probability of each letter that is ever probable, frame by frame; no blank, no space."""
    vocabulary = recordings.twin().manifest.vocabulary
    names = {index: vocabulary.decode([index]) for index in range(1, probabilities.shape[1])}
    return [
        {"text": name, "values": probabilities[:, index].astype(float).round(3)}
        for index, name in names.items()
        if name.strip() and probabilities[:, index].max() > _SEEN
    ]


PAGE = Page(
    name="as-you-will-stream",
    endpoints={"spectrogram": spectrogram, "lanes": lanes, "measured": measured},
    module=__name__,
    behind=(
        "lab/forward_alone.py",
        "lab/recordings.py",
        "decoding/alignment.py",
        "model/features.py",
    ),
)
