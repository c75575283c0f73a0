"""Figures against what can be reckoned by hand."""

import dataclasses
import math

import pytest

from nearfuture.budget import small_conformer
from nearfuture.decoding import Word
from nearfuture.evaluation import Evaluation, Hypothesis, Result
from nearfuture.evaluation.summary import summarise
from nearfuture.runtime import load
from tests.errors import refuses

MANIFEST = load("digits").manifest
TWIN = load("digits-bidirectional").manifest
CENTRE_MS, HALF_FRAME_MS = 27.5, 20.0


def word(text: str, start_ms: float, end_ms: float) -> Word:
    return Word(text, start_ms, end_ms, 1.0)


def result(
    reference: str,
    head: str,
    twin: str | None,
    *,
    name: str = "a",
    speaker: str = "",
    words: tuple[Word, ...] = (),
    aligned: tuple[Word, ...] = (),
    resampler_ms: float = 0.0,
    revisions: int = 0,
    retracted: int = 0,
    finish_ms: float = 1.0,
) -> Result:
    return Result(
        name=name,
        speaker=speaker,
        reference=reference,
        seconds=2.0,
        resampler_ms=resampler_ms,
        heads={
            8: Hypothesis.scored(reference, head, words, revisions=revisions, retracted=retracted)
        },
        compute_ms=30.0,
        finish_ms=finish_ms,
        twin=None if twin is None else Hypothesis.scored(reference, twin, aligned),
        twin_ms=None if twin is None else 4.0,
        aligned=aligned,
    )


def test_rates_are_those_of_the_texts() -> None:
    found = summarise(
        [
            result("one two", "one two", "one two"),
            result("three", "tree", "three"),
            result("nine nine", "nine", "nine ine"),
        ],
        MANIFEST,
    )
    (head,) = found.heads
    assert found.twin is not None
    assert (head.wer.value, head.cer.value) == (2 / 5, 6 / 21)
    assert (found.twin.wer.value, found.twin.cer.value) == (1 / 5, 1 / 21)
    assert head.cer.low <= head.cer.value <= head.cer.high
    assert head.cer_to_twin is not None
    assert head.cer_to_twin.value == pytest.approx(500.0)
    assert head.wer_to_twin is not None
    assert head.wer_to_twin.value == pytest.approx(100.0)
    assert found.twin.cer_to_twin is None
    assert (found.utterances, found.words, found.characters, found.seconds) == (3, 5, 21, 6.0)


def test_delays_are_reckoned_from_the_twin_s_alignment() -> None:
    """A frame is written 80 ms after the word ended; it exists 375 ms after the frame's start."""
    aligned = (word("one", 107.5, 247.5), word("two", 347.5, 487.5))
    written = (word("one", 187.5, 327.5), word("too", 427.5, 607.5))
    one = result("one two", "one too", "one two", words=written, aligned=aligned)
    found = summarise([one, one], MANIFEST)
    (head,) = found.heads
    assert (head.emission_ms.p50, head.emission_ms.count) == (80.0, 2)  # "too" is no "two"
    frame_starts = 327.5 - HALF_FRAME_MS - CENTRE_MS
    assert head.commit_ms.p50 == frame_starts + 375 - 247.5
    assert head.first_token_ms.p50 == (187.5 - CENTRE_MS) + 375 - 107.5
    assert found.twin is not None
    assert (found.twin.emission_ms.p50, found.twin.commit_ms.count) == (0.0, 0)
    assert found.aligned == 2


def test_the_last_frame_of_a_chunk_waits_less_than_the_first() -> None:
    config = small_conformer().replace(heads=(8,))
    chunked = dataclasses.replace(MANIFEST, architecture=config, heads={8: config.latency(8)})
    # Frames 4 and 7 are the first and the last of a chunk of four.
    for frame, waits_ms in ((4, 55 + 320 + 120), (7, 55 + 320)):
        begins_ms = 40.0 * frame
        written = word("one", begins_ms + CENTRE_MS, begins_ms + CENTRE_MS + HALF_FRAME_MS)
        one = result("one", "one", "one", words=(written,), aligned=(word("one", 7.5, 47.5),))
        (head,) = summarise([one], chunked).heads
        assert head.commit_ms.p50 == begins_ms + waits_ms - 47.5
        assert head.first_token_ms.p50 == begins_ms + waits_ms - 7.5
        assert head.latency is not None
        assert head.latency.worst_ms == 495


