"""What a state shows, how gradients fade, and that each of the measurements can see otherwise."""

import dataclasses
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import torch

from nearfuture.budget import Cell
from nearfuture.layers import RNN, Bidirectional, Recurrent
from recipes.state import (
    CELLS,
    LearningOptions,
    Recaller,
    RecallTask,
    accuracy,
    fading,
    frames_seen,
    gradient_norms,
    learn,
    state_difference,
    with_another_symbol,
)
from recipes.state.__main__ import draw, measure
from recipes.state.figures import FIGURES
from recipes.state.results import Store, StudyOptions, units
from recipes.state.tables import TABLES, summary
from tests.errors import refuses

ALL: tuple[Cell, ...] = ("rnn", "gru", "lstm")
TASK = RecallTask(before=(0, 0), after=(60, 60))


def untrained(cell: Cell, hidden_size: int) -> tuple[Recurrent, torch.Tensor]:
    """A layer of random weights in float64, and sequences for it."""
    layer = CELLS[cell](TASK.input_size, hidden_size).double()
    return layer, TASK.batch(8, torch.Generator().manual_seed(0)).x


@pytest.mark.parametrize("cell", ALL)
def test_an_untrained_state_loses_an_input_in_a_few_frames(cell: Cell) -> None:
    layer, x = untrained(cell, 32)
    left = state_difference(layer, x, with_another_symbol(x, 0), 0)
    assert 3 <= frames_seen(left) <= 15
    assert left[0] == 1
    assert left[60] < 1e-8


@pytest.mark.parametrize("cell", ALL)
def test_a_wider_state_is_no_longer_memory(cell: Cell) -> None:
    """H from 8 to 128, sixteen times as wide: were H a number of inputs, so would this be."""
    seen = []
    for hidden_size in (8, 128):
        layer, x = untrained(cell, hidden_size)
        seen.append(frames_seen(state_difference(layer, x, with_another_symbol(x, 0), 0)))
    assert max(seen) < 2 * min(seen)
    assert max(seen) < 20


def test_a_state_of_one_value_can_keep_an_input_for_ever() -> None:
    layer = RNN(TASK.input_size, 1, nonlinearity="relu", bias=False).double()
    with torch.no_grad():
        layer.weight_hh.fill_(1.0)
        layer.weight_ih.copy_(torch.arange(1.0, 6.0))
    x = TASK.batch(8, torch.Generator().manual_seed(0)).x
    left = state_difference(layer, x, with_another_symbol(x, 0), 0)
    assert torch.equal(left, torch.ones(61, dtype=torch.float64))


def test_what_is_kept_is_what_training_asked_for() -> None:
    task = RecallTask(before=(0, 0), after=(1, 6), symbols=2)
    model = Recaller("gru", 8, task)
    options = LearningOptions(steps=100, lr=2e-2)
    before = accuracy(model, task, seed=1)
    learn(model, task, options, seed=0)
    assert before < 0.75
    assert accuracy(model, task, seed=1) == 1.0
    x = dataclasses.replace(task, after=(30, 30)).batch(32, torch.Generator().manual_seed(0)).x
    assert isinstance(model.layer, Recurrent)
    kept, other = (
        state_difference(model.layer, x, with_another_symbol(x, frame), frame) for frame in (0, 5)
    )
    assert kept[20] > 10 * other[20]


@pytest.mark.parametrize("cell", ALL)
def test_a_second_direction_changes_no_gradient_of_the_first(cell: Cell) -> None:
    layer, x = untrained(cell, 8)
    both = gradient_norms(Bidirectional(layer), x, 30)
    assert torch.equal(both.ahead, gradient_norms(layer, x, 30).ahead)


@pytest.mark.parametrize("cell", ALL)
def test_the_backward_direction_is_the_forward_one_of_the_sequence_reversed(cell: Cell) -> None:
    layer, x = untrained(cell, 8)
    both = Bidirectional(layer)
    both.back.load_state_dict(layer.state_dict())
    back = gradient_norms(both, x, 20).back
    assert back is not None
    forwards = gradient_norms(layer, x.flip(1), 60 - 20).ahead
    assert torch.allclose(back, forwards.flip(0), rtol=1e-10, atol=0)


