"""What a training writes for TensorBoard, read back as TensorBoard reads it."""

import math
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from nearfuture.data import Batch
from nearfuture.model import Recognizer
from nearfuture.training import Trainer
from nearfuture.training.emission import blank_fraction, emission_delay
from nearfuture.training.log import TensorBoardLog
from tests.training.settings import changed, plain, scripted, training_options
from tests.training.tones import CONFIG, Drawn, Listed, sentences, spoken


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    read = EventAccumulator(str(folder / "tensorboard"))
    read.Reload()
    return {
        name: [(event.step, event.value) for event in read.Scalars(name)]
        for name in read.Tags()["scalars"]
    }


OPTIONS = training_options(steps=100, learning_rate=1e-2, warmup=3, validate_every=60)


def test_a_training_leaves_curves(tmp_path: Path) -> None:
    odd = Batch(utterances=[*sentences(3), spoken("xyz")])

    class Odd(Listed):
        def batch(self, step: int, *, rank: int = 0, world_size: int = 1) -> Batch:
            return odd if step == 7 else super().batch(step, rank=rank, world_size=world_size)

    options = changed(OPTIONS, distill=0.5, delay_penalty=0.1)
    one = Trainer(
        Recognizer(CONFIG),
        scripted(Odd(sentences(3)), lambda model: {"cer": 0.5, "wer": math.nan}),
        options,
        tmp_path,
        teacher=Recognizer(CONFIG.twin()),
    )
    seen = []
    one.run(seen.append)
    found = curves(tmp_path)
    every = [50, 100]
    assert {name: [step for step, _ in points] for name, points in found.items()} == {
        "loss/ctc": every,
        "loss/distillation": every,
        "loss/delay_penalty": every,
        "learning_rate": every,
        "gradient_norm": every,
        "skipped": every,
        "speed/seconds_per_step": every,
        "speed/audio_seconds_per_second": every,
        "blank_fraction/lookahead_0": every,
        "blank_fraction/lookahead_2": every,
        "validation/cer": [60, 100],
    } | dict(_delays(found))
    values = {name: dict(points) for name, points in found.items()}
    assert values["loss/ctc"][50] == pytest.approx(seen[49].loss)
    assert values["gradient_norm"][100] == pytest.approx(seen[99].gradient_norm)
    rate = 1e-2 * OPTIONS.schedule.lr_scale(99)
    assert values["learning_rate"][100] == pytest.approx(rate)
    assert values["skipped"] == {50: 1.0, 100: 1.0}
    seconds = [progress.seconds for progress in seen[50:]]
    assert values["speed/seconds_per_step"][100] == pytest.approx(sum(seconds) / 50, rel=1e-4)
    audio = sum(progress.audio_seconds for progress in seen[50:])
    speed = values["speed/audio_seconds_per_second"][100]
    assert speed == pytest.approx(audio / sum(seconds), rel=1e-4)
    assert seen[60].audio_seconds == pytest.approx(sum(s.samples.size for s in sentences(3)) / 8000)


def _delays(found: dict[str, list[tuple[int, float]]]) -> list[tuple[str, list[int]]]:
    """Delays are there where a head says what the teacher says, which is chance at first."""
    names = [name for name in found if name.startswith("emission_delay")]
    return [(name, [step for step, _ in found[name]]) for name in names]


def test_short_trainings_leave_none(tmp_path: Path) -> None:
    options = changed(OPTIONS, steps=3)
    Trainer(Recognizer(CONFIG), plain(Drawn()), options, tmp_path).run()
    assert not (tmp_path / "tensorboard").exists()


def test_what_came_after_a_checkpoint_is_written_anew(tmp_path: Path) -> None:
    first = TensorBoardLog(tmp_path, 0)
    for step in (50, 100, 150):
        first.add(step, {"loss": 1.0, "odd": math.inf})
    first.close()
    again = TensorBoardLog(tmp_path, 100)  # where the checkpoint stands
    for step in (150, 200):
        again.add(step, {"loss": 2.0})
    again.close()
    assert curves(tmp_path) == {"loss": [(50, 1.0), (100, 1.0), (150, 2.0), (200, 2.0)]}


def path(*symbols: int, symbols_in_all: int = 3) -> torch.Tensor:
    """Log-probabilities (T, V) whose best symbols these are."""
    likely = torch.nn.functional.one_hot(torch.tensor(symbols), symbols_in_all)
    return (0.1 + 0.7 * likely.float()).log()


def test_the_delay_is_that_of_the_same_symbols() -> None:
    mine = torch.stack([path(0, 1, 1, 0, 2, 0), path(0, 0, 1, 0, 0, 0), path(1, 1, 1, 1, 1, 1)])
    other = torch.stack([path(1, 0, 0, 2, 2, 0), path(0, 2, 0, 0, 0, 0), path(1, 0, 1, 0, 0, 0)])
    lengths = torch.tensor([6, 6, 2])
    # The first: 1 at 1 and 0, 2 at 4 and 3. The second says something else. Of the third two
    # frames count, in which both say one 1, at 0.
    assert emission_delay(mine, other, lengths) == pytest.approx((1 + 1 + 0) / 3)
    assert emission_delay(other, mine, lengths) == pytest.approx(-2 / 3)
    assert math.isnan(emission_delay(mine[1:2], other[1:2], lengths[:1]))


def test_blanks_are_counted_in_valid_frames() -> None:
    both = torch.stack([path(0, 1, 1, 0), path(0, 0, 1, 1)])
    assert blank_fraction(both, torch.tensor([4, 2])) == pytest.approx(4 / 6)
    assert math.isnan(blank_fraction(both, torch.tensor([0, 0])))