def test_the_resampler_delays_what_is_committed_and_nothing_else() -> None:
    aligned, written = (word("one", 107.5, 247.5),), (word("one", 187.5, 327.5),)
    plain = result("one", "one", "one", words=written, aligned=aligned)
    behind = result("one", "one", "one", words=written, aligned=aligned, resampler_ms=5.0)
    (head,) = summarise([plain], MANIFEST).heads
    (later,) = summarise([behind], MANIFEST).heads
    assert later.commit_ms.p50 == head.commit_ms.p50 + 5
    assert later.first_token_ms.p50 == head.first_token_ms.p50 + 5
    assert later.emission_ms == head.emission_ms
    assert head.latency is not None
    assert later.latency is not None
    assert (head.latency.worst_ms, later.latency.worst_ms) == (375.0, 380.0)
    assert later.latency.items[0].name == "resampler"
    (most,) = summarise([plain, behind, behind], MANIFEST).heads
    assert most.latency == later.latency


def test_without_alignment_there_are_no_delays() -> None:
    written = (word("one", 187.5, 327.5),)
    for twin in (None, "one"):
        (head,) = summarise([result("one", "one", twin, words=written)], MANIFEST).heads
        assert head.emission_ms.count == head.commit_ms.count == head.first_token_ms.count == 0
        assert math.isnan(head.emission_ms.p50)


def test_nothing_written_has_no_first_text() -> None:
    one = result("one", "", "one", aligned=(word("one", 107.5, 247.5),))
    (head,) = summarise([one], MANIFEST).heads
    assert head.first_token_ms.count == 0


def test_revisions_are_counted_by_words_and_characters() -> None:
    found = summarise(
        [
            result("one two", "one two", None, revisions=3, retracted=4),
            result("one two three", "one", None, revisions=0, retracted=1),
        ],
        MANIFEST,
    )
    (head,) = found.heads
    assert head.revisions == 100 * 3 / 5
    assert head.retracted == 5 / (5 + 7 + 3)


def test_computing_is_told_apart() -> None:
    found = summarise(
        [result("one", "one", "one", finish_ms=ms) for ms in (1.0, 2.0, 3.0)], MANIFEST
    )
    assert (found.finish_ms.p50, found.finish_ms.p90) == (2.0, 2.8)
    assert found.real_time_factor == pytest.approx(0.015)
    assert found.twin_ms.p50 == 4.0


def spoken() -> list[Result]:
    """Four speakers with ten recordings each; one speaker is hard."""
    return [
        result(
            "one two",
            "one too" if speaker == "d" else "one two",
            "one two" if number else "one",
            name=f"{speaker} {number}",
            speaker=speaker,
        )
        for speaker in "abcd"
        for number in range(10)
    ]


def test_speakers_are_drawn_as_wholes() -> None:
    by_utterance = summarise(spoken(), MANIFEST)
    by_speaker = summarise(spoken(), MANIFEST, by="speaker")
    (one,), (other,) = by_utterance.heads, by_speaker.heads
    assert one.wer.value == other.wer.value
    assert (other.wer.low, other.wer.high) == (0.0, pytest.approx(0.375, abs=0.001))
    assert one.wer.high < 0.25
    assert by_speaker.speakers == 4


def test_the_comparison_is_paired() -> None:
    """Head and twin fail on the same recordings: relatively there is no doubt at all."""
    found = summarise(
        [
            result("one two", "one" if hard else "one two", "one" if hard else "one two")
            for hard in [True] * 10 + [False] * 10
        ],
        MANIFEST,
    )
    (head,) = found.heads
    assert head.cer.high - head.cer.low > 0.2
    assert head.cer_to_twin is not None
    assert (head.cer_to_twin.low, head.cer_to_twin.high) == (0.0, 0.0)


def test_what_cannot_be_compared_is_left_out() -> None:
    perfect = [result("one", "one", "one"), result("two", "to", "two")]
    (head,) = summarise(perfect, MANIFEST).heads
    assert head.cer_to_twin is None  # a share of no errors
    single = summarise([result("one", "on", "o")], MANIFEST)
    assert single.heads[0].cer_to_twin is None
    assert (single.heads[0].cer.low, single.heads[0].cer.high) == (0.0, math.inf)


def evaluation(results: list[Result]) -> Evaluation:
    return Evaluation(streaming=MANIFEST, twin=TWIN, results=tuple(results))


def test_speakers_one_by_one() -> None:
    found = evaluation(spoken()).speakers()
    assert list(found) == ["a", "b", "c", "d"]
    words, characters = found["d"][8]
    assert (words.errors, words.reference) == (10, 20)
    assert (characters.errors, characters.reference) == (10, 70)
    assert found["a"][8][0].errors == 0
    assert found["a"][None][0].errors == 1


def test_no_speakers_no_interval_by_speaker() -> None:
    unknown = evaluation([result("one", "one", "one"), result("two", "two", "two")])
    with refuses("invalid", "by", "2 speakers", "2 recordings name 0"):
        unknown.summary("speaker")
    with refuses("invalid", None, "no recording"):
        evaluation([]).summary()
