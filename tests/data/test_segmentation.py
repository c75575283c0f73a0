"""Long recordings: cut in silence, the doubtful dropped, the rest with its true text and times."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.audio import Audio
from nearfuture.data import add_noise, at_level, read_source
from nearfuture.data.segmentation import Emissions, SegmentationOptions, Segments, segment
from nearfuture.error import NearfutureError
from nearfuture.runtime import Model, load
from nearfuture.runtime.bundle import MODELS
from nearfuture.text import Vocabulary
from recipes.digits import WORDS, DigitRecordings
from tests.errors import refuses

vocabulary = Vocabulary((" ", "a", "b", "c"))
FRAME, CENTRE, RATE = 40, 20, 1000  # a frame is 40 samples, and lies where it says
PAUSE = "." * 8  # 320 ms


def cut(heard: str, text: str, *, loud: str | None = None, **limits: float) -> Segments:
    """Segments where the model hears one character a frame; `.` is the blank."""
    best = [0 if c == "." else vocabulary.encode(c)[0] for c in heard]
    log_probs = np.log(np.full((len(best), 5), 0.0025) + 0.9875 * np.eye(5)[best])
    levels = [float(c != "." if loud is None else c == "#") for c in loud or heard]
    emissions = Emissions(
        log_probs=log_probs, vocabulary=vocabulary, frame_ms=FRAME, centre_ms=CENTRE
    )
    audio = Audio(np.repeat(np.array(levels, np.float32), FRAME), RATE)
    return segment(emissions, text, audio, SegmentationOptions(**limits))


def kept(found: Segments) -> list[tuple[str, float, float]]:
    """Text and borders, in frames."""
    return [(one.text, one.start_ms / FRAME, one.end_ms / FRAME) for one in found.kept]


def test_a_cut_is_in_the_middle_of_silence() -> None:
    assert kept(cut("ab" + "." * 10 + "ba", "ab ba", max_s=0.4)) == [
        ("ab", 0, 7),
        ("ba", 7, 14),
    ]


def test_a_cut_is_where_it_is_quiet() -> None:
    loud = "##" + "#####....." + "##"
    found = cut("ab" + "." * 10 + "ba", "ab ba", loud=loud, max_s=0.5)
    assert kept(found) == [("ab", 0, 9), ("ba", 9, 14)]


def test_silence_one_frame_too_short_is_no_cut() -> None:
    pauses = {frames: "ab " + "." * (frames - 1) + "ba" for frames in (7, 8)}
    limit = {"silence_ms": 300, "max_s": 0.32}
    assert len(cut(pauses[8], "ab ba", **limit).kept) == 2
    [dropped] = cut(pauses[7], "ab ba", **limit).dropped
    assert dropped.reason == "length"
    assert dropped.value == pytest.approx(0.44)


def test_a_word_is_never_cut() -> None:
    assert kept(cut("a" + PAUSE + "b", "ab")) == [("ab", 0, 10)]


@pytest.mark.parametrize(
    ("heard", "kept_text", "rest"),
    [
        (["abc", "bac"], "abc", "bac"),  # the last c could be the second one
        (["acb", "abc"], "abc", "acb"),  # and the first a the first one
    ],
)
def test_speech_without_text_does_not_pull_a_word_to_pieces(
    heard: list[str], kept_text: str, rest: str
) -> None:
    found = cut(PAUSE.join(heard), "abc")
    assert [one.text for one in found.kept] == [kept_text]
    assert [(one.reason, one.segment.hypothesis) for one in found.dropped] == [("no text", rest)]


def test_silence_beyond_half_a_second_is_left_out() -> None:
    found = cut("." * 50 + "ab" + "." * 50 + "ba" + "." * 50, "ab ba")
    assert kept(found) == [("ab", 38, 64), ("ba", 90, 116)]
    assert found.dropped == ()


def test_neighbours_are_one_segment_up_to_the_longest() -> None:
    heard = PAUSE.join(["ab", "ba", "a", "b"])
    text = "ab ba a b"
    assert [one.text for one in cut(heard, text).kept] == [text]
    total = len(heard) * FRAME / 1000
    assert [one.text for one in cut(heard, text, max_s=total).kept] == [text]
    assert [one.text for one in cut(heard, text, max_s=total - 0.04).kept] == ["ab ba a", "b"]


def test_the_space_may_be_anywhere_in_the_silence() -> None:
    for pause in (" .......", "... ....", "....... "):
        found = cut("ab" + pause + "ba", "ab ba", max_s=0.4)
        assert [one.text for one in found.kept] == ["ab", "ba"]


def test_each_limit_drops_by_its_name() -> None:
    heard = PAUSE.join(["abab", "bccb", "abcb"])
    text = "abab bacb abcb"
    free = {
        "max_cost": math.inf,
        "min_confidence": 0.0,
        "max_cer": math.inf,
        "max_s": 0.5,
    }
    assert [one.text for one in cut(heard, text, **free).kept] == text.split()
    for limit, reason in (
        ({"max_cost": 1.0}, "cost"),
        ({"min_confidence": 0.5}, "confidence"),
        ({"max_cer": 0.2}, "error rate"),
    ):
        found = cut(heard, text, **(free | limit))
        assert [one.text for one in found.kept] == ["abab", "abcb"]
        [dropped] = found.dropped
        assert (dropped.reason, dropped.segment.text, dropped.segment.hypothesis) == (
            reason,
            "bacb",
            "bcb",
        )
    stretch = dropped.segment
    assert stretch.error_rate == dropped.value == 0.25
    # One frame of four is a symbol of 0.0025, three are of 0.99.
    right, wrong = -math.log(0.99), -math.log(0.0025)
    assert stretch.cost == pytest.approx((3 * right + wrong) / 4)
    assert stretch.words[0].confidence == pytest.approx(math.exp(-stretch.cost))


def test_speech_that_the_text_lacks() -> None:
    found = cut(PAUSE.join(["ab", "ccc a", "ba"]), "ab ba")
    assert [one.text for one in found.kept] == ["ab", "ba"]
    [dropped] = found.dropped
    assert (dropped.reason, dropped.segment.text, dropped.segment.hypothesis, dropped.value) == (
        "no text",
        "",
        "c a",
        3,
    )


def test_text_that_nobody_speaks() -> None:
    found = cut(PAUSE.join(["ab", "ba", "abc"]), "ab ccc ba abc")
    assert "abc" in [one.text for one in found.kept]
    assert any("ccc" in one.segment.text for one in found.dropped)
    assert not any("ccc" in one.text for one in found.kept)


def test_nothing() -> None:
    nothing = Segments(kept=(), dropped=())
    assert cut("", "") == cut("....", "") == nothing
    assert [one.reason for one in cut("ab", "").dropped] == ["no text"]


def test_more_text_than_can_be_spoken_is_refused() -> None:
    with pytest.raises(NearfutureError, match="2 frames cannot spell 5 symbols"):
        cut("ab", "ab ab")


pieces = st.lists(
    st.tuples(st.integers(0, 20), st.text("abc", min_size=1, max_size=5)), min_size=1, max_size=6
)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(pieces, st.integers(0, 20), st.sampled_from([0.4, 1.0, 15.0]), st.data())
def test_every_word_is_in_one_stretch(
    drawn: list[tuple[int, str]], tail: int, max_s: float, data: st.DataObject
) -> None:
    heard = "".join("." * pause + " " + word for pause, word in drawn) + "." * tail
    said = [word for _, word in drawn]
    if data.draw(st.booleans()):
        said[data.draw(st.integers(0, len(said) - 1))] = "cab"
    try:
        found = cut(heard, " ".join(said), max_s=max_s)
    except NearfutureError:
        return  # no room for the other word
    stretches = [*found.kept, *(one.segment for one in found.dropped)]
    stretches.sort(key=lambda one: one.start_ms)
    assert " ".join(one.text for one in stretches if one.text) == " ".join(said)
    assert stretches[0].start_ms >= 0
    assert stretches[-1].end_ms <= len(heard) * FRAME
    for one, after in itertools.pairwise(stretches):
        assert one.end_ms <= after.start_ms
    for one in stretches:
        assert all(one.start_ms <= w.start_ms < w.end_ms <= one.end_ms for w in one.words)
        assert one.frames.start <= one.frames.begin < one.frames.end <= one.frames.stop
    assert all(one.end_ms - one.start_ms <= 1000 * max_s for one in found.kept)


@pytest.mark.parametrize(
    ("name", "value", "limit"),
    [
        ("silence_ms", 0.0, "above 0"),
        ("max_s", math.nan, "above 0"),
        ("max_cost", -1.0, "not be below 0"),
        ("min_confidence", math.nan, "not be below 0"),
    ],
)
def test_limits_that_nothing_keeps(name: str, value: float, limit: str) -> None:
    with refuses("out_of_range", name, value, limit):
        SegmentationOptions(**{name: value})


# Real models


@dataclasses.dataclass(frozen=True)
class Spoken:
    """A word of a long recording, and where its sound is above -30 dB of its loudest."""

    text: str
    start_ms: float
    end_ms: float


def recover(model: Model, samples: np.ndarray, texts: list[str]) -> Segments:
    about = model.manifest
    emissions = Emissions(
        log_probs=model.log_probs(samples),
        vocabulary=about.vocabulary,
        frame_ms=about.frame_ms,
        centre_ms=about.centre_ms,
    )
    return segment(emissions, " ".join(texts), Audio(samples, model.rate))


def test_bundled_samples_with_a_wrong_text() -> None:
    folder = MODELS.parent / "samples"
    cuts = list(read_source(folder / "manifest.tsv").cuts)
    misread = cuts.pop(1)  # "fone sone one thwo five"
    rng = np.random.default_rng(0)
    texts = [cut.text for cut in cuts]
    samples = np.concatenate(
        [
            piece
            for cut in cuts
            for piece in (
                cut.read().samples,
                rng.normal(0, 1e-4, 8000).astype(np.float32),
            )
        ]
    )
    model = load("digits-bidirectional")
    found = recover(model, samples, texts)
    assert " ".join(one.text for one in found.kept) == " ".join(texts)
    assert found.dropped == ()

    wrong = [*texts[:3], "one two three four", *texts[4:]]
    assert len(texts[3].split()) != 4
    found = recover(model, samples, wrong)
    assert " ".join(one.text for one in found.kept) == " ".join([*texts[:3], *texts[4:]])
    assert " ".join(one.segment.text for one in found.dropped if one.segment.text) == wrong[3]

    # What the model cannot read it cannot vouch for: all but the last word, behind a pause.
    found = recover(model, misread.read().samples, [misread.text])
    *unread, last = misread.text.split()
    assert [one.text for one in found.kept] == [last]
    assert [one.segment.text for one in found.dropped] == [" ".join(unread)]


def long_recording(
    fsdd: DigitRecordings, seed: int, strings: int
) -> tuple[np.ndarray, list[list[Spoken]]]:
    """Strings of digits of all speakers with 0.7 to 2 s between them."""
    rng = np.random.default_rng(seed)
    speakers = sorted({speaker for speaker, _ in fsdd.takes})
    pieces, said = [np.zeros(8000, np.float32)], []
    for number in range(strings):
        takes, words = fsdd.takes[speakers[number % len(speakers)], "test"], []
        for digit in rng.integers(0, 10, rng.integers(3, 8)):
            take = at_level(takes[digit][rng.integers(len(takes[digit]))], -20.0)
            power = np.convolve(take**2, np.ones(80) / 80, "same")
            loud = np.flatnonzero(power > 1e-3 * power.max())
            begin = sum(map(len, pieces))
            words.append(Spoken(WORDS[digit], (begin + loud[0]) / 8, (begin + loud[-1]) / 8))
            pieces += [take, np.zeros(int(rng.uniform(0.05, 0.2) * 8000), np.float32)]
        said.append(words)
        pieces.append(np.zeros(int(rng.uniform(0.7, 2.0) * 8000), np.float32))
    return add_noise(np.concatenate(pieces), 30.0, 1.0, rng), said


def test_wrong_stretches_are_dropped_and_the_rest_recovered(fsdd: DigitRecordings) -> None:
    samples, said = long_recording(fsdd, seed=0, strings=30)
    texts = [[word.text for word in words] for words in said]
    texts[4] = ["four", "five", "four", "nine"]  # something else
    texts[9][1] = "three"  # one wrong word
    texts[14] = []  # missing
    texts[19] += ["four", "seven", "one"]  # more than is spoken
    del texts[24][1]  # a missing word
    wrong = {4, 9, 14, 19, 24}
    assert texts[9] != [word.text for word in said[9]]

    found = recover(load("digits-bidirectional"), samples, [" ".join(words) for words in texts])

    errors, recovered = [], set()
    for one in found.kept:
        inside = [
            (number, word)
            for number, words in enumerate(said)
            for word in words
            if word.end_ms > one.start_ms and word.start_ms < one.end_ms
        ]
        # The text is what is said there, whole words, from its first sound to its last.
        assert one.text == " ".join(word.text for _, word in inside)
        assert one.start_ms <= inside[0][1].start_ms
        assert inside[-1][1].end_ms <= one.end_ms
        recovered |= {number for number, _ in inside}
        errors += [
            (a.start_ms + a.end_ms - b.start_ms - b.end_ms) / 2
            for a, (_, b) in zip(one.words, inside, strict=True)
        ]
        assert one.end_ms - one.start_ms <= 15_000

    # Everything whose text is right is there, and of the missing string nothing.
    assert set(range(30)) - wrong <= recovered
    words = sum(len(one.words) for one in found.kept)
    assert words >= sum(len(said[number]) for number in range(30) if number not in wrong)
    assert 14 not in recovered
    dropped = " ".join(one.segment.hypothesis for one in found.dropped)
    assert " ".join(word.text for word in said[14]) in dropped
    # The model writes characters inside their sounds, so that a word lies in the middle of its own.
    assert np.median(np.abs(errors)) <= 40
    assert np.mean(np.abs(errors) <= 80) >= 0.9
