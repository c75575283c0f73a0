"""BucketingBatches as batches: what is left out, what a batch is, and what is loaded when."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from nearfuture.data import (
    AcousticEnvironment,
    Augmentation,
    Batch,
    BatchingOptions,
    BucketingBatches,
    Cut,
    CutFilter,
    Skipped,
    Utterance,
    corpus_folder,
    load_utterances,
    read_source,
)
from nearfuture.text import Vocabulary
from tests.data.fixtures import tone
from tests.errors import refuses

PLAIN = Augmentation.none()


def batched(
    cuts: list[Cut],
    *,
    rate: int,
    cut_filter: CutFilter | None = None,
    augmentation: Augmentation | None = None,
    noises: Sequence[np.ndarray] = (),
    rooms: Sequence[np.ndarray] = (),
    **options: Any,
) -> BucketingBatches:
    return BucketingBatches(
        cuts,
        rate=rate,
        options=BatchingOptions(**options),
        cut_filter=cut_filter,
        augmentation=augmentation,
        environment=AcousticEnvironment(noises=noises, rooms=rooms),
    )


def listed(count: int = 40) -> list[Cut]:
    """Items of known lengths, whose files nobody may open."""
    rng = np.random.default_rng(0)
    return [
        Cut(name=str(n), path=Path("gone.wav"), text="a", duration_s=float(rng.uniform(0.3, 4.0)))
        for n in range(count)
    ]


def written(folder: Path, seconds: list[float], *, rate: int = 8000) -> list[Cut]:
    """Items with files: tones of 200, 230, 260 … Hz, whose lengths nobody wrote down."""
    items = []
    for number, length in enumerate(seconds):
        path = folder / f"{number}.wav"
        soundfile.write(path, tone(200 + 30 * number, length, rate), rate)
        items.append(Cut(name=f"item {number}", path=path, text="a", speaker=f"s{number}"))
    return items


def same(one: Batch, two: Batch) -> bool:
    def names(batch: Batch) -> list[tuple[str, str, str]]:
        return [(u.name, u.text, u.speaker) for u in batch.utterances]

    return (names(one), one.skipped, one.epoch) == (names(two), two.skipped, two.epoch) and all(
        np.array_equal(a.samples, b.samples)
        for a, b in zip(one.utterances, two.utterances, strict=True)
    )


class Counted:
    """Stands before `Cut.load` and writes down what is loaded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        load = Cut.load

        def counted(cut: Cut, rate: int) -> Utterance:
            self.names.append(cut.name)
            return load(cut, rate)

        monkeypatch.setattr(Cut, "load", counted)


# What is left out


def test_what_cannot_be_trained_on_is_named_and_not_fatal(tmp_path: Path) -> None:
    (good, empty, text) = written(tmp_path, [0.5, 0.5, 0.5])
    empty.path.write_bytes(b"")
    text.path.write_text("this is a letter, not a recording\n" * 9)
    items = [
        empty,
        text,
        good,
        Cut(name="silent", path=good.path, text="a", duration_s=0.0),
        Cut(name="unknown", path=good.path, text="a", duration_s=math.nan),
        Cut(name="mute", path=good.path, text="", duration_s=0.5),
        Cut(name="long", path=good.path, text="a", duration_s=41.0),
    ]
    recordings = batched(items, rate=8000)
    assert recordings.cuts == (good.probed(),)
    reasons = {
        str(empty.path): "is empty",
        str(text.path): "no audio that can be read",
        "silent": "it is 0.0 s long",
        "unknown": "it is nan s long",
        "mute": "its transcript is empty",
        "long": "it is 41.0 s long, over the limit of 40 s",
    }
    assert len(recordings.skipped) == len(reasons)
    for line, (name, reason) in zip(recordings.skipped, reasons.items(), strict=True):
        assert name in str(line)
        assert reason in str(line)
        assert "\n" not in str(line)


def test_the_limit_itself_is_not_over_it() -> None:
    items = [Cut(name="a", path=Path("a"), text="a", duration_s=40.0)]
    assert batched(items, rate=8000).skipped == ()
    with refuses("not_found", "cuts", "a: ", "over the limit of 29 s"):
        batched(items, rate=8000, cut_filter=CutFilter(longest_s=29.0))


def test_nothing_is_refused() -> None:
    with refuses("not_found", "cuts", "there are no recordings"):
        batched([], rate=8000)


