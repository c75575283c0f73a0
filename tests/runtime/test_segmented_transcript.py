"""Utterances divide a text in time: put one behind another they are the text, for any timing."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.decoding import Detokenizer, Endpoint, GreedyDecoder
from nearfuture.runtime import SegmentedTranscript, load
from nearfuture.runtime.transcript import Transcript
from nearfuture.text import Vocabulary

VOCABULARY = Vocabulary((" ", "a", "b"))
DETOKENIZER = Detokenizer(VOCABULARY, frame_ms=40.0, centre_ms=27.5)
EMPTY = Transcript(detokenizer=DETOKENIZER)
BLANK, SPACE, A, B = range(4)
SYMBOLS = st.sampled_from([[BLANK], [BLANK], [BLANK], [SPACE], [A], [B], [BLANK] * 12])
FRAMES = st.lists(SYMBOLS, max_size=60).map(lambda runs: [best for run in runs for best in run])
RULES = st.builds(
    lambda silence, longest: Endpoint(40.0 * silence, 40.0 * max(silence, longest)),
    st.integers(1, 16),
    st.integers(1, 40),
)


def read(best: list[int]) -> np.ndarray:
    peaks = np.eye(len(VOCABULARY), dtype=np.float32)[best] if best else np.zeros((0, 4))
    return np.log(0.05 + 0.8 * peaks).astype(np.float32)


def hear(
    best: list[int],
    rule: Endpoint | None,
    tail: int = 0,
    fast: list[int] | None = None,
) -> list[SegmentedTranscript]:
    """Frame by frame, the last `tail` frames at once; every value on the way."""
    heard = [SegmentedTranscript(EMPTY, rule)]
    steps = [[b] for b in best[: len(best) - tail]] + [best[len(best) - tail :]]
    for t, step in enumerate(steps):
        preview = None if fast is None else read(fast[t : t + 1])
        heard.append(heard[-1].step(read(step), preview))
    return heard


def ended(heard: list[SegmentedTranscript]) -> list[SegmentedTranscript]:
    """The last value of every utterance."""
    return [one for one, after in pairwise(heard) if one.ends] + heard[-1:]


def whole(best: list[int]) -> str:
    tokens, _ = GreedyDecoder().step(read(best), GreedyDecoder().start())
    return DETOKENIZER.text(tokens)


@settings(max_examples=120)
@given(best=FRAMES, rule=RULES, tail=st.integers(0, 20))
def test_the_utterances_put_one_behind_another_are_the_text(
    best: list[int], rule: Endpoint, tail: int
) -> None:
    heard = hear(best, rule, tail=min(tail, len(best)))
    assert "".join(one.committed for one in ended(heard)) == whole(best)
    assert [one.utterance for one in ended(heard)] == list(range(len(ended(heard))))
    for one in ended(heard)[:-1]:
        assert one.words


@settings(max_examples=120)
@given(best=FRAMES, rule=RULES)
def test_words_are_those_of_the_whole_cut_at_the_borders(best: list[int], rule: Endpoint) -> None:
    tokens, _ = GreedyDecoder().step(read(best), GreedyDecoder().start())
    parts = ended(hear(best, rule))
    begins = 0
    for one in parts:
        mine = [token for token in tokens if begins <= token.frame < one.frames]
        assert one.words == DETOKENIZER.words(mine)
        assert one.committed.strip() == DETOKENIZER.text(mine)
        begins = one.frames


@settings(max_examples=100)
@given(best=FRAMES, rule=RULES)
def test_committed_text_only_grows_within_an_utterance(best: list[int], rule: Endpoint) -> None:
    heard = hear(best, rule)
    for before, after in pairwise(heard):
        if before.ends:
            assert after.utterance == before.utterance + 1
        else:
            assert after.utterance == before.utterance
            assert after.committed.startswith(before.committed)


@settings(max_examples=100)
@given(best=FRAMES, fast=FRAMES, rule=RULES)
def test_what_is_shown_is_what_an_undivided_stream_shows(
    best: list[int], fast: list[int], rule: Endpoint
) -> None:
    divided, undivided = hear(best, rule, fast=fast), hear(best, None, fast=fast)
    said = ""
    for one, other in zip(divided, undivided, strict=True):
        assert said + one.committed == other.committed
        if one.ends:
            said += one.committed
            assert one.provisional == ""


def test_a_pause_of_400_ms_does_not_end_an_utterance_and_one_of_800_does() -> None:
    def parts(pause: int) -> list[str]:
        heard = hear([A, B, *[BLANK] * pause, SPACE, A, *[BLANK] * 5], Endpoint())
        return [one.committed for one in ended(heard)]

    assert parts(10) == ["ab a"]
    assert parts(18) == ["ab a"]
    assert parts(20) == ["ab", " a"]


@pytest.mark.parametrize("rule", [None, Endpoint(), Endpoint(520), Endpoint(2000), Endpoint(120)])
def test_a_silence_of_500_ms_ends_the_word_and_a_shorter_one_does_not(
    rule: Endpoint | None,
) -> None:
    def said(pause: int) -> tuple[str, list[str]]:
        parts = ended(hear([A, B, *[BLANK] * pause, A, BLANK], rule))
        text = "".join(one.committed for one in parts)
        return text, [word.text for one in parts for word in one.words]

    assert said(1500) == said(20) == said(13) == ("ab a", ["ab", "a"])
    text, parts = said(12)
    assert text == "aba"
    assert parts == (["ab", "a"] if rule == Endpoint(120) else ["aba"])


def test_a_space_within_the_silence_is_silence() -> None:
    heard = hear([A, *[BLANK] * 9, SPACE, *[BLANK] * 10], Endpoint())
    assert [one.ends for one in heard[1:]] == [False] * 20 + [True, False]


def test_a_long_vowel_is_no_silence() -> None:
    assert not any(one.ends for one in hear([A] * 100, Endpoint()))


def test_silence_alone_ends_nothing() -> None:
    heard = hear([BLANK, SPACE] * 600, Endpoint())
    assert not any(one.ends for one in heard)
    assert heard[-1].utterance == 0


def test_an_endless_talker_is_cut_between_words() -> None:
    heard = hear([A, B, A, SPACE] * 300, Endpoint())
    parts = ended(heard)
    assert len(parts) > 2
    assert all(one.committed.strip().replace("aba", "").strip() == "" for one in parts)
    length = 40.0 * (parts[1].frames - parts[0].frames)
    assert 18_000 <= length <= 18_500


def test_an_endless_word_is_cut_at_the_longest() -> None:
    heard = hear([A, B] * 300, Endpoint())
    parts = ended(heard)
    assert "".join(one.committed for one in parts) == "ab" * 300
    assert parts[0].frames * 40 == pytest.approx(20_000, abs=80)
    assert not parts[1].committed.startswith(" ")


def test_forgetting_again_forgets_nothing_more() -> None:
    once = EMPTY.step(read([A, SPACE])).drop_committed()
    twice = once.drop_committed()
    assert once.step(read([B])).committed == twice.step(read([B])).committed == " b"
    begun = EMPTY.step(read([A])).drop_committed().drop_committed()
    assert begun.step(read([BLANK, SPACE, B])).committed == " b"
    assert begun.step(read([BLANK, B])).committed == "b"
    assert EMPTY.drop_committed().step(read([SPACE, B])).committed == "b"


def test_hours_of_speech_stay_flat() -> None:
    heard = SegmentedTranscript(EMPTY, Endpoint())
    word = [read([best]) for best in [A, B, BLANK, SPACE]]
    silence = read([BLANK])
    largest = 0
    for _ in range(60):
        for _ in range(30):
            for frame in word:
                heard = heard.step(frame, frame)
        for _ in range(20):
            heard = heard.step(silence, silence)
        largest = max(largest, len(heard.committed), len(heard.transcript._closed))
    assert heard.utterance >= 59
    assert largest <= 30 * 3


@pytest.mark.parametrize("frames", [0, 4, 8, 19])
def test_every_head_of_a_real_model_is_divided_without_loss(frames: int) -> None:
    from nearfuture.audio import read as recording
    from nearfuture.runtime.bundle import MODELS

    samples = MODELS.parent / "samples"
    parts = [recording(samples / f"flite-{name}.flac") for name in ("slt-720", "rms-991")]
    silence = np.zeros(12_000, np.float32)
    assert {part.rate for part in parts} == {8000}
    pcm = np.concatenate([x for part in parts * 2 for x in (part.samples, silence)])
    model = load("digits", {0: 60, 4: 220, 8: 380, 19: 820}[frames])
    empty = Transcript.empty(model.manifest)
    heard = [SegmentedTranscript(empty, Endpoint())]
    stream = model.stream(
        on_log_probs=lambda heads: heard.append(heard[-1].step(heads[frames], heads[0]))
    )
    stream.accept(pcm)
    final = stream.finish()
    said = [one.committed for one in ended(heard)]
    assert "".join(said) == final.committed
    assert len([part for part in said if part]) == 4
