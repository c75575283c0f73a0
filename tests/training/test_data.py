"""What is trained on, what validates, and what is skipped, from the sources' splits."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from nearfuture.budget import RecognizerConfig, tiny
from nearfuture.data import CutFilter
from nearfuture.error import NearfutureError
from nearfuture.training import DataOptions, Group, TrainingData
from nearfuture.training.data import load_split
from nearfuture.training.data_split import DataSplit, split_sources

pytestmark = pytest.mark.usefixtures("no_corpora")
FILTER = CutFilter()
Row = tuple[str, str, str, str]  # file, text, speaker, split


def source(
    folder: Path, rows: list[Row], *, columns: tuple[str, ...] = ("speaker", "split")
) -> Path:
    """A manifest of short recordings with those columns."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(("path", "transcript", *columns))]
    for number, (name, text, speaker, split) in enumerate(rows):
        noise = np.random.default_rng(number).uniform(-0.1, 0.1, 8000 + 80 * number)
        soundfile.write(folder / name, noise, 8000)
        told = {"speaker": speaker, "split": split}
        lines.append("\t".join((name, text, *(told[column] for column in columns))))
    path = folder / "manifest.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def rows(count: int, *, speakers: int = 4, split: str = "") -> list[Row]:
    texts = ("one", "two", "three", "four")
    return [
        (f"{split}{n}.wav", texts[n % 4], f"{split}{n % speakers}", split) for n in range(count)
    ]


def chosen_from(paths: list[Path], *, seed: int, cut_filter: CutFilter = FILTER) -> DataSplit:
    return split_sources(paths, seed=seed, cut_filter=cut_filter)


def loaded(split: DataSplit, config: RecognizerConfig, group: Group | None = None) -> TrainingData:
    options = DataOptions(batch_seconds=10.0)
    cut_filter = CutFilter(model=config)
    return load_split(split, options, cut_filter, seed=0, group=group or Group())


def names(split: DataSplit) -> tuple[list[str], list[str]]:
    return [i.path.name for i in split.train], [i.path.name for i in split.dev]


def test_splits_hold_and_tests_are_left_alone(tmp_path: Path) -> None:
    path = source(
        tmp_path, [*rows(3, split="train"), *rows(2, split="dev"), *rows(2, split="test")]
    )
    chosen = chosen_from([path], seed=0)
    assert names(chosen) == (["train0.wav", "train1.wav", "train2.wav"], ["dev0.wav", "dev1.wav"])
    assert chosen.dev_name == "of the split dev"


def test_a_row_without_a_text_takes_no_other_row_of_its_file_along(tmp_path: Path) -> None:
    path = source(tmp_path, rows(3, split="train"))
    with path.open("a", encoding="utf-8") as file:
        file.write("train1.wav\t\t1\ttrain\n")
    assert names(chosen_from([path], seed=0))[0] == ["train0.wav", "train1.wav", "train2.wav"]


def test_rows_that_nobody_uses_are_named_and_counted(tmp_path: Path) -> None:
    loose = [("loose.wav", "one", "a", ""), ("odd.wav", "two", "a", "extra")]
    path = source(tmp_path, [*rows(3, split="train"), *loose, *rows(2, split="test")])
    chosen = chosen_from([path], seed=0)
    assert not {"loose.wav", "odd.wav"} & {*names(chosen)[0], *names(chosen)[1]}
    (note,) = chosen.notes
    assert "2 recordings in none of the splits train, dev and test" in note
    assert note.endswith(": loose.wav, odd.wav")
    assert chosen_from([source(tmp_path / "plain", rows(3))], seed=0).notes == ()


def test_a_second_dev_is_named_as_well(tmp_path: Path) -> None:
    one, two = (
        source(tmp_path / name, [*rows(2, split="train"), *rows(n, split="dev")])
        for name, n in (("one", 1), ("two", 4))
    )
    (note,) = chosen_from([one, two], seed=0).notes
    assert note == f"{two}: 4 recordings do not validate: dev0.wav, dev1.wav, dev2.wav …"


def test_without_a_dev_split_whole_speakers_are_set_aside(tmp_path: Path) -> None:
    path = source(tmp_path, rows(40, speakers=20))
    seen = set()
    for seed in range(5):
        chosen = chosen_from([path], seed=seed)
        again = chosen_from([path], seed=seed)
        assert names(chosen) == names(again)
        assert len(chosen.dev) == 2  # the nearest to 5 % that two recordings each allow
        assert len(chosen.train) == 38
        assert not {i.speaker for i in chosen.train} & {i.speaker for i in chosen.dev}
        assert "of 1 speaker," in chosen.dev_name
        seen.add(names(chosen)[1][0])
    assert len(seen) > 1


