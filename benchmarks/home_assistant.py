"""Home Assistant's own sentences about lights and climate: counted, compiled, searched.

The files are those that `home-assistant-intents` ships, with a house of ten rooms, two floors and
twenty devices. The search runs on random log-probabilities: its work does not depend on what is
said, and no model of all these words comes with this package.

    python benchmarks/home_assistant.py
"""

import itertools
import json
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import home_assistant_intents
import numpy as np
from _report import emit
from rich.table import Table

from nearfuture.decoding import Grammar, GrammarSearch
from nearfuture.phrases import Phrases
from nearfuture.text import Vocabulary

DATA = Path(home_assistant_intents.__file__).parent / "data"
INTENTS = [
    "HassLightSet",
    "HassTurnOn",
    "HassTurnOff",
    "HassClimateGetTemperature",
    "HassClimateSetTemperature",
    "HassClimateSetFanMode",
]
HOUSES = {
    "en": {
        "area": "kitchen, living room, bedroom, bathroom, hall, office, garage, garden, attic, "
        "cellar",
        "floor": "first, second",
        "lights": "ceiling light, desk lamp, floor lamp, bedside lamp, night light, reading lamp, "
        "porch light, christmas tree, kitchen island, mirror light, stove light, closet light, "
        "stairs light, picture light, pond light, gate light",
        "climate": "heater, thermostat, air conditioner, boiler",
    },
    "ko": {
        "area": "거실, 주방, 안방, 침실, 욕실, 현관, 서재, 차고, 정원, 다락방",
        "floor": "일층, 이층",
        "lights": "천장등, 스탠드, 무드등, 침대등, 독서등, 현관등, 식탁등, 거울등, 주방등, 간접등, "
        "계단등, 화장대등, 연못등, 대문등, 줄조명, 복도등",
        "climate": "난방기, 온도조절기, 에어컨, 보일러",
    },
}
SENTENCES = 1000
FRAMES = 250  # ten seconds at 40 ms


def home(language: str) -> dict[str, Any]:
    """The sentences of a language with the lists of a house."""
    content: dict[str, Any] = json.loads((DATA / f"{language}.json").read_text(encoding="utf-8"))
    house = {kind: names.split(", ") for kind, names in HOUSES[language].items()}
    devices = [
        {"in": name, "out": name, "context": {"domain": domain}}
        for domain, kind in (("light", "lights"), ("climate", "climate"))
        for name in house[kind]
    ]
    content["lists"]["area"] = {"values": house["area"]}
    content["lists"]["name"] = {"values": devices}
    content["lists"].setdefault("floor", {"values": house["floor"]})
    return content


def measure(language: str) -> dict[str, Any]:
    """Count, compile, understand and search the sentences of a language."""
    content = home(language)
    began = process_time()
    known = [name for name in INTENTS if name in content["intents"]]  # Korean has no fan mode
    phrases = Phrases.of_dict(content, intents=known)
    automaton = phrases.automaton
    compiled = process_time() - began

    sampled = list(itertools.islice(phrases.sample(seed=0), SENTENCES))
    began = process_time()
    meanings = [phrases.understand(text) for text in sampled]
    understood = (process_time() - began) / SENTENCES
    assert all(text in automaton for text in sampled)
    assert all(meaning is not None for meaning in meanings)

    vocabulary = Vocabulary(tuple(sorted(automaton.characters)))
    grammar = Grammar.compile(automaton, vocabulary)
    search = GrammarSearch(grammar=grammar, frame_ms=40, centre_ms=27.5)
    logits = np.random.default_rng(0).normal(size=(FRAMES, len(vocabulary)))
    logits[:, 0] = 0.0
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    state, began = search.start(), process_time()
    for row in log_probs:
        _, state = search.step(row[None], state)
    return {
        "language": language,
        "intents": len(phrases.intents),
        "templates": sum(len(block.templates) for block in phrases.blocks),
        "sentences": automaton.count,
        "words": len(automaton.words()),
        "states": len(automaton.arcs),
        "arcs": automaton.arc_count,
        "compile_s": compiled,
        "understand_ms": 1000 * understood,
        "search_ms": 1000 * (process_time() - began) / FRAMES,
        "clashes": [list(clash) for clash in phrases.clashes()],
    }


def main() -> None:
    began = perf_counter()
    rows = [measure(language) for language in HOUSES]
    columns = {
        "language": "{language}",
        "intents": "{intents}",
        "templates": "{templates}",
        "sentences": "{sentences:,}",
        "words": "{words:,}",
        "states": "{states:,}",
        "arcs": "{arcs:,}",
        "read and compiled, s": "{compile_s:.2f}",
        "meaning of a sentence, ms": "{understand_ms:.2f}",
        "search, ms a frame": "{search_ms:.2f}",
    }
    table = Table(*columns, title="lights and climate: ten rooms, twenty devices; CPU times")
    for row in rows:
        table.add_row(*(cell.format(**row) for cell in columns.values()))
    table.caption = f"a frame is 40 ms; all of it took {perf_counter() - began:.0f} s"
    emit(table, rows)


if __name__ == "__main__":
    main()
