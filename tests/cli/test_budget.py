"""`nearfuture budget`, as a user reads it."""

import json
from typing import Any

import pytest

from nearfuture.cli import app
from nearfuture.error import NearfutureError

Capture = pytest.CaptureFixture[str]


@pytest.fixture(params=[80, 120])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


def run(*arguments: str) -> None:
    app(["budget", *arguments], result_action="return_value")


def report(capsys: Capture, *arguments: str) -> dict[str, Any]:
    run("--json", *arguments)
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def row(text: str, name: str) -> list[str]:
    """The cells of the table row that starts with a name."""
    line = next(line for line in text.splitlines() if line.startswith(f"│ {name}"))
    return [cell.strip() for cell in line.split("│")[2:-1]]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--budget", "400"),
        ("--preset", "deep-speech-2-deployed"),
        ("--preset", "deep-speech-2-research"),
        ("--bidirectional", "--merge", "sum", "--share-input"),
        ("--preset", "small-conformer", "--budget", "400"),
        ("--preset", "small-conformer", "--chunk", "0"),
    ],
)
def test_tables_fit_the_terminal(capsys: Capture, width: int, arguments: tuple[str, ...]) -> None:
    run(*arguments)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)


def test_the_small_model(capsys: Capture, width: int) -> None:
    run("--budget", "400")
    text = capsys.readouterr().out
    assert row(text, "window") == ["25"] * 4
    assert row(text, "stack") == ["30"] * 4
    assert row(text, "lookahead") == ["–", "160", "320", "760"]
    assert row(text, "worst case") == ["55", "215", "375", "815"]
    assert row(text, "mean") == ["35", "195", "355", "795"]
    assert row(text, "GRU 2 192 → 192") == ["222,336", "0.442", "11.1"]
    assert row(text, "total")[0] == "748,829"
    assert "A budget of 400 ms: τ = 8, 375 ms." in text


def test_deep_speech_2_says_what_760_ms_leaves_out(capsys: Capture, width: int) -> None:
    run("--preset", "deep-speech-2-deployed")
    text = capsys.readouterr().out
    assert row(text, "worst case") == ["930"]
    assert row(text, "lookahead 19")[0] == "51,200"
    assert row(text, "batch norm × 7")[0] == f"{5 * 3 * 2560 + 2 * 32:,}"
    assert "it leaves out 170 ms of window and convolutions" in " ".join(text.split())


def test_a_bidirectional_model_waits_for_the_end(capsys: Capture, width: int) -> None:
    run("--bidirectional")
    text = capsys.readouterr().out
    assert row(text, "worst case") == ["end of utterance"]
    assert "1 s: 1,000 ms, 5 s: 5,000 ms, 20 s: 20,000 ms" in " ".join(text.split())


def test_the_research_model_shares_its_input_weights(capsys: Capture) -> None:
    answer = report(capsys, "--preset", "deep-speech-2-research")
    assert answer["heads"][0]["worst_ms"] is None
    layers = {layer["name"]: layer["parameters"] for layer in answer["layers"]}
    assert layers["GRU 2 1760 → 1760"] == 3 * (1760 * 1760 * 3 + 1760)
    apart = report(capsys, "--preset", "deep-speech-2-research", "--merge", "concat")
    assert apart["total"]["parameters"] > answer["total"]["parameters"]


def test_chunks_wait_for_their_last_frame(capsys: Capture, width: int) -> None:
    run("--preset", "small-conformer", "--budget", "400")
    text = capsys.readouterr().out
    assert "5 × conformer-96 in chunks of 160 ms" in text
    assert row(text, "block wait (conformer layers)") == ["120"] * 4
    assert row(text, "worst case") == ["175", "215", "375", "815"]
    assert "A budget of 400 ms: τ = 5, 375 ms." in text
    run("--preset", "small-conformer", "--chunk", "0")
    text = capsys.readouterr().out
    assert "over the whole utterance" in text
    assert "it grows with the utterance" in " ".join(text.split())
    assert row(text, "worst case") == ["end of utterance"]


