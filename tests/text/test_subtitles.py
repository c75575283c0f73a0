"""Subtitles keep every word, in order, in cues that can be read."""

import re

from hypothesis import given
from hypothesis import strategies as st

from nearfuture.decoding import Word
from nearfuture.text.subtitles import CUE_PAUSE_MS, MAX_CUE_CHARACTERS, MAX_CUE_MS, cues, srt, vtt


def spoken(*lasts: tuple[float, float, str]) -> list[Word]:
    """Words from (pause before, duration, text)."""
    words, now = [], 0.0
    for pause, duration, text in lasts:
        now += pause
        words.append(Word(text, now, now + duration, 1.0))
        now += duration
    return words


some_words = st.lists(
    st.tuples(
        st.floats(0, 2000, allow_nan=False),
        st.floats(20, 9000, allow_nan=False),
        st.text("abc", min_size=1, max_size=100),
    ),
    max_size=30,
).map(lambda lasts: spoken(*lasts))


@given(some_words)
def test_every_word_is_in_one_cue_in_order(words: list[Word]) -> None:
    assert [word for cue in cues(words) for word in cue.words] == words


@given(some_words)
def test_cues_are_short_and_hold_no_pause(words: list[Word]) -> None:
    for cue in cues(words):
        if len(cue.words) > 1:
            assert cue.end_ms - cue.start_ms <= MAX_CUE_MS
            assert len(cue.text) <= MAX_CUE_CHARACTERS
        for before, after in zip(cue.words, cue.words[1:], strict=False):
            assert after.start_ms - before.end_ms < CUE_PAUSE_MS


def test_cues_break_nowhere_else() -> None:
    words = spoken(*[(100.0, 200.0, "five")] * 10)
    assert [cue.text for cue in cues(words)] == [" ".join(["five"] * 10)]


def test_srt_has_the_documented_form() -> None:
    text = "".join(srt(spoken((299.6, 400.0, "two"), (100, 300, "one"), (900, 500, "nine"))))
    assert text == (
        "1\n00:00:00,300 --> 00:00:01,100\ntwo one\n\n2\n00:00:02,000 --> 00:00:02,500\nnine\n\n"
    )


def test_vtt_has_the_documented_form() -> None:
    text = "".join(vtt(spoken((3_600_000, 500.0, "<a&b>"))))
    assert text == "WEBVTT\n\n01:00:00.000 --> 01:00:00.500\n&lt;a&amp;b&gt;\n\n"


@given(some_words)
def test_times_do_not_run_backwards(words: list[Word]) -> None:
    clock = r"(\d+):(\d\d):(\d\d)\.(\d{3})"
    times = [
        ((int(h) * 60 + int(m)) * 60 + int(s)) * 1000 + int(ms)
        for h, m, s, ms in re.findall(clock, "".join(vtt(words)))
    ]
    assert times == sorted(times)


def test_nothing_said_is_no_cue() -> None:
    assert "".join(srt([])) == ""
    assert "".join(vtt([])) == "WEBVTT\n\n"
