"""What a training says while it goes on: on a terminal, and anywhere else."""

import io
from typing import Any

import pytest

from nearfuture.cli.console import Console
from nearfuture.cli.training_progress import BarReporter, ConsoleReporter, LineReporter
from nearfuture.data import Skipped
from nearfuture.training import ProgressEvent, StepProgress

METRICS = {
    10: {"cer": 0.25, "cer_full_context": 0.25},
    20: {"cer": 0.25, "cer_lookahead_0": 0.3, "cer_lookahead_8": 0.2},
}
MODELS = ("bidirectional", "streaming")


def reporter(kind: type[ConsoleReporter]) -> tuple[Any, io.StringIO]:
    file, bars = io.StringIO(), kind is BarReporter
    console = Console(file=file, width=80, force_terminal=bars, color_system=None)
    return (BarReporter(MODELS, console) if bars else LineReporter(console)), file


def step(number: int, **changes: Any) -> StepProgress:
    return StepProgress(step=number, steps=40, loss=0.5, seconds=0.1, **changes)


def test_lines_come_at_validations_and_at_both_ends() -> None:
    lines, file = reporter(LineReporter)
    with lines as show:
        show.report("bidirectional", ProgressEvent(activity="reading"))
        for done in range(0, 5000, 100):
            show.report(
                "bidirectional", ProgressEvent(activity="checking recordings", count=(done, 5000))
            )
        show.report(
            "bidirectional", ProgressEvent(activity="loaded", notes=("validation: 3 recordings",))
        )
        show.report("bidirectional", ProgressEvent(activity="from step 0", steps=40))
        for number in range(1, 21):
            metrics = METRICS.get(number, {})
            show.report("bidirectional", step(number, epoch=2, validation=metrics))
        show.report("bidirectional", ProgressEvent(activity="done"))
        show.print_summary()
    said = file.getvalue().splitlines()
    assert said == [
        "bidirectional: reading",
        "validation: 3 recordings",
        "bidirectional: loaded",
        "bidirectional: from step 0 of 40",
        "bidirectional: step 10 of 40, epoch 3, loss 0.500, CER 25.00 %, 1 min left",
        "bidirectional: step 20 of 40, epoch 3, loss 0.500, CER 25.00 %, CER lookahead 0 30.00 %, "
        "CER lookahead 8 20.00 %, 1 min left",
        "bidirectional: done",
        "0 recordings skipped, 0 more in some steps",
    ]


def test_a_model_that_was_done_before_has_a_full_bar() -> None:
    bars, file = reporter(BarReporter)
    with bars as show:
        show.report("bidirectional", ProgressEvent(activity="from step 40", steps=40, step=40))
    assert "40/40" in file.getvalue()


@pytest.mark.parametrize("kind", [LineReporter, BarReporter])
def test_a_recording_is_named_once_whichever_model_skips_it(kind: type[ConsoleReporter]) -> None:
    shown, file = reporter(kind)
    torn = Skipped("anna: torn.wav", "cut off", "it ends in the middle")
    batch = Skipped("step 4", "empty batch", "nothing to train on, batch skipped")
    with shown as show:
        show.report(
            MODELS[0],
            ProgressEvent(
                activity="loaded", skipped=(Skipped("long.wav", "too long", "it is long"),)
            ),
        )
        for name in MODELS:
            show.report(name, ProgressEvent(activity="from step 0", steps=40))
            show.report(name, step(5, skipped=(torn, batch), skipped_total=1))
        show.print_summary()
    said = file.getvalue()
    for one in (torn, batch, "long.wav: it is long"):
        assert said.count(f"skipped: {one}") == 1
    assert "1 recording skipped, 1 more in some steps" in said


def test_after_twenty_names_the_rest_is_counted() -> None:
    lines, file = reporter(LineReporter)
    lines.report(
        "streaming",
        ProgressEvent(
            activity="loaded", skipped=tuple(Skipped(f"{n}", "silent", "") for n in range(30))
        ),
    )
    lines.print_summary()
    said = file.getvalue()
    assert said.count("skipped: ") == 20
    assert said.count("more is skipped, and only counted") == 1
    assert "30 recordings skipped, 0 more" in said


def test_bars_that_never_moved_go_where_it_fails() -> None:
    bars, _ = reporter(BarReporter)
    with bars as show:
        show.report(MODELS[0], ProgressEvent(activity="checking recordings", count=(1, 9)))
    assert [task.visible for task in bars.bars.tasks] == [False, False]
    bars, _ = reporter(BarReporter)
    with bars as show:
        show.report(MODELS[0], ProgressEvent(activity="from step 0", steps=40))
    assert [task.visible for task in bars.bars.tasks] == [True, False]