@pytest.mark.parametrize(
    "options",
    [{"batch_seconds": 0.0}, {"batch_seconds": math.nan}, {"cache_mb": -1.0}],
)
def test_a_limit_that_is_none_is_refused(options: dict[str, float]) -> None:
    (name,) = options
    with refuses("out_of_range", name, options[name]):
        batched(listed(), rate=8000, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "needed"), [("abcde", 5), ("aabbb", 8)])
def test_what_ctc_cannot_spell_is_left_out(text: str, needed: int) -> None:
    def left_out(seconds: float) -> tuple[Skipped, ...]:
        items = [Cut(name="a", path=Path("a"), text=text, duration_s=seconds), *listed(1)]
        return batched(items, rate=8000).skipped

    enough = (needed * 40 + 15) / 1000
    assert left_out(enough) == ()
    (line,) = left_out(enough - 0.001)
    assert str(line).startswith(f"a: its {enough - 0.001:.2f} s are {needed - 1} frames of 40 ms")


@pytest.mark.parametrize("longest_s", [0.0, -1.0, math.nan])
def test_a_longest_recording_that_is_none_is_refused(longest_s: float) -> None:
    with refuses("out_of_range", "longest_s", longest_s):
        CutFilter(longest_s=longest_s)


def test_augmentation_makes_nothing_too_short_for_its_text(tmp_path: Path) -> None:
    (item,) = written(tmp_path, [0.22])  # 5 frames and a little, of which the text needs 5
    item = dataclasses.replace(item, text="abcde")
    hurried = dataclasses.replace(PLAIN, speed=0.5)
    sizes = {}
    for text in ("abcde", "a"):
        recordings = batched(
            [dataclasses.replace(item, text=text)], rate=8000, augmentation=hurried
        )
        sizes[text] = {recordings.batch(step).utterances[0].samples.size for step in range(20)}
    assert min(sizes["abcde"]) == 1760  # as it was; slower ones are longer
    assert max(sizes["abcde"]) > 1760 > min(sizes["a"])


def test_one_of_60_seconds_among_those_of_3(tmp_path: Path) -> None:
    items = written(tmp_path, [3.0] * 6)
    long = Cut(name="long", path=tmp_path / "long.wav", text="a", duration_s=60.0)
    recordings = batched(
        [*items, long],
        rate=8000,
        batch_seconds=9.0,
        augmentation=PLAIN,
        cut_filter=CutFilter(longest_s=30.0),
    )
    assert len(recordings.skipped) == 1
    assert str(recordings.skipped[0]).startswith("long: it is 60.0 s long")
    for step in range(4):  # its file, which is not there, is never opened
        batch = recordings.batch(step)
        assert batch.skipped == ()
        assert [one.samples.size for one in batch.utterances] == [24000] * 3


def test_a_length_that_was_a_lie_does_not_fill_the_memory(tmp_path: Path) -> None:
    items = written(tmp_path, [3.0, 60.0])
    lied = dataclasses.replace(items[1], name="lied", duration_s=None)
    recordings = batched(
        [items[0], lied], rate=8000, cut_filter=CutFilter(longest_s=61.0), augmentation=PLAIN
    )
    assert recordings.skipped == ()
    recordings.cut_filter = CutFilter(longest_s=30.0)  # as if the header lied
    batch = recordings.batch(0)
    assert [one.name for one in batch.utterances] == ["item 0"]
    (line,) = batch.skipped
    assert str(line).startswith("lied: it is 60.0 s long, over the limit of 30 s: cut it into")


# Epochs


def test_every_recording_comes_once_an_epoch() -> None:
    recordings = batched(listed(), rate=8000, batch_seconds=9.0)
    epochs = [recordings.epoch(number) for number in range(4)]
    for batches in epochs:
        assert sorted(index for batch in batches for index in batch) == list(range(40))
        assert all(batches)
    assert len({str(batches) for batches in epochs}) == 4
    assert len({str(sorted(map(sorted, batches))) for batches in epochs}) == 4


def test_the_first_epoch_goes_from_short_to_long() -> None:
    recordings = batched(listed(), rate=8000, batch_seconds=9.0)

    def lengths(number: int) -> list[float]:
        return [
            recordings.cuts[index].duration_s or 0.0
            for batch in recordings.epoch(number)
            for index in batch
        ]

    assert lengths(0) == sorted(lengths(0))
    assert lengths(1) != sorted(lengths(1))
    longest = [max(recordings.cuts[i].duration_s or 0.0 for i in b) for b in recordings.epoch(1)]
    assert longest != sorted(longest)