@pytest.mark.parametrize("columns", [("speaker",), ()])
def test_where_speakers_are_too_few_or_unknown_recordings_are(
    tmp_path: Path, columns: tuple[str, ...]
) -> None:
    path = source(tmp_path, rows(40, speakers=2), columns=columns)
    chosen = chosen_from([path], seed=0)
    assert len(chosen.dev) == 2
    assert "at random" in chosen.dev_name
    assert not {i.name for i in chosen.train} & {i.name for i in chosen.dev}


@pytest.mark.parametrize("count", [1, 19, 20])
def test_where_there_are_few_all_of_them_validate(tmp_path: Path, count: int) -> None:
    chosen = chosen_from([source(tmp_path, rows(count))], seed=0)
    assert (names(chosen)[0] == names(chosen)[1]) == (count < 20)
    assert ("trained on" in chosen.dev_name) == (count < 20)


def test_several_sources_are_one_and_the_first_with_a_dev_validates(tmp_path: Path) -> None:
    plain = source(tmp_path / "plain", rows(3))
    one = source(tmp_path / "one", [*rows(2, split="train"), *rows(1, split="dev")])
    two = source(tmp_path / "two", [*rows(4, split="train"), *rows(3, split="dev")])
    chosen = chosen_from([plain, one, two], seed=0)
    assert len(chosen.train) == 3 + 2 + 4
    assert [item.path.parent.name for item in chosen.dev] == ["one"]
    assert chosen_from([plain, two, one], seed=0).dev_name == "of the split dev"
    assert len(chosen_from([plain, two, one], seed=0).dev) == 3
    assert chosen.name == "manifest.tsv + manifest.tsv + manifest.tsv"


def listed(folder: Path, seconds: list[float]) -> Path:
    """Recordings of so many seconds: silence, which is quick to write."""
    folder.mkdir(parents=True)
    for number, length in enumerate(seconds):
        silence = np.zeros(round(8000 * length), np.float32)
        silence[0] = (number + 1) / 1000  # no two are the same, and none is silent
        soundfile.write(folder / f"{number}.wav", silence, 8000)
        (folder / f"{number}.txt").write_text("one")
    return folder


@pytest.mark.parametrize("seed", range(4))
def test_what_validates_keeps_to_the_limits_of_training(tmp_path: Path, seed: int) -> None:
    path = listed(tmp_path / "in", [120.0] + [1.0] * 60 + [0.1])
    chosen = chosen_from([path], seed=seed)
    assert len(chosen.dev) == 3  # 5 %, not of the audio that is left out
    assert sorted(Path(one.name).name for one in chosen.skipped) == ["0.wav", "61.wav"]
    assert {item.path.name for item in (*chosen.train, *chosen.dev)}.isdisjoint({"0.wav", "61.wav"})
    more = chosen_from([path], seed=seed, cut_filter=CutFilter(longest_s=120.0))
    assert [Path(one.name).name for one in more.skipped] == ["61.wav"]
    rest = [item.duration_s for item in more.dev]
    assert sum(rest) == pytest.approx(9.0)  # of 180 s: the long one is passed over, not a stop


def test_a_dev_of_its_own_keeps_to_them_as_well(tmp_path: Path) -> None:
    path = listed(tmp_path / "in", [1.0] * 3)
    for name, lengths in (("train", [1.0, 1.1]), ("dev", [0.1, 1.2])):
        listed(tmp_path / "split" / name, lengths)
    chosen = chosen_from([tmp_path / "split", path], seed=0)
    assert names(chosen)[1] == ["1.wav"]
    assert "0.wav: its 0.10 s are 2 frames" in str(chosen.skipped[0])


def test_a_dev_that_cannot_be_used_is_not_called_none(tmp_path: Path) -> None:
    listed(tmp_path / "split" / "train", [1.0] * 20)
    listed(tmp_path / "split" / "dev", [0.1])
    chosen = chosen_from([tmp_path / "split"], seed=0)
    assert chosen.dev_name == "set aside at random, since none of the split dev can be used"


