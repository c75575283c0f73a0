"""The race: one recording, two live models and one that waits for the end, on a real clock.

>>> from nearfuture import load
>>> from nearfuture.audio import read
>>> from nearfuture.lab.recordings import PEOPLE
>>> audio = read(PEOPLE / "george-75423.flac")
>>> stream = load("digits", budget_ms=400).stream(audio.rate)
>>> events = [*stream.accept(audio.samples), stream.finish()]
>>> print(next(event.audio_ms for event in events if event.committed))
935.0
>>> print(stream.latency.worst_ms, [stream.latency.within(1000 * s) for s in (1, 5, 30)])
375.0 [375.0, 375.0, 375.0]
>>> print(load("digits-bidirectional").budget.worst_ms)
inf
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from typing import Annotated, Any, Literal

import numpy as np

from nearfuture.budget import RecognizerConfig
from nearfuture.lab.endpoint import Between
from nearfuture.lab.page import Media, Page
from nearfuture.lab.race import Clip, Spoken, lane, model, own_clip, spoken, stretch
from nearfuture.lab.recording import LONGEST_S, as_wav

Lookahead = Literal["4", "8", "19"]
Seconds = Annotated[int, Between(1, LONGEST_S)]

_BARS = 240


def run(
    seconds: Seconds = 5, tau: Lookahead = "8", body: bytes = b""
) -> Generator[dict[str, Any], None, None]:
    """Run the three models; a line for the sound, then one for each lane.

    Args:
        seconds: how much of the bundled recordings.
        tau: the lookahead of the model in the middle.
        body: a recording of one's own instead.
    """
    sound, words = _sound(seconds, body)
    yield {
        "ms": sound.ms,
        "text": sound.text,
        "own": bool(body),
        "words": [dataclasses.asdict(word) for word in words],
        "loudness": _loudness(sound.samples),
    }
    for name, lookahead in (("unidirectional", 0), ("row-convolution", int(tau)), ("twin", None)):
        promise = model(lookahead).latency(sound.rate)
        yield {
            "lane": name,
            "tau": lookahead,
            "promise_ms": None if promise is None else promise.worst_ms,
            **dataclasses.asdict(lane(sound, lookahead, words, judged=not body)),
        }


def sound(seconds: Seconds = 5, body: bytes = b"") -> Media:
    """What the models hear, as a WAV file."""
    heard, _ = _sound(seconds, body)
    return as_wav(heard.samples, heard.rate)


def waits(tau: Lookahead = "8") -> dict[str, Any]:
    """The longest wait for a letter in utterances of 1 to 30 seconds, of each model."""
    config = RecognizerConfig()  # the sizes of the bundled model and of its twin
    live = model(int(tau)).latency()
    assert live is not None
    twin = config.twin().latency(None)
    seconds = list(range(1, 31))
    return {
        "seconds": seconds,
        "row-convolution": [live.within(1000 * each) for each in seconds],
        "twin": [twin.within(1000 * each) for each in seconds],
    }


def _sound(seconds: int, body: bytes) -> tuple[Clip, list[Spoken]]:
    if not body:
        return stretch(seconds)
    clip = own_clip(body)
    return clip, spoken(clip)


def _loudness(samples: np.ndarray[Any, Any]) -> list[float]:
    """The loudest sample of each part, as a share of the loudest of all."""
    parts = np.array_split(np.abs(samples), _BARS)
    peaks = np.array([part.max() for part in parts])
    return [round(float(peak), 3) for peak in peaks / max(peaks.max(), 1e-9)]


PAGE = Page(
    name="the-race",
    endpoints={"run": run, "sound": sound, "waits": waits},
    module=__name__,
    behind=("lab/race.py", "runtime/stream.py", "runtime/model.py", "budget/latency.py"),
)