def test_the_first_epoch_can_be_like_the_others() -> None:
    sorted_first = batched(listed(), rate=8000, batch_seconds=9.0)
    plain = batched(listed(), rate=8000, batch_seconds=9.0, sorta_grad=False)
    longest = [max(plain.cuts[i].duration_s or 0.0 for i in batch) for batch in plain.epoch(0)]
    assert longest != sorted(longest)
    assert plain.epoch(1) == sorted_first.epoch(1)


def test_epochs_follow_from_the_seed_in_any_order() -> None:
    one, two = (batched(listed(), rate=8000, batch_seconds=9.0) for _ in range(2))
    backwards = [one.epoch(number) for number in reversed(range(8))][::-1]
    assert backwards == [two.epoch(number) for number in range(8)]
    assert one.steps(8) == two.steps(8) == sum(map(len, backwards))
    assert (one.steps(0), one.steps(1)) == (0, len(backwards[0]))
    other = batched(listed(), rate=8000, batch_seconds=9.0, seed=1)
    assert other.epoch(1) != one.epoch(1)
    assert other.epoch(0) == one.epoch(0)  # by length


def test_few_plans_are_kept() -> None:
    recordings = batched(listed(), rate=8000, batch_seconds=9.0)
    recordings.steps(50)
    assert len(recordings._plans) <= 3


def test_steps_walk_through_the_epochs(tmp_path: Path) -> None:
    items = written(tmp_path, [0.1 + 0.01 * n for n in range(12)])
    walking, jumping = (
        batched(items, rate=8000, batch_seconds=0.5, augmentation=PLAIN) for _ in range(2)
    )
    expected = [(number, batch) for number in range(3) for batch in walking.epoch(number)]
    for step in [*range(len(expected)), 3, len(expected) - 1, 0]:
        number, indices = expected[step]
        batch = (jumping if step % 2 else walking).batch(step)
        assert [one.name for one in batch.utterances] == [f"item {index}" for index in indices]
        assert batch.epoch == number


@pytest.mark.parametrize("cap", [2.0, 5.0, 30.0, 1000.0])
def test_a_batch_is_at_most_so_many_seconds_with_padding(cap: float) -> None:
    recordings = batched(listed(), rate=8000, batch_seconds=cap)
    sizes = np.array([one.duration_s for one in recordings.cuts])
    for number in range(3):
        batches = recordings.epoch(number)
        for batch in batches:
            assert sizes[batch].max() * len(batch) <= cap or len(batch) == 1
        assert cap < 1000 or len(batches) == 1


@pytest.mark.parametrize("number", [0, 1])
def test_little_of_a_batch_is_padding(number: int) -> None:
    recordings = batched(listed(200), rate=8000, batch_seconds=20.0)
    sizes = np.array([one.duration_s for one in recordings.cuts])
    full = sum(sizes[batch].max() * len(batch) for batch in recordings.epoch(number))
    assert sizes.sum() / full > (0.9 if number == 0 else 0.75)


def test_the_hours_are_those_that_are_left() -> None:
    items = [Cut(name=str(n), path=Path("a"), text="a", duration_s=n) for n in (9.0, 27.0, 99.0)]
    assert batched(items, rate=8000).hours == pytest.approx(0.01)


# Batches


def ten(tmp_path: Path, **options: object) -> BucketingBatches:
    items = written(tmp_path, [0.2 + 0.02 * n for n in range(10)])
    return batched(items, rate=8000, batch_seconds=1.3, **options)  # type: ignore[arg-type]


def test_a_batch_is_a_pure_function_of_the_step(tmp_path: Path) -> None:
    one, two = ten(tmp_path), ten(tmp_path)
    backwards = {step: two.batch(step) for step in (30, 17, 0)}
    for step in (0, 17, 30):
        assert same(one.batch(step), backwards[step])
    assert not same(one.batch(0), ten(tmp_path, seed=1).batch(0))


def test_prefetching_changes_nothing(tmp_path: Path) -> None:
    ahead, alone = ten(tmp_path), ten(tmp_path, prefetch=False)
    for step in (0, 1, 2, 9, 10, 4, 4, 5):
        assert same(ahead.batch(step), alone.batch(step))


