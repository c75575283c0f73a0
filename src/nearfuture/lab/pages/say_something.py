"""Say something: live captions through the real server, and what each word had to wait for.

>>> from nearfuture import load
>>> from nearfuture.audio import read
>>> from nearfuture.lab.recordings import PEOPLE
>>> audio = read(PEOPLE / "george-75423.flac")
>>> print([latency.worst_ms for latency in load("digits").budgets.values()])
[55.0, 215.0, 375.0, 815.0]
>>> stream = load("digits", budget_ms=400).stream(audio.rate)
>>> events = [*stream.accept(audio.samples), stream.finish()]
>>> first = next(event for event in events if event.committed.startswith("seven"))
>>> print(first.words[0].end_ms, first.audio_ms, first.audio_ms - first.words[0].end_ms)
927.5 1255.0 327.5
"""

from __future__ import annotations

from typing import Annotated, Any

from nearfuture.lab.endpoint import Between
from nearfuture.lab.page import Media, Page
from nearfuture.lab.race import model, one_clip
from nearfuture.lab.recording import as_wav, decode

Number = Annotated[int, Between(1, 6)]
Budget = Annotated[int, Between(40, 900, 5)]


def promises(budget_ms: Budget = 400) -> dict[str, Any]:
    """The lookaheads that there are, each with the longest wait that it promises."""
    heads = model(0).budgets
    return {
        "budget_ms": budget_ms,
        "heads": [
            {"tau": tau, "worst_ms": latency.worst_ms} for tau, latency in sorted(heads.items())
        ],
    }


def sound(recording: Number = 1) -> Media:
    """One of the bundled recordings of people, its samples as they are."""
    clip = one_clip(recording)
    return as_wav(clip.samples, clip.rate)


def own(body: bytes = b"") -> Media:
    """A recording of one's own, decoded as the server decodes uploads: its samples as they are."""
    return as_wav(*decode(body))


PAGE = Page(
    name="say-something",
    endpoints={"promises": promises, "sound": sound, "own": own},
    module=__name__,
    behind=(
        "serving/protocols/stream.py",
        "serving/session.py",
        "lab/live.py",
        "lab/spectrogram.py",
        "budget/latency.py",
    ),
    unrecorded=("own",),
    in_browser=("own",),
)
