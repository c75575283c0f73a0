"""Files of a few hundred bytes that stand for more than any memory, or for ever, are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from nearfuture.phrases import Phrases, network, reading
from tests.errors import refuses

HEAD = "language: en\n"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits, so small that reaching them takes no time."""
    monkeypatch.setattr(network, "_MOST_STATES", 10_000)
    monkeypatch.setattr(network, "_MOST_PLACES", 20_000)
    monkeypatch.setattr(reading, "_MOST_NODES", 5_000)


def load(folder: Path, text: str, name: str = "phrases.yaml") -> Phrases:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return Phrases.load(path)


def rules(leaf: str, *, local: bool, body: str = "<r{0}><r{0}>", count: int = 60) -> str:
    """Rules of rules: 2^59 leaves, or as deep as there are rules."""
    expansion = {"r0": leaf} | {f"r{i}": body.format(i - 1) for i in range(1, count)}
    data: dict[str, Any] = {"sentences": [f"hi <r{count - 1}>"]}
    content: dict[str, Any] = {"language": "en", "intents": {"A": {"data": [data]}}}
    (data if local else content)["expansion_rules"] = expansion
    return json.dumps(content)


def laughs(where: str) -> str:
    """Aliases of aliases: 9^11 values."""
    lists = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)]
    block = "{sentences: [hi], " + where + ": {x: *a11}}"
    return HEAD + "a0: &a0 [x]\n" + "".join(lists) + f"intents: {{A: {{data: [{block}]}}}}\n"


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("leaf", ["a", "!"])  # what is spoken of the second is nothing
def test_rules_of_rules_end(tmp_path: Path, local: bool, leaf: str) -> None:
    with refuses("too_large"):
        assert load(tmp_path, rules(leaf, local=local)).automaton


def test_rules_may_not_stand_in_each_other_without_end(tmp_path: Path) -> None:
    with refuses("too_large", None, 100):
        load(tmp_path, rules("a", local=False, body="b <r{0}>", count=200))
    assert load(tmp_path, rules("a", local=False, body="b <r{0}>", count=15)).automaton.count == 1


@pytest.mark.parametrize("where", ["slots", "requires_context", "metadata"])
def test_aliases_of_aliases_are_refused(tmp_path: Path, where: str) -> None:
    with refuses("too_large", None, "1,000,000"):
        load(tmp_path, laughs(where))


@pytest.mark.parametrize(
    "text",
    [
        "intents: &a {A: {data: [{sentences: [hi], slots: {b: *a}}]}}",
        "intents: {A: {data: &d [*d]}}",
        "intents: " + "[" * 400 + "]" * 400,
        "intents: {A: {data: [{sentences: ['" + "(" * 51 + "a" + ")" * 51 + "']}]}}",
    ],
)
def test_what_contains_itself_or_is_too_deep_is_refused(tmp_path: Path, text: str) -> None:
    with refuses("too_large", None, 50):
        load(tmp_path, HEAD + text)


def test_a_template_that_can_be_read_in_too_many_ways_is_refused(tmp_path: Path) -> None:
    optional = load(tmp_path, "x " + "[a]" * 200, "a.txt")
    subsets = load(tmp_path, "[(a|b)]" * 20 + "a" + "(a|b)" * 16, "b.txt")
    for phrases in (optional, subsets):
        with refuses("too_large", None, "too many ways"):
            assert phrases.automaton


def test_a_sentence_and_a_template_have_a_longest_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "_MOST_PLACES", 200_000)
    monkeypatch.setattr(reading, "_MOST_NODES", 20_000)
    assert load(tmp_path, "(a|b)" * 1000, "a.txt").automaton.count == 2**1000
    with refuses("too_large", None, "1,001"):
        assert load(tmp_path, "(a|b)" * 1001, "b.txt").automaton
    with refuses("too_large", None, "10,000"):
        load(tmp_path, "a" * 10_001, "c.txt")


def test_words_without_spaces_are_not_listed_in_all_lengths(tmp_path: Path) -> None:
    automaton = load(tmp_path, "(a|b)" * 500, "a.txt").automaton
    with refuses("too_large", None, "100,000 words"):
        automaton.words()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("intents: null", "damaged"),
        ("intents: [a]", "damaged"),
        ("intents: {A: 5}", "damaged"),
        ("intents: {A: {data: 5}}", "damaged"),
        ("intents: {A: {data: [{sentences: [hi], metadata: {weight: .inf}}]}}", "invalid"),
        ("intents: {A: {data: [{sentences: [hi], metadata: {weight: [1]}}]}}", "damaged"),
        ("n: " + "9" * 5000, "damaged"),
        ("d: 2020-99-99", "damaged"),
        ("? [a]\n: b", "damaged"),
    ],
)
def test_a_file_of_another_form_is_refused_by_name(tmp_path: Path, text: str, code: str) -> None:
    with refuses(code):
        load(tmp_path, HEAD + text)


@pytest.mark.parametrize("limits", ["from: 0, to: .inf", "from: -.inf, to: 5", "from: .nan, to: 5"])
def test_a_range_has_finite_limits(tmp_path: Path, limits: str) -> None:
    block = "intents: {A: {data: [{sentences: ['set {n}']}]}}"
    with refuses("damaged"):
        load(tmp_path, f"{HEAD}{block}\nlists: {{n: {{range: {{{limits}}}}}}}")


def test_a_file_without_an_end_is_not_read_to_it() -> None:
    if Path("/dev/zero").exists():
        with refuses("too_large", None, "/dev/zero"):
            Phrases.load("/dev/zero")