@pytest.mark.parametrize(("rate", "more"), [(8000, False), (4000, True)])
def test_a_note_names_the_rate_and_that_recordings_have_more(
    tmp_path: Path, rate: int, more: bool
) -> None:
    chosen = chosen_from([listed(tmp_path / "in", [1.0] * 3)], seed=0)
    config = tiny(symbols=chosen.symbols).replace(rate=rate)
    data = loaded(chosen, config)
    assert data.notes[0].startswith(f"sampling rate of the models: {rate} Hz")
    assert ("3 of 3 recordings have more, up to 8000 Hz" in data.notes[0]) == more


def test_twenty_of_two_hundred_validate_at_least(tmp_path: Path) -> None:
    path = listed(tmp_path / "in", [0.2] * 200)
    for seed in range(3):
        assert 20 <= len(chosen_from([path], seed=seed).dev) <= 30


def test_no_more_are_loaded_than_validate_and_by_the_main_process_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, count in (("train", 2), ("dev", 450)):
        listed(tmp_path / "in" / name, [0.2] * count)
    chosen = chosen_from([tmp_path / "in"], seed=0)
    config = tiny(symbols=chosen.symbols)
    monkeypatch.setattr(Group, "any", lambda self, flag: flag)
    data, other = (loaded(chosen, config, Group(rank=rank, world_size=2)) for rank in range(2))
    assert len(data.validation) == 150  # every third
    assert data.validation_name == "150 of 450 recordings of the split dev"
    assert other.validation == []


def test_what_recordings_are_varied_with_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = chosen_from([listed(tmp_path / "in", [0.5] * 3)], seed=0)
    config = tiny(symbols=chosen.symbols)

    def again() -> TrainingData:
        return loaded(chosen, config)

    without = again()
    assert (without.about["noise"], without.about["rir"]) == ("none", "none")
    assert without.notes[1:] == (
        "noises: none, so they are synthetic",
        "rooms: none, so they are synthetic",
    )
    (tmp_path / "corpora").mkdir()
    listed(tmp_path / "corpora" / "noise", [0.5])
    (tmp_path / "corpora" / "noise" / "manifest.tsv").write_text("path\tseconds\n0.wav\t0.5\n")
    silence = tmp_path / "corpora" / "noise" / "0.wav"
    soundfile.write(silence, np.ones(4000) * 0.5, 8000)
    monkeypatch.setenv("NEARFUTURE_CORPORA", str(tmp_path / "corpora"))
    loud = again()
    assert loud.about["noise"].startswith("1 recording (")
    assert loud.notes[1] == f"noises: {loud.about['noise']} in {tmp_path}/corpora/noise"
    soundfile.write(silence, np.ones(4000) * 0.25, 8000)
    assert again().about["noise"] != loud.about["noise"]


def test_nothing_to_train_on_is_said_with_its_reason(tmp_path: Path) -> None:
    path = source(tmp_path, rows(2, split="dev"))
    with pytest.raises(NearfutureError, match=r"has the splits dev, none of them train"):
        chosen_from([path], seed=0)
    (tmp_path / "gone").mkdir()
    gone = tmp_path / "gone" / "manifest.tsv"
    gone.write_text("path\ttranscript\nnowhere.wav\tone\n")
    with pytest.raises(NearfutureError, match=r"nothing to train on: .*nowhere\.wav"):
        chosen_from([gone], seed=0)


def test_the_fingerprint_is_of_what_there_is_not_of_where_it_lies(tmp_path: Path) -> None:
    here = chosen_from([source(tmp_path / "here", rows(4))], seed=0)
    there = chosen_from([source(tmp_path / "there", rows(4))], seed=0)
    other = chosen_from([source(tmp_path / "other", rows(5))], seed=0)
    assert here.fingerprint == there.fingerprint != other.fingerprint


def test_what_cannot_be_spelt_or_is_torn_is_skipped_by_name(tmp_path: Path) -> None:
    path = source(
        tmp_path,
        [*rows(3, split="train"), ("long.wav", "one " * 40, "a", "train"), *rows(2, split="dev")],
    )
    (tmp_path / "dev1.wav").write_bytes((tmp_path / "dev1.wav").read_bytes()[:3000])
    chosen = chosen_from([path], seed=0)
    config = tiny(symbols=chosen.symbols)
    data = loaded(chosen, config)
    (line,) = data.skipped
    assert "long.wav: its 1.03 s are 25 frames of 40 ms; 'one one" in str(line)
    wrong = [name for found in chosen.reports[0].issues for name, _ in found.examples]
    assert sum("dev1.wav" in name for name in wrong) == 1
    assert data.validation_name == "1 recording of the split dev"
    assert data.steps is not None
    assert data.steps(3) == 3
    assert data.about["recordings_sha256"] == chosen.fingerprint
