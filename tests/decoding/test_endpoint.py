"""The rule that ends utterances: silence, or length, and nothing shorter than either."""

import math

import pytest

from nearfuture.decoding import Endpoint
from tests.errors import refuses


@pytest.mark.parametrize(
    ("silence_ms", "ends"), [(0, False), (400, False), (799, False), (800, True)]
)
def test_only_the_whole_silence_ends_an_utterance(silence_ms: float, ends: bool) -> None:
    rule = Endpoint()
    assert rule.reached(speech_ms=3000, silence_ms=silence_ms, between_words=True) is ends


@pytest.mark.parametrize(
    ("speech_ms", "between_words", "ends"),
    [(17_999, True, False), (18_000, False, False), (18_000, True, True), (20_000, False, True)],
)
def test_a_long_utterance_ends_between_words_if_it_can(
    speech_ms: float, between_words: bool, ends: bool
) -> None:
    assert (
        Endpoint().reached(speech_ms=speech_ms, silence_ms=0, between_words=between_words) is ends
    )


@pytest.mark.parametrize(
    ("silence_ms", "longest_ms"),
    [(0, 20_000), (-1, 20_000), (800, 799), (800, math.inf), (math.nan, 800), (800, math.nan)],
)
def test_a_rule_that_makes_no_sense_is_refused(silence_ms: float, longest_ms: float) -> None:
    with refuses("out_of_range", "silence_ms", f"{silence_ms:g}", f"{longest_ms:g}"):
        Endpoint(silence_ms, longest_ms)
