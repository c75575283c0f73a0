"""Bundles over recordings: the twin, what cannot be read, what does not fit together; JSON."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from nearfuture.audio import read
from nearfuture.data import Cut, Utterance
from nearfuture.error import NearfutureError
from nearfuture.evaluation import Evaluation, evaluate_bundles
from nearfuture.runtime import Bundle, load
from tests.errors import refuses
from tests.evaluation.samples import ITEMS, samples_of


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return evaluate_bundles("digits", "digits-bidirectional", ITEMS)


def test_the_twin_writes_what_it_transcribes(evaluation: Evaluation) -> None:
    twin = load("digits-bidirectional")
    for one, item in zip(evaluation.results, ITEMS, strict=True):
        audio = read(item.path)
        event = twin.transcribe(audio.samples, audio.rate)
        assert one.twin is not None
        assert (one.twin.text, one.twin.words) == (event.text, event.words)


def test_the_twin_says_where_the_words_of_the_reference_are(evaluation: Evaluation) -> None:
    for one in evaluation.results:
        assert [word.text for word in one.aligned] == one.reference.split()
        times = [ms for word in one.aligned for ms in (word.start_ms, word.end_ms)]
        assert times == sorted(times)
        assert times[0] > 0
        assert times[-1] < 1000 * one.seconds


def test_a_larger_lookahead_commits_later_by_what_it_promises(evaluation: Evaluation) -> None:
    heads = {head.frames: head for head in evaluation.summary().heads}
    assert list(heads) == [0, 4, 8, 19]
    for head in heads.values():
        assert head.frames is not None
        assert head.commit_ms.count > 20
        waits = head.commit_ms.p50 - head.emission_ms.p50
        assert waits == pytest.approx(40 * head.frames + 7.5)
    assert heads[8].first_token_ms.p50 > 0


def test_what_cannot_be_read_is_named_and_left_out(tmp_path: Path) -> None:
    (tmp_path / "text.wav").write_text("These are words, but nobody speaks them.")
    bad = [
        Cut(name="no audio", path=tmp_path / "text.wav", text="one"),
        Cut(name="not there", path=tmp_path / "missing.wav", text="one"),
        Cut(name="too long", path=ITEMS[0].path, text="one", start_s=1.0, duration_s=60.0),
    ]
    broken = Utterance(name="broken", samples=np.full(800, np.nan, np.float32), text="one")
    found = evaluate_bundles("digits", None, [bad[0], ITEMS[0], *bad[1:], broken, ITEMS[1]])
    assert [one.name for one in found.results] == [ITEMS[0].name, ITEMS[1].name]
    assert [line.count("\n") for line in found.problems] == [0] * 4
    for line, name in zip(
        found.problems, ["text.wav", "missing.wav", "too long", "broken"], strict=True
    ):
        assert name in line


def test_a_part_of_a_file_is_that_part() -> None:
    whole = samples_of(ITEMS[0])
    part = dataclasses.replace(ITEMS[0], start_s=0.5, duration_s=0.75)
    kept = Utterance(name="kept", samples=whole[4000:10_000], text=ITEMS[0].text)
    (from_disk,) = evaluate_bundles("digits", None, [part]).results
    (from_memory,) = evaluate_bundles("digits", None, [kept]).results
    assert from_disk.seconds == 0.75
    assert from_disk.heads == from_memory.heads


def test_a_reference_that_the_twin_cannot_write_counts_for_errors_only() -> None:
    odd = dataclasses.replace(ITEMS[0], text="añ 7")
    long = dataclasses.replace(ITEMS[1], text="one two three " * 40)
    found = evaluate_bundles("digits", "digits-bidirectional", [odd, long])
    assert [one.aligned for one in found.results] == [(), ()]
    assert found.problems == ()
    assert found.summary().aligned == 0
    assert found.summary().heads[0].wer.value > 0.9


@pytest.mark.parametrize(
    ("streaming", "twin", "heads", "code", "parameter"),
    [
        ("digits-bidirectional", None, None, "unsupported", "streaming"),
        ("digits", "digits", None, "unsupported", "twin"),
        ("digits", None, [3, 8], "not_found", "heads"),
        ("digits", None, [], "invalid", "heads"),
    ],
)
def test_models_of_the_wrong_kind_and_unknown_heads_are_refused(
    streaming: str, twin: str | None, heads: list[int] | None, code: str, parameter: str
) -> None:
    with refuses(code, parameter):
        evaluate_bundles(streaming, twin, ITEMS, heads=heads)


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(NearfutureError, match="no model 'no such model'"):
        evaluate_bundles("no such model", None, ITEMS)


def test_an_open_bundle_is_a_bundle() -> None:
    found = evaluate_bundles(Bundle.open("digits"), None, ITEMS[:1])
    assert found.streaming.name == "digits"
    assert found.twin is None


def test_it_round_trips_through_json(evaluation: Evaluation, tmp_path: Path) -> None:
    evaluation.save(tmp_path / "new" / "a.json", by="speaker")
    again = Evaluation.load(tmp_path / "new" / "a.json")
    assert again == evaluation
    assert again.summary("speaker") == evaluation.summary("speaker")


def test_json_holds_the_figures_and_every_text(evaluation: Evaluation, tmp_path: Path) -> None:
    evaluation.save(tmp_path / "a.json")
    told = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert told["schema"] == 1
    head = told["summary"]["heads"][2]
    assert (head["frames"], head["latency"]["worst_ms"]) == (8, 375.0)
    assert head["cer"]["low"] <= head["cer"]["value"] <= head["cer"]["high"]
    assert told["results"][0]["reference"] == ITEMS[0].text
    assert told["results"][0]["heads"]["8"]["text"] == evaluation.results[0].heads[8].text
    assert told["results"][0]["twin"]["text"] == evaluation.results[0].twin.text  # type: ignore[union-attr]
    assert told["streaming"]["files"]["step.onnx"]["sha256"]


@pytest.mark.parametrize(
    ("content", "code", "parameter", "values"),
    [
        ("no json", "damaged", "path", ("a.json",)),
        ("[]", "damaged", None, ("a.json", "no JSON object")),
        ("{}", "damaged", None, ("no schema number",)),
        ('{"schema": 2}', "unsupported", None, ("schema 2", "up to 1")),
        ('{"schema": 1}', "damaged", None, ("streaming",)),
    ],
)
def test_other_files_are_not_read(
    tmp_path: Path, content: str, code: str, parameter: str | None, values: tuple[str, ...]
) -> None:
    (tmp_path / "a.json").write_text(content)
    with refuses(code, parameter, *values):
        Evaluation.load(tmp_path / "a.json")
    with refuses("not_found", "path", "missing.json"):
        Evaluation.load(tmp_path / "missing.json")


def test_a_file_that_cannot_be_written_is_named(evaluation: Evaluation, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with refuses("invalid", "path", "a.json"):
        evaluation.save(tmp_path / "file" / "a.json")
