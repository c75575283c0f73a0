"""What a check names, what it lets pass, and its figures."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from nearfuture.budget import RecognizerConfig
from nearfuture.data import CorpusReport, CutFilter, Source, check, read_source
from nearfuture.data.check import UNUSED
from nearfuture.data.cut import Cut
from nearfuture.data.split import assign_splits
from nearfuture.error import NearfutureError
from nearfuture.text import frames_needed
from tests.data.fixtures import write_manifest
from tests.data.sources import KOREAN, write_audio, write_hard_folder, write_text


def found(report: CorpusReport) -> dict[str, list[str]]:
    """Kind → the names of its files."""
    return {
        finding.kind: [Path(name).name for name, _ in finding.examples] for finding in report.issues
    }


def reasons(report: CorpusReport, kind: str) -> list[str]:
    return [
        reason
        for finding in report.issues
        if finding.kind == kind
        for _, reason in finding.examples
    ]


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hard_folder(tmp_path_factory.mktemp("check") / "hard")


def test_everything_wrong_is_named(hard: Path) -> None:
    report = check(hard, cut_filter=CutFilter(longest_s=30.0))
    assert not report.ok
    assert found(report) == {
        "no transcript": ["untold.wav"],
        "empty transcript": ["silent.wav"],
        "not UTF-8": ["latin.txt", "utf16.txt"],
        "text without audio": ["alone.txt"],
        "cut off": ["cut.wav"],
        "cannot be read": ["noise.wav"],
        "too long": ["long.wav"],
        "too short for its text": ["short.wav"],
    }
    assert reasons(report, "too long") == [
        "it is 60.0 s long, over the limit of 30 s: cut it into shorter ones, or raise the limit"
    ]
    assert "19956 of 48000 bytes" in reasons(report, "cut off")[0]
    assert "its 0.50 s are 12 frames of 40 ms" in reasons(report, "too short for its text")[0]


def test_figures(hard: Path) -> None:
    report = check(hard)
    assert (report.rows, len(report.cuts)) == (15, 8)
    assert report.seconds == pytest.approx(60 + 0.5 + 6 * 3, abs=0.1)
    assert report.median_s == pytest.approx(3.0, abs=0.01)
    assert (report.shortest_s, report.longest_s) == (0.5, 60.0)
    assert report.rates == {8000: 5, 16000: 2, 44100: 1}
    assert report.channels == {1: 7, 2: 1}
    assert report.splits == {"": (8, report.seconds)}
    assert set(KOREAN) < set(report.symbols)
    assert all(item.duration_s and item.rate for item in report.cuts)


def test_no_recording_has_no_figures(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_text("hello")
    (tmp_path / "a.txt").write_text("hello")
    assert check(tmp_path).figures() == [("recordings", "0 of 1")]


def test_the_limit_is_the_callers(hard: Path) -> None:
    assert "too long" not in found(check(hard, cut_filter=CutFilter(longest_s=60.0)))
    assert "too long" in found(check(hard, cut_filter=CutFilter(longest_s=59.9)))


def test_characters_that_the_model_cannot_write(hard: Path) -> None:
    report = check(hard, symbols=" abcdefghijklmnopqrstuvwxyz0123456789")
    told = dict(
        zip(
            found(report)["outside the vocabulary"],
            reasons(report, "outside the vocabulary"),
            strict=True,
        )
    )
    assert set(told) == {repr(character) for character in KOREAN}
    assert told["'녕'"] == f"once, in {hard}/korean.flac"
    assert "outside the vocabulary" not in found(check(hard, symbols=report.symbols))


@pytest.mark.parametrize(
    ("text", "frames"), [("abc", 3), ("aaa", 5), ("hello", 6), ("a a", 3), ("", 0)]
)
def test_frames_that_a_text_needs(tmp_path: Path, text: str, frames: int) -> None:
    assert frames_needed(text) == frames
    if not text:
        return
    for missing_ms, wrong in ((0, False), (1, True)):  # frames of 40 ms, and a window's 15 ms
        write_audio(tmp_path / "a.wav", (40 * frames + 15 - missing_ms) / 1000)
        write_text(tmp_path / "a.txt", text)
        assert check(tmp_path).ok is not wrong


def test_other_frames_allow_other_texts(tmp_path: Path) -> None:
    write_audio(tmp_path / "a.wav", 0.5)
    write_text(tmp_path / "a.txt", "eighteen letters it")
    assert not check(tmp_path).ok
    faster = RecognizerConfig(stack=2)
    assert check(tmp_path, cut_filter=CutFilter(model=faster)).ok


def write_copies(folder: Path, splits: tuple[str, str], *, texts: tuple[str, str]) -> Path:
    write_audio(folder / "a.wav", seed=1)
    shutil.copyfile(folder / "a.wav", folder / "b.wav")
    write_audio(folder / "c.wav", seed=2)  # as long as the others, and not the same
    rows = [
        {"path": "a.wav", "transcript": texts[0], "speaker": "anna", "split": splits[0]},
        {"path": "b.wav", "transcript": texts[1], "speaker": "bert", "split": splits[1]},
        {"path": "c.wav", "transcript": texts[0], "speaker": "anna", "split": splits[1]},
    ]
    return write_manifest(folder, rows)


def test_the_same_audio_in_two_splits_is_wrong(tmp_path: Path) -> None:
    report = check(write_copies(tmp_path, ("train", "test"), texts=("one", "one")))
    assert not report.ok
    assert found(report) == {
        "same audio in two splits": ["b.wav"],
        "same words of a speaker in two splits": ["c.wav"],
        "speaker in two splits": ["anna"],
    }
    assert reasons(report, "same audio in two splits") == [
        f"the same as {tmp_path}/a.wav (test and train)"
    ]
    assert [finding.wrong for finding in report.issues] == [True, False, False]


def test_the_same_audio_twice_is_worth_knowing(tmp_path: Path) -> None:
    report = check(write_copies(tmp_path, ("train", "train"), texts=("one", "one")))
    assert report.ok
    assert found(report) == {"same audio twice": ["b.wav"]}


@pytest.mark.parametrize("splits", [("train", "train"), ("train", "test")])
def test_the_same_audio_with_two_texts_is_wrong(tmp_path: Path, splits: tuple[str, str]) -> None:
    report = check(write_copies(tmp_path, splits, texts=("one", "two")))
    assert not report.ok
    assert reasons(report, "same audio with two texts") == [
        f"'two' here, 'one' in {tmp_path}/a.wav"
    ]
    assert ("same audio in two splits" in found(report)) == (splits[1] == "test")
    assert "same audio twice" not in found(report)


def test_no_split_has_a_name_as_well(tmp_path: Path) -> None:
    report = check(write_copies(tmp_path, ("train", ""), texts=("one", "two")))
    (reason,) = reasons(report, "same audio in two splits")
    assert reason.endswith("(no split and train)")
    (reason,) = reasons(report, "same words of a speaker in two splits")
    assert reason.endswith("(no split and train)")


def test_rows_in_no_split_are_worth_knowing_where_others_are_in_one(tmp_path: Path) -> None:
    report = check(write_copies(tmp_path, ("extra", ""), texts=("one", "two")))
    assert [one.wrong for one in report.issues if one.kind == UNUSED] == [False]
    assert dict(zip(found(report)[UNUSED], reasons(report, UNUSED), strict=True)) == {
        "a.wav": "its split is 'extra'",
        "b.wav": "it has no split",
        "c.wav": "it has no split",
    }
    assert UNUSED not in found(check(write_copies(tmp_path, ("", ""), texts=("one", "two"))))


def test_parts_of_one_file_are_no_duplicates(tmp_path: Path) -> None:
    write_audio(tmp_path / "a.wav")
    rows = "path\ttext\tstart\tduration\tsplit\na.wav\tone\t0\t1\ttrain\na.wav\ttwo\t1\t1\ttest\n"
    path = write_text(tmp_path / "parts.tsv", rows)
    assert check(path).issues == ()
    write_text(path, rows + "a.wav\tone\t0\t1\ttest\n")
    assert list(found(check(path))) == ["same audio in two splits"]


def test_a_part_that_is_not_in_its_file(tmp_path: Path) -> None:
    write_audio(tmp_path / "a.wav")
    path = write_text(tmp_path / "a.tsv", "path\ttext\tstart\tduration\na.wav\tone\t2.5\t1\n")
    report = check(path)
    assert found(report) == {"not in its file": ["a.wav from 2.500 s"]}
    assert "lasts 3.000 s" in reasons(report, "not in its file")[0]


def test_text_and_json_say_the_same(hard: Path) -> None:
    report = check(hard, cut_filter=CutFilter(longest_s=30.0))
    told = json.loads(report.to_json())
    assert (told["ok"], told["recordings"], told["rates"]["44100"]) == (False, 8, 1)
    text = "\n".join(report.lines())
    for finding in told["issues"]:
        assert f"wrong: {finding['kind']}: {finding['count']}" in text
        assert finding["count"] == len(finding["examples"])
    assert "\n  cut.wav: was cut off" in text  # names begin at the source
    assert "8 of 15" in text


def test_many_examples_are_counted(tmp_path: Path) -> None:
    for number in range(10):
        write_audio(tmp_path / f"{number}.wav", 0.1, seed=number)
    report = check(tmp_path)
    assert "… and 7 more" in "\n".join(report.lines())
    assert "\n".join(report.lines()).count(".wav:") == 3
    assert "\n".join(report.lines(most=None)).count(".wav:") == 10


def test_progress_is_told_to_the_end(hard: Path) -> None:
    steps: list[tuple[int, int]] = []
    check(hard, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(n, 10) for n in range(11)]


# Splits -------------------------------------------------------------------------------------------


def spoken(speakers: int, each: int = 10) -> list[Cut]:
    return [
        Cut(
            name=f"{speaker}-{take}",
            path=Path("a.wav"),
            text="a",
            duration_s=1.0 + speaker % 3,
            speaker=f"s{speaker}",
        )
        for speaker in range(speakers)
        for take in range(each)
    ]


@pytest.mark.parametrize("by", ["speaker", "random"])
def test_splits_have_their_shares_and_follow_from_the_seed(by: str) -> None:
    items = spoken(40)
    split = assign_splits(items, by=by, dev=0.1, test=0.2, seed=3)
    assert [replace(item, split="") for item in split] == items
    total = sum(item.duration_s for item in items)
    for name, share in (("train", 0.7), ("dev", 0.1), ("test", 0.2)):
        seconds = sum(item.duration_s for item in split if item.split == name)
        assert abs(seconds / total - share) < 0.03
    assert split == assign_splits(items, by=by, dev=0.1, test=0.2, seed=3)
    assert split != assign_splits(items, by=by, dev=0.1, test=0.2, seed=4)


@pytest.mark.parametrize("speakers", [3, 4, 6, 40])
def test_nobody_is_in_two_splits_and_each_has_somebody(speakers: int) -> None:
    split = assign_splits(spoken(speakers), by="speaker")
    by_name = {
        name: {item.speaker for item in split if item.split == name}
        for name in ("train", "dev", "test")
    }
    assert all(by_name.values())
    assert sum(map(len, by_name.values())) == speakers


@pytest.mark.parametrize(
    ("items", "by", "dev", "told"),
    [
        (spoken(2), "speaker", 0.1, "2 speakers cannot be split into train, dev, test"),
        (spoken(5), "speaker", 1.0, "leave nothing to train on"),
        (spoken(5), "random", -0.1, "leave nothing to train on"),
        ([replace(one, speaker="") for one in spoken(5)], "speaker", 0.1, "has no speaker"),
        ([replace(one, split="dev") for one in spoken(5)], "random", 0.1, "splits of its own"),
    ],
)
def test_splits_that_cannot_be(items: list[Cut], by: str, dev: float, told: str) -> None:
    with pytest.raises(NearfutureError, match=told):
        assign_splits(items, by=by, dev=dev)


def test_a_source_in_memory_is_checked(hard: Path) -> None:
    source = read_source(hard)
    only = Source(path=hard, cuts=source.cuts[:1])
    assert check(only).rows == 1
