"""When evidence arrives: the page says what the facts say, and shows a fault in a layer."""

import io
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import onnx
import pytest
import soundfile
from onnx import helper, numpy_helper

from nearfuture.lab import plosive, word_sense
from nearfuture.lab.pages import evidence
from nearfuture.lab.pages.evidence import adding, sentence, sound, voicing
from tests.errors import refuses

WORDS = get_args(get_type_hints(sentence)["word"])


def wrong(p: Any) -> list[bool]:
    """Whether each lookahead says /t/, although a /d/ is spoken."""
    return [bool(each > 0.5) for each in p]


def test_the_answer_turns_as_the_facts_say() -> None:
    assert wrong(adding("late")["t"]) == [True] * 3 + [False] * 4
    assert wrong(adding("scattered")["t"])[:4] == [False, True, False, False]
    assert not any(wrong(adding("early")["t"]))
    assert adding("late", tau=3)["waited_ms"] == 120


@pytest.mark.parametrize("tau", range(7))
def test_the_answer_reads_its_frame_and_so_many_behind_it(tau: int) -> None:
    assert adding("late", tau)["reads"].tolist() == [frame <= tau for frame in range(7)]


def look_one_frame_too_far(model: onnx.ModelProto) -> None:
    """Each lookahead answers as the next larger one does."""
    (output,) = model.graph.output
    for node in model.graph.node:
        node.output[:] = ["right" if name == output.name else name for name in node.output]
    model.graph.initializer.append(
        numpy_helper.from_array(np.array([1, 2, 3, 4, 5, 6, 6]), "later")
    )
    model.graph.node.append(helper.make_node("Gather", ["right", "later"], [output.name], axis=1))


def test_a_lookahead_that_is_off_by_one_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = onnx.load(plosive.FOLDER / "adding.onnx")
    look_one_frame_too_far(model)
    onnx.save(model, tmp_path / "adding.onnx")
    plosive.schedules()  # of the right folder
    monkeypatch.setattr(plosive, "FOLDER", tmp_path)
    found = adding("late", tau=2)
    assert wrong(found["t"]) == [True] * 2 + [False] * 5
    assert found["reads"].sum() == 4
    assert found["waited_ms"] == 120


def test_a_voice_that_is_heard_turns_the_answer() -> None:
    early, late = voicing(20), voicing(70)
    assert wrong(early["t"]) == [True] * 2 + [False] * 5
    assert early["t"][1] > early["t"][0]  # wrong more firmly before it turns
    assert wrong(late["t"]) == [True] * 7
    assert wrong(voicing(0)["t"])[1:] == [False] * 6
    assert early["t"][:2] == pytest.approx(late["t"][:2], abs=0.01)  # the same sound so far


def test_the_picture_shows_the_sound_that_is_played() -> None:
    samples, rate = soundfile.read(io.BytesIO(sound(50).content), dtype="float32")
    kept = plosive.plosive(50)
    assert rate == kept.rate
    np.testing.assert_allclose(samples[: len(kept.samples)], kept.samples, atol=1e-4)
    found = voicing(50, tau=3)
    wave = np.array(found["wave"])
    begin, end = found["shown_ms"]
    loud = np.abs(wave).max(axis=1)
    before = loud[: round(len(wave) * (found["burst_ms"] - begin) / (end - begin)) - 1]
    assert before.max() < 0.1 < loud.max()
    assert (found["heard_ms"], found["onset_ms"] - found["burst_ms"]) == (40, 50)


@pytest.mark.parametrize("word", WORDS)
def test_an_answer_is_settled_after_as_many_words_as_are_read(word: Any) -> None:
    about = word_sense.word_of(word)
    for example in about.examples:
        found = sentence(word, example.text)
        behind = len(found["words"]) - 1 - found["target"]
        limits = {"one way": 0, "lookahead 2": 2, "lookahead 4": 4, "both ways": behind}
        assert set(limits) == set(found["probabilities"])
        for kind, limit in limits.items():
            assert len(found["probabilities"][kind]) == behind + 1
            assert found["settled"][kind] <= limit, kind
        assert found["settled"]["both ways"] == behind


@pytest.mark.parametrize("word", WORDS)
def test_two_ends_are_told_apart_only_by_who_reads_them(word: Any) -> None:
    first, second = (sentence(word, each.text) for each in word_sense.word_of(word).examples[:2])
    for found, sense in ((first, 0), (second, 1)):
        assert round(found["probabilities"]["both ways"][-1]) == sense
        assert round(found["probabilities"]["lookahead 4"][-1]) == sense
        assert 0.4 < found["probabilities"]["one way"][-1] < 0.6
    assert first["probabilities"]["one way"][0] == pytest.approx(
        second["probabilities"]["one way"][0], abs=1e-6
    )


def test_a_sentence_of_ones_own_needs_the_word() -> None:
    found = sentence("bank", "He went to the bank  because the zyx was gone")
    assert found["words"][4] == "bank"
    assert found["known"] == [word != "zyx" for word in found["words"]]
    with refuses("invalid", "text", "'bank'", "'no such word'"):
        sentence("bank", "no such word")


def test_a_tagger_that_reads_ahead_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs of two readers in each other's place: the one-way answer goes on changing."""
    real = word_sense._tagger

    def swapped(path: Path) -> Any:
        return real(path.with_name(path.name.replace("one-way", "both-ways")))

    monkeypatch.setattr(word_sense, "_tagger", swapped)
    assert evidence.sentence("bank")["settled"]["one way"] > 0
