"""CTM and TextGrid as other programs read them."""

import itertools
import re
from dataclasses import dataclass

from nearfuture.text.timed import ctm, textgrid


@dataclass(frozen=True)
class Said:
    text: str
    start_ms: float
    end_ms: float
    confidence: float = 1.0


Interval = tuple[float, float, str]


def parse_textgrid(content: str) -> tuple[float, dict[str, list[Interval]]]:
    """Praat's own rule: only numbers, quoted strings and <flags> count; all else is comment."""
    tokens = iter(re.findall(r'"(?:[^"]|"")*"|<\w+>|(?<![\w\[])-?\d+(?:\.\d+)?(?![\w\]])', content))

    def text() -> str:
        quoted = next(tokens)
        assert quoted[0] == quoted[-1] == '"'
        return quoted[1:-1].replace('""', '"')

    def number() -> float:
        return float(next(tokens))

    assert (text(), text()) == ("ooTextFile", "TextGrid")
    assert number() == 0
    end = number()
    assert next(tokens) == "<exists>"
    tiers = {}
    for _ in range(int(number())):
        assert text() == "IntervalTier"
        name = text()
        assert (number(), number()) == (0, end)
        intervals = [(number(), number(), text()) for _ in range(int(number()))]
        assert intervals[0][0] == 0
        assert intervals[-1][1] == end
        for (begin, stop, _), (after, _, _) in itertools.pairwise(intervals):
            assert begin < stop == after
        tiers[name] = intervals
    assert next(tokens, None) is None
    return end, tiers


def test_a_textgrid_is_read_back() -> None:
    words = [
        Said("zero", 347.5, 527.5),
        Said("don't", 527.5, 700),
        Said('"quoted" 1 <x>', 900, 1e3),
    ]
    letters = [Said("z", 347.5, 367.5)]
    end, tiers = parse_textgrid(
        textgrid({"words": words, "characters": letters, "none": []}, duration_ms=1234.5)
    )
    assert end == 1.2345
    assert tiers == {
        "words": [
            (0, 0.3475, ""),
            (0.3475, 0.5275, "zero"),
            (0.5275, 0.7, "don't"),
            (0.7, 0.9, ""),
            (0.9, 1.0, '"quoted" 1 <x>'),
            (1.0, 1.2345, ""),
        ],
        "characters": [(0, 0.3475, ""), (0.3475, 0.3675, "z"), (0.3675, 1.2345, "")],
        "none": [(0, 1.2345, "")],
    }


def test_the_last_word_may_end_the_recording_or_outlast_it() -> None:
    for duration in (100, 90):
        end, tiers = parse_textgrid(textgrid({"words": [Said("a", 0, 100)]}, duration_ms=duration))
        assert (end, tiers["words"]) == (0.1, [(0, 0.1, "a")])


def test_ctm_has_six_fields_and_true_durations() -> None:
    words = [Said("안녕", 347.5, 527.5, 0.98765), Said("one", 12_000, 12_040)]
    lines = [line.split(" ") for line in ctm(words, name="my call", channel="A")]
    assert lines == [
        ["my_call", "A", "0.3475", "0.1800", "안녕", "0.9877\n"],
        ["my_call", "A", "12.0000", "0.0400", "one", "1.0000\n"],
    ]


def test_no_words_are_no_lines() -> None:
    assert list(ctm([], name="a")) == []
