"""A user's own recordings: what is left out, and what a batch is."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import soundfile

from nearfuture.data import Recordings, Utterance
from nearfuture.error import NearfutureError
from tests.data.fixtures import tone, write_manifest


def many(count: int = 40, *, rate: int = 8000) -> list[Utterance]:
    rng = np.random.default_rng(0)
    return [
        Utterance(name=str(n), samples=tone(300, float(rng.uniform(0.3, 4.0)), rate), text="a")
        for n in range(count)
    ]


def corpus(folder: Path) -> Path:
    soundfile.write(folder / "good.wav", tone(300, 0.5), 8000)
    soundfile.write(folder / "fast.flac", tone(300, 0.5, 16000), 16000)
    soundfile.write(folder / "silent.wav", np.zeros(0, np.float32), 8000)
    (folder / "empty.wav").write_bytes(b"")
    (folder / "text.wav").write_text("this is a letter, not a recording\n" * 9)
    soundfile.write(folder / "mute.wav", tone(300, 0.5), 8000)
    soundfile.write(folder / "nan.wav", np.full(100, np.nan), 8000, subtype="FLOAT")
    rows = [
        ("good.wav", "Hello, world!", "train"),
        ("empty.wav", "one", "train"),
        ("text.wav", "two", "train"),
        ("gone.wav", "three", "train"),
        ("mute.wav", " ?! ", "train"),
        ("silent.wav", "four", "train"),
        ("nan.wav", "five", "train"),
        ("fast.flac", "six", "dev"),
    ]
    return write_manifest(
        folder, [dict(zip(("path", "transcript", "split"), row, strict=True)) for row in rows]
    )


def test_what_cannot_be_read_is_named_and_not_fatal(tmp_path: Path) -> None:
    recordings = Recordings.load(corpus(tmp_path), rate=8000)
    assert [Path(one.name).name for one in recordings.utterances] == ["good.wav", "fast.flac"]
    assert recordings.utterances[0].text == "hello world"
    assert [one.samples.size for one in recordings.utterances] == [4000, 4000]
    reasons = {
        "empty.wav": "is empty",
        "text.wav": "no audio that can be read: found text",
        "gone.wav": "no such file",
        "mute.wav": "its transcript is empty",
        "silent.wav": "it holds no samples",
        "nan.wav": "not finite",
    }
    assert len(recordings.skipped) == len(reasons)
    for line, (name, reason) in zip(recordings.skipped, reasons.items(), strict=True):
        assert str(tmp_path / name) in line
        assert reason in line
        assert "\n" not in line


def test_a_split_is_only_itself(tmp_path: Path) -> None:
    path = corpus(tmp_path)
    assert [one.text for one in Recordings.load(path, rate=8000, split="dev").utterances] == ["six"]
    train = Recordings.load(path, rate=8000, split="train")
    assert [one.text for one in train.utterances] == ["hello world"]
    with pytest.raises(NearfutureError, match=r"manifest\.tsv holds nothing to train on.*no rows"):
        Recordings.load(path, rate=8000, split="test")
    # Without such a column all rows are of every split.
    write_manifest(tmp_path, [{"path": "good.wav", "transcript": "a"}])
    assert len(Recordings.load(path, rate=8000, split="train").utterances) == 1


def test_nothing_left_is_refused_with_reasons(tmp_path: Path) -> None:
    path = write_manifest(tmp_path, [{"path": "gone.wav", "transcript": "a"}])
    with pytest.raises(NearfutureError, match=r"nothing to train on: .*gone\.wav"):
        Recordings.load(path, rate=8000)


def test_progress_goes_from_nothing_to_everything(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    Recordings.load(corpus(tmp_path), rate=8000, progress=lambda done, of: calls.append((done, of)))
    assert calls == [(n, 8) for n in range(9)]


# Batches


def test_every_utterance_comes_once_an_epoch() -> None:
    recordings = Recordings(utterances=many(), rate=8000, seconds_per_batch=9.0)
    epochs = [recordings.epoch(number) for number in range(4)]
    for batches in epochs:
        assert sorted(index for batch in batches for index in batch) == list(range(40))
        assert all(batches)
    assert len({str(batches) for batches in epochs}) == 4
    assert len({str(sorted(map(sorted, batches))) for batches in epochs}) == 4


def test_steps_walk_through_the_epochs() -> None:
    recordings = Recordings(utterances=many(), rate=8000, seconds_per_batch=9.0)
    expected = [batch for number in range(3) for batch in recordings.epoch(number)]
    fresh = Recordings(utterances=many(), rate=8000, seconds_per_batch=9.0)
    for step, batch in enumerate(expected):
        assert [one.name for one in fresh.batch(step)] == [str(index) for index in batch]


@pytest.mark.parametrize("cap", [2.0, 5.0, 30.0, 1000.0])
def test_a_batch_is_at_most_so_many_seconds_with_padding(cap: float) -> None:
    recordings = Recordings(utterances=many(), rate=8000, seconds_per_batch=cap)
    sizes = np.array([one.samples.size / 8000 for one in recordings.utterances])
    for number in range(3):
        batches = recordings.epoch(number)
        for batch in batches:
            assert sizes[batch].max() * len(batch) <= cap or len(batch) == 1
        assert cap < 1000 or len(batches) == 1


def test_little_of_a_batch_is_padding() -> None:
    recordings = Recordings(utterances=many(200), rate=8000, seconds_per_batch=20.0)
    sizes = np.array([one.samples.size / 8000 for one in recordings.utterances])
    full = sum(sizes[batch].max() * len(batch) for batch in recordings.epoch(0))
    assert sizes.sum() / full > 0.75


def test_a_batch_is_a_pure_function_of_the_step() -> None:
    one, two = (Recordings(utterances=many(), rate=8000, seconds_per_batch=9.0) for _ in range(2))
    for step in (30, 0, 17):
        two.batch(step)
    for step in (0, 17, 30):
        for a, b in zip(one.batch(step), two.batch(step), strict=True):
            assert (a.name, a.text) == (b.name, b.text)
            np.testing.assert_array_equal(a.samples, b.samples)
    other = Recordings(utterances=many(), rate=8000, seconds_per_batch=9.0, seed=1)
    assert [u.name for u in other.batch(0)] != [u.name for u in one.batch(0)]


def test_a_replaced_option_counts_from_the_start() -> None:
    recordings = Recordings(utterances=many(), rate=8000, seconds_per_batch=9.0)
    recordings.batch(0)
    replaced = dataclasses.replace(recordings, seconds_per_batch=1000.0)
    assert len(replaced.epoch(0)) == 1


def test_a_batch_varies_speed_level_and_noise() -> None:
    recordings = Recordings(utterances=many(8), rate=8000, speed=0.1, seconds_per_batch=1000.0)
    first, second = recordings.batch(0), recordings.batch(1)
    originals = {one.name: one.samples for one in recordings.utterances}
    for one in first + second:
        original = originals[one.name]
        assert original.size / 1.1 - 1 <= one.samples.size <= original.size / 0.9 + 1
        assert abs(one.samples).max() <= 1
        assert np.isfinite(one.samples).all()
    by_name = {one.name: one.samples.size for one in first}
    assert any(by_name[one.name] != one.samples.size for one in second)