def test_the_cache_changes_nothing(tmp_path: Path) -> None:
    kept, none = ten(tmp_path), ten(tmp_path, cache_mb=0.0)
    for step in range(12):
        assert same(kept.batch(step), none.batch(step))


@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
def test_ranks_together_have_the_global_batch(tmp_path: Path, world_size: int) -> None:
    alone = ten(tmp_path)
    shares = [ten(tmp_path) for _ in range(world_size)]
    for step in range(6):
        whole = alone.batch(step)
        parts = [
            one.batch(step, rank=rank, world_size=world_size) for rank, one in enumerate(shares)
        ]
        assert {part.epoch for part in parts} == {whole.epoch}
        for rank, part in enumerate(parts):
            assert same(
                part, dataclasses.replace(whole, utterances=whole.utterances[rank::world_size])
            )


def test_a_rank_loads_its_own_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    recordings = ten(tmp_path, prefetch=False)
    batch = recordings.batch(0, rank=1, world_size=2)
    assert counted.names == [one.name for one in batch.utterances]
    assert len(counted.names) == len(recordings.epoch(0)[0]) // 2


def test_audio_is_loaded_once_when_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    recordings = ten(tmp_path, prefetch=False)
    assert counted.names == []
    for step in range(recordings.steps(3)):
        recordings.batch(step)
    assert sorted(counted.names) == sorted(one.name for one in recordings.cuts)


def test_the_cache_keeps_to_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    limited = ten(tmp_path, prefetch=False, cache_mb=0.012)  # of 46 kB
    for step in range(limited.steps(1)):
        limited.batch(step)
    assert 0.009e6 < limited._cache.size <= 0.012e6
    once = len(counted.names)
    for step in range(limited.steps(1), limited.steps(2)):
        limited.batch(step)
    assert once == 10
    assert len(counted.names) - once == 7  # the three shortest came first and are kept


def test_a_file_that_fails_is_named_every_time_and_the_others_are_trained_on(
    tmp_path: Path,
) -> None:
    items = [dataclasses.replace(one, duration_s=0.5) for one in written(tmp_path, [0.5] * 4)]
    items[1].path.write_bytes(b"\0" * 100)
    items[2].path.unlink()
    recordings = batched(items, rate=8000)
    assert recordings.skipped == ()
    for step in range(3):
        batch = recordings.batch(step)
        assert sorted(one.name for one in batch.utterances) == ["item 0", "item 3"]
        assert len(batch.skipped) == 2
        for item in items[1:3]:
            assert any(line.name == item.name for line in batch.skipped)
            assert any(str(item.path) in line.reason for line in batch.skipped)
    # What fails takes nothing from the others.
    alone = batched(items, rate=8000).batch(0, rank=3, world_size=4)
    place = recordings.epoch(0)[0].index(3)
    assert place == 3
    assert np.array_equal(alone.utterances[0].samples, recordings.batch(0).utterances[1].samples)


def test_a_batch_of_which_nothing_can_be_loaded_is_empty() -> None:
    recordings = batched(listed(3), rate=8000)
    batch = recordings.batch(0)
    assert batch.utterances == []
    assert sorted(line.name for line in batch.skipped) == ["0", "1", "2"]


def test_rates_may_differ(tmp_path: Path) -> None:
    items = []
    for rate in (8000, 16000, 44100):
        path = tmp_path / f"{rate}.wav"
        soundfile.write(path, tone(440, 0.5, rate), rate)
        items.append(Cut(name=str(rate), path=path, text="a"))
    for rate in (8000, 16000):
        batch = batched(items, rate=rate, augmentation=PLAIN).batch(0)
        assert len(batch.utterances) == 3
        for one in batch.utterances:
            assert one.samples.size == rate // 2
            assert np.argmax(abs(np.fft.rfft(one.samples))) == 220


def test_parts_of_a_file_are_recordings_too(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.concatenate([tone(300, 0.5), tone(600, 1.0)]), 8000)
    items = [
        Cut(name="first", path=path, text="a", duration_s=0.5),
        Cut(name="rest", path=path, text="a", start_s=0.5),
    ]
    batch = batched(items, rate=8000, augmentation=PLAIN).batch(0)
    found = [
        (u.name, u.samples.size, np.argmax(abs(np.fft.rfft(u.samples)))) for u in batch.utterances
    ]
    assert found == [("first", 4000, 150), ("rest", 8000, 600)]