def test_every_size_of_attention_counts(capsys: Capture) -> None:
    preset = ("--preset", "small-conformer")
    default = report(capsys, *preset)
    for arguments in (
        ("--block", "transformer"),
        ("--hidden", "64"),
        ("--layers", "4"),
        ("--chunk", "2"),
        ("--chunk", "0"),
        ("--left-chunks", "2"),
        ("--right-context", "1"),
        ("--expansion", "4"),
        ("--kernel", "5"),
    ):
        assert report(capsys, *preset, *arguments) != default, arguments


def test_json_says_what_the_tables_say(capsys: Capture) -> None:
    answer = report(capsys, "--budget", "400")
    assert [head["frames"] for head in answer["heads"]] == [0, 4, 8, 19]
    assert [head["worst_ms"] for head in answer["heads"]] == [55, 215, 375, 815]
    assert answer["chosen_frames"] == 8
    assert answer["total"]["parameters"] == sum(layer["parameters"] for layer in answer["layers"])
    flops = answer["total"]["flops_per_frame"]
    assert answer["total"]["flops_per_second"] == flops * 25
    for head in answer["heads"]:
        assert head["worst_ms"] == sum(item["ms"] for item in head["items"])


def test_json_has_no_infinity(capsys: Capture) -> None:
    answer = report(capsys, "--bidirectional")
    assert answer["heads"][0]["frames"] is None
    assert answer["heads"][0]["worst_ms"] is None


def test_every_size_counts(capsys: Capture) -> None:
    default = report(capsys)
    for arguments in (
        ("--preset", "deep-speech-2-deployed"),
        ("--heads", "0,4"),
        ("--rate", "16000"),
        ("--window-ms", "20"),
        ("--hop-ms", "5"),
        ("--mel-bins", "80"),
        ("--mel-bins", "0"),
        ("--stack", "2"),
        ("--conv", "3,2,64"),
        ("--no-projection",),
        ("--cell", "lstm"),
        ("--hidden", "64"),
        ("--layers", "4"),
        ("--biases", "1"),
        ("--bidirectional",),
        ("--batch-norm", "--biases", "1"),
        ("--no-layer-norm",),
        ("--mixing",),
        ("--no-output-hidden",),
        ("--outputs", "18"),
        ("--resampler-ms", "5"),
        ("--quantum-wait-ms", "40"),
    ):
        assert report(capsys, *arguments) != default, arguments
    convolution = report(capsys, "--conv", "3,2,64")
    assert report(capsys, "--conv", "3,2,64", "--causal-conv") != convolution
    assert report(capsys, "--conv", "3,2,64,5,2") != convolution
    both = report(capsys, "--bidirectional")
    assert report(capsys, "--bidirectional", "--merge", "concat") != both
    assert report(capsys, "--bidirectional", "--share-input") != both


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--budget", "40"), "below the smallest this model can keep, 55 ms"),
        (("--bidirectional", "--budget", "400"), "whole utterance"),
        (("--merge", "concat"), "`merge`"),
        (("--share-input",), "`share_input`"),
        (("--causal-conv",), "`conv`"),
        (("--batch-norm",), "biases=1`, not 2"),
        (("--heads", "0,x"), "'0,x'"),
        (("--conv", "3,2"), "'3,2'"),
        (("--outputs", "0"), "not 0"),
        (("--bidirectional", "--heads", "4"), "waits for what is already there"),
        (("--chunk", "4"), "`chunk` is no size of a model with recurrent layers"),
        (("--preset", "small-conformer", "--cell", "gru"), "`cell` is no size .* attention"),
        (("--preset", "small-conformer", "--attention-heads", "5"), "multiple of 10"),
    ],
)
def test_mistakes_are_named(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        run(*arguments)
