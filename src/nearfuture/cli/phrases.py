"""`nearfuture phrases`: how many sentences a file of phrases has, and what is wrong with it."""

import json
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from nearfuture.cli.console import Console, complain
from nearfuture.cli.options import Flag
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.decoding import Automaton
    from nearfuture.phrases import Phrases

_SHOWN_WORDS = 60


def phrases(
    files: list[Path],
    /,
    *,
    intents: Annotated[list[str] | None, Parameter(negative="")] = None,
    model: str | None = None,
    sample: int = 0,
    seed: int = 0,
    words: Flag = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
) -> None:
    """Count the sentences of files of phrases, and check them.

    A file has template sentences as Home Assistant writes them (YAML or JSON), or plain lines
    (.txt). Sentences are counted exactly and never listed, however many there are. A sentence that
    two intents have is reported; the first of them has it.

    Args:
        files: The files; several of template sentences are put together.
        intents: Only these intents.
        model: Count what a model can write: a bundled one, or a bundle's folder or zip file. The
            exit code is 1 if that is not all.
        sample: Print so many sentences, each choice by lot.
        seed: The seed of the lots.
        words: Print every word, one a line, and nothing else.
        as_json: Print a line of JSON instead of the table.
    """
    from nearfuture.phrases import Phrases

    if sample < 0:
        raise NearfutureError(
            f"`sample` must be at least 0, not {sample}", code="out_of_range", parameter="sample"
        )
    loaded = Phrases.load(*files, intents=intents)
    automaton = loaded.automaton
    if words:
        print("\n".join(sorted(automaton.words())))
        return
    symbols = None if model is None else _symbols(model)
    writable = None if symbols is None else automaton.restrict(symbols)
    clashes = loaded.clashes()
    sampled = list(islice(loaded.sample(seed), sample))
    if as_json:
        row = {
            "sentences": automaton.count,
            "intents": {str(name): count for name, count in _counts(loaded)},
            "words": _words(automaton),
            "states": len(automaton.arcs),
            "arcs": automaton.arc_count,
            "longest": automaton.longest,
            "omitted": list(loaded.omitted),
            "clashes": [{"text": text, "intents": pair} for text, *pair in clashes],
            "sample": sampled,
            "writable": None if writable is None else writable.count,
        }
        print(json.dumps(row, ensure_ascii=False))
    else:
        _print(loaded, automaton, clashes)
        for sentence in sampled:
            print(sentence)
    if symbols is not None and writable is not None and writable.count < automaton.count:
        lacking = " ".join(map(repr, sorted(automaton.characters - symbols)))
        complain(
            f"{model} can write {writable.count:,} of the {automaton.count:,} sentences; it lacks "
            f"{lacking}"
        )
        sys.exit(1)


def _counts(loaded: "Phrases") -> list[tuple[str | None, int]]:
    return [(name, loaded.of_intent(name).automaton.count) for name in loaded.intents]


def _print(
    loaded: "Phrases", automaton: "Automaton", clashes: list[tuple[str, str | None, str | None]]
) -> None:
    console = Console()
    table = Table("intent", "sentences", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    for name, count in _counts(loaded):
        table.add_row(Text(name or "(plain lines)"), f"{count:,}")
    table.add_row(Text("all", style="bold"), Text(f"{automaton.count:,}", style="bold"))
    console.print(table)
    known = _words(automaton)
    if known is not None:
        more = f" … ({len(known) - _SHOWN_WORDS:,} more)" if len(known) > _SHOWN_WORDS else ""
        console.print(
            Text(f"{len(known):,} words: {' '.join(known[:_SHOWN_WORDS])}{more}"), soft_wrap=True
        )
    console.print(
        Text(
            f"automaton: {len(automaton.arcs):,} states, {automaton.arc_count:,} arcs; the longest "
            f"sentence has {automaton.longest} characters"
        ),
        soft_wrap=True,
    )
    for name in loaded.omitted:
        complain(f"left out: sentences that need {{{name}}}, a list of any text")
    for text, first, second in clashes:
        complain(f"{text!r} is of {first} and of {second}: {first} has it")


def _words(automaton: "Automaton") -> list[str] | None:
    """Return the words; None where there are too many, as in languages without spaces."""
    try:
        return sorted(automaton.words())
    except NearfutureError:
        return None


def _symbols(model: str) -> frozenset[str]:
    from nearfuture.runtime import Bundle

    return frozenset(Bundle.open(model).manifest.vocabulary.symbols)
