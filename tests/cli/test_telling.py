"""What a training says while it goes on: on a terminal, and anywhere else."""

import io
from typing import Any

import pytest

from nearfuture.cli.console import Console
from nearfuture.cli.telling import Bars, Lines, Telling
from nearfuture.data import Skipped
from nearfuture.training import Progress
from nearfuture.training.session import Note

LOOKS = {
    10: {"cer": 0.25, "cer of everything": 0.25},
    20: {"cer": 0.25, "cer of 0 frames": 0.3, "cer of 8 frames": 0.2},
}
MODELS = ("bidirectional", "streaming")


def telling(kind: type[Telling]) -> tuple[Any, io.StringIO]:
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=kind is Bars, color_system=None)
    return (Bars(MODELS, console) if kind is Bars else Lines(console)), file


def step(number: int, **changes: Any) -> Progress:
    return Progress(step=number, steps=40, loss=0.5, seconds=0.1, **changes)


def test_lines_come_at_looks_and_at_both_ends() -> None:
    lines, file = telling(Lines)
    with lines as show:
        show.tell("bidirectional", Note(doing="reading"))
        for done in range(0, 5000, 100):
            show.tell("bidirectional", Note(doing="looking through recordings", far=(done, 5000)))
        show.tell("bidirectional", Note(doing="loaded", said=("watched: 3 recordings",)))
        show.tell("bidirectional", Note(doing="from step 0", steps=40))
        for number in range(1, 21):
            watched = LOOKS.get(number, {})
            show.tell("bidirectional", step(number, epoch=2, watched=watched))
        show.tell("bidirectional", Note(doing="done"))
        show.summary()
    said = file.getvalue().splitlines()
    assert said == [
        "bidirectional: reading",
        "watched: 3 recordings",
        "bidirectional: loaded",
        "bidirectional: from step 0 of 40",
        "bidirectional: step 10 of 40, epoch 3, loss 0.500, CER 25.00 %, 1 min left",
        "bidirectional: step 20 of 40, epoch 3, loss 0.500, CER 25.00 %, CER of 0 frames 30.00 %, "
        "CER of 8 frames 20.00 %, 1 min left",
        "bidirectional: done",
        "0 recordings left out, 0 skipped in some steps",
    ]


def test_a_model_that_was_done_before_has_a_full_bar() -> None:
    bars, file = telling(Bars)
    with bars as show:
        show.tell("bidirectional", Note(doing="from step 40", steps=40, step=40))
    assert "40/40" in file.getvalue()


@pytest.mark.parametrize("kind", [Lines, Bars])
def test_a_recording_is_named_once_whichever_model_skips_it(kind: type[Telling]) -> None:
    shown, file = telling(kind)
    torn = Skipped("anna: torn.wav", "cut off", "it ends in the middle")
    batch = Skipped("step 4", "empty batch", "nothing to train on, batch skipped")
    with shown as show:
        show.tell(
            MODELS[0],
            Note(doing="loaded", skipped=(Skipped("long.wav", "too long", "it is long"),)),
        )
        for name in MODELS:
            show.tell(name, Note(doing="from step 0", steps=40))
            show.tell(name, step(5, skipped=(torn, batch), left_out=1))
        show.summary()
    said = file.getvalue()
    for one in (torn, batch, "long.wav: it is long"):
        assert said.count(f"left out: {one}") == 1
    assert "1 recording left out, 1 skipped in some steps" in said


def test_after_twenty_names_the_rest_is_counted() -> None:
    lines, file = telling(Lines)
    lines.tell(
        "streaming",
        Note(doing="loaded", skipped=tuple(Skipped(f"{n}", "silent", "") for n in range(30))),
    )
    lines.summary()
    said = file.getvalue()
    assert said.count("left out: ") == 20
    assert said.count("more is left out, and only counted") == 1
    assert "30 recordings left out, 0 skipped" in said


def test_bars_that_never_moved_go_where_it_fails() -> None:
    bars, _ = telling(Bars)
    with bars as show:
        show.tell(MODELS[0], Note(doing="looking through recordings", far=(1, 9)))
    assert [task.visible for task in bars.bars.tasks] == [False, False]
    bars, _ = telling(Bars)
    with bars as show:
        show.tell(MODELS[0], Note(doing="from step 0", steps=40))
    assert [task.visible for task in bars.bars.tasks] == [True, False]