@pytest.mark.parametrize("cell", ALL)
def test_gradients_fade_with_the_distance_in_both_directions(cell: Cell) -> None:
    layer, x = untrained(cell, 32)
    norms = gradient_norms(Bidirectional(layer), x, 30)
    assert norms.back is not None
    ahead, back = norms.ahead[:31].flip(0), norms.back[30:]
    assert not norms.ahead[31:].any()
    assert not norms.back[:30].any()
    for by_distance in (ahead, back):
        assert 0.4 < fading(by_distance, 5, 25) < 0.8
        assert by_distance[30] < 1e-4 * by_distance[0]


def test_gradients_that_do_not_fade_are_measured_as_such() -> None:
    layer = RNN(5, 1, nonlinearity="relu", bias=False).double()
    with torch.no_grad():
        layer.weight_hh.fill_(1.0)
        layer.weight_ih.fill_(1.0)
    x = TASK.batch(2, torch.Generator().manual_seed(0)).x
    assert fading(gradient_norms(layer, x, 60).ahead.flip(0), 10, 40) == 1.0


def test_a_change_in_two_frames_is_refused() -> None:
    layer, x = untrained("rnn", 4)
    changed = with_another_symbol(with_another_symbol(x, 0), 3)
    with refuses("invalid", "changed", "frame 0", [0, 3]):
        state_difference(layer, x, changed, 0)
    with refuses("invalid", "changed", "frame 0", []):
        state_difference(layer, x, x, 0)


@pytest.mark.parametrize(
    ("arguments", "parameter"),
    [
        ({"before": (-1, 2), "after": (0, 0)}, "before"),
        ({"before": (0, 0), "after": (3, 2)}, "after"),
        ({"before": (0, 0), "after": (0, 0), "symbols": 1}, "symbols"),
    ],
)
def test_a_task_without_meaning_is_refused(arguments: dict[str, object], parameter: str) -> None:
    with refuses("out_of_range", parameter):
        RecallTask(**arguments)  # type: ignore[arg-type]


def test_a_symbol_in_the_middle_has_as_many_frames_on_either_side() -> None:
    batch = RecallTask(before=(0, 7), after=None).batch(50, torch.Generator().manual_seed(0))
    assert torch.equal(batch.lengths, 2 * batch.marked + 1)
    assert set(batch.marked.tolist()) == set(range(8))
    row = torch.arange(50)
    assert torch.equal(batch.x[row, batch.marked, :4].argmax(dim=-1), batch.answers)
    assert torch.equal(batch.x[..., 4].sum(dim=1), torch.ones(50))


def test_a_study_goes_on_where_it_was_and_draws_what_it_measured(tmp_path: Path) -> None:
    options = StudyOptions(
        seeds=1,
        hidden_size=4,
        widths=(4, 8),
        learning=LearningOptions(steps=1, rows=2),
        recall_learning=LearningOptions(steps=1, rows=2),
    )
    path = tmp_path / "measured.json"
    store = Store(path, options)
    measure(store, options)
    content = path.read_bytes()
    again = Store(path, options)
    assert all(name in again for name in units(options))
    measure(again, options)
    assert path.read_bytes() == content  # nothing was measured again
    other = Store(path, dataclasses.replace(options, hidden_size=5))
    assert not any(name in other for name in units(options))
    more = Store(path, dataclasses.replace(options, seeds=2))
    assert all(name in more for name in units(options))

    results = again.results()
    for table in TABLES.values():
        assert table(results).row_count >= 3
    json.dumps(summary(results))
    draw(results, tmp_path)
    drawn = {each.name: each.read_bytes() for each in tmp_path.glob("*.svg")}
    assert set(drawn) == {"memory.svg", "width.svg", "gradients.svg", "recall.svg"}
    for svg in drawn.values():
        ElementTree.fromstring(svg)
    FIGURES["recall"](results, tmp_path / "again.svg")
    assert len((tmp_path / "again.svg").read_bytes()) == len(drawn["recall.svg"])