def test_plain_recordings_are_as_they_were(tmp_path: Path) -> None:
    recordings = ten(tmp_path, augmentation=PLAIN)
    names = {item.name: item for item in recordings.cuts}
    for step in range(recordings.steps(1)):
        for one in recordings.batch(step).utterances:
            samples = names.pop(one.name).load(8000).samples
            np.testing.assert_allclose(one.samples, samples, atol=1e-5)
    assert names == {}


def test_recordings_vary_from_epoch_to_epoch(tmp_path: Path) -> None:
    items = written(tmp_path, [0.5] * 4)
    noises = [np.sign(tone(700, 0.3))]
    recordings = batched(items, rate=8000, noises=noises, rooms=[np.ones(1, np.float32)])
    first, second = (
        {one.name: one.samples for one in recordings.batch(step).utterances} for step in (0, 1)
    )
    assert set(first) == set(second) == {f"item {n}" for n in range(4)}
    for name, samples in first.items():
        assert not np.array_equal(samples, second[name])
        assert abs(samples).max() <= 1


def test_noises_and_rooms_are_used(tmp_path: Path) -> None:
    always = dataclasses.replace(PLAIN, noise=1.0, noise_snr_db=(0.0, 0.0))
    items = written(tmp_path, [0.5])
    noises = [tone(1000, 0.7)]
    (one,) = batched(items, rate=8000, noises=noises, augmentation=always).batch(0).utterances
    spectrum = abs(np.fft.rfft(one.samples))
    assert set(np.argsort(spectrum)[-2:]) == {100, 500}
    echo = np.zeros(801, np.float32)
    echo[[0, 800]] = 1.0, 0.9
    always = dataclasses.replace(PLAIN, reverberation=1.0)
    (one,) = batched(items, rate=8000, rooms=[echo], augmentation=always).batch(0).utterances
    dry = items[0].load(8000).samples
    wet = np.convolve(dry, echo)[:4000] / np.sqrt(1.81)
    np.testing.assert_allclose(one.samples, wet, atol=1e-4)


# In memory


def test_utterances_are_loaded_as_they_are(tmp_path: Path) -> None:
    items = written(tmp_path, [0.5, 0.25, 0.3])
    items[1].path.write_bytes(b"RIFF")
    utterances, skipped = load_utterances(items, 8000)
    assert [(u.name, u.text, u.speaker) for u in utterances] == [
        ("item 0", "a", "s0"),
        ("item 2", "a", "s2"),
    ]
    for one, item in zip(utterances, (items[0], items[2]), strict=True):
        np.testing.assert_array_equal(one.samples, item.load(8000).samples)
    assert len(skipped) == 1
    assert str(items[1].path) in skipped[0].reason


def test_a_real_corpus_is_trained_on() -> None:
    folder = corpus_folder("speechocean762")
    if folder is None:
        pytest.skip("needs the corpus 'speechocean762' under NEARFUTURE_CORPORA")
    items = [one for one in read_source(folder).cuts if one.split == "train"][:120]
    recordings = batched(items, rate=16000, batch_seconds=60.0)
    assert recordings.skipped == ()
    assert len(recordings.cuts) == 120
    batch = recordings.batch(0)
    assert batch.skipped == ()
    seconds = [one.samples.size / 16000 for one in batch.utterances]
    # Before augmentation: 10 % slower and 0.3 s at both ends at most.
    assert max(seconds) * len(seconds) <= 60 / 0.9 + 0.6 / 0.9 * len(seconds) + 1


# Utterances of any batch


@pytest.mark.parametrize(
    ("text", "samples", "code", "reason"),
    [
        ("ab", np.zeros(1000, np.float32), None, ""),
        ("", np.zeros(0, np.float32), None, ""),
        ("abc", np.zeros(1000, np.float32), "outside the vocabulary", "'c'"),
        ("ab", np.full(1000, np.nan, np.float32), "not finite", "not finite numbers"),
        ("aa", np.zeros(1070, np.float32), "too short for its text", "0.13 s are 2 frames"),
    ],
)
def test_what_a_batch_may_hold(
    text: str, samples: np.ndarray, code: str | None, reason: str
) -> None:
    utterance = Utterance(name="one", samples=samples, text=text)
    skipped = CutFilter(longest_s=0.1).reject_utterance(utterance, 8000, Vocabulary(("a", "b")))
    assert (skipped and skipped.code) == code
    assert reason in str(skipped)
