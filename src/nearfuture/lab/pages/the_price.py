"""The price: how many errors a millisecond is worth, measured; and which words a budget changes.

>>> from nearfuture import load
>>> from nearfuture.audio import read
>>> from nearfuture.lab.recordings import PEOPLE
>>> audio = read(PEOPLE / "jackson-09256.flac")
>>> for budget_ms in (100, 400):
...     model = load("digits", budget_ms=budget_ms)
...     print(model.budget.worst_ms, model.transcribe(audio).text)
55.0 hzero nine two five six
375.0 zero nine two five six
>>> print(load("digits-bidirectional").transcribe(audio).text)
zero nine two five six
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from functools import cache
from typing import Annotated, Any, Literal

from nearfuture.budget import largest_lookahead
from nearfuture.lab import recordings
from nearfuture.lab.endpoint import Between
from nearfuture.lab.page import ASSETS, Page

MEASURED = ASSETS / "measured" / "price.json"

Experiment = Literal["known-voices", "new-voice", "thirteen-heads", "sentences", "families"]


@cache
def _experiments() -> Mapping[str, Any]:
    """What the experiments measured, as `tools/make_lab_prices.py` gathered it."""
    experiments: Mapping[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return experiments


def curve(experiment: Experiment = "known-voices") -> dict[str, Any]:
    """What an experiment of the project measured: errors against milliseconds, with intervals."""
    return dict(_experiments()[experiment])


def choice(
    experiment: Experiment = "known-voices",
    budget_ms: Annotated[int, Between(55, 1300, 5)] = 100,
) -> dict[str, Any]:
    """What keeps a budget: a head of each curve, and one of the bundled model.

    A curve of which nothing keeps the budget has None.
    """
    kept = {}
    for line in _experiments()[experiment]["lines"]:
        points = line["points"]
        heads = {point["frames"]: point["ms"] for point in points}
        frames = largest_lookahead(budget_ms, heads) if budget_ms >= min(heads.values()) else None
        kept[line["name"]] = next((each for each in points if each["frames"] == frames), None)
    budgets = recordings.streaming().budgets
    frames = largest_lookahead(budget_ms, budgets)
    return {"kept": kept, "frames": frames, "worst_ms": budgets[frames].worst_ms}


def words() -> Generator[dict[str, Any], None, None]:
    """What every head of the bundled model writes, and its twin: a line for each recording."""
    heads = recordings.streaming().budgets
    yield {"heads": {tau: latency.worst_ms for tau, latency in heads.items()}}
    for recording in recordings.recordings():
        heard = recordings.log_probs_of_heads(recording)
        manifest = recordings.streaming().manifest
        texts = {str(tau): recordings.text_of(heard[tau], manifest) for tau in heads}
        both_ways = recordings.log_probs_of_twin(recording)
        texts["twin"] = recordings.text_of(both_ways, recordings.twin().manifest)
        yield {
            "name": recording.name,
            "voice": recording.voice,
            "synthetic": recording.synthetic,
            "said": recording.text,
            "written": {
                model: recordings.judged(recording.text, text) for model, text in texts.items()
            },
        }


PAGE = Page(
    name="the-price",
    endpoints={"curve": curve, "choice": choice, "words": words},
    module=__name__,
    behind=(
        "lab/recordings.py",
        "evaluation/bootstrap.py",
        "budget/planner.py",
        "runtime/model.py",
    ),
)
