"""An utterance that reaches its longest within a word divides it; times had two words of it."""

import json
from itertools import pairwise

from nearfuture.audio import open_audio
from nearfuture.cli.transcript_format import FormattedTranscript
from nearfuture.decoding import Endpoint
from nearfuture.runtime import load
from nearfuture.runtime.bundle import MODELS

CLIP = MODELS.parent / "samples" / "flite-rms-3602.flac"
TEXT = "three six zero two"


def written(form: str) -> str:
    model = load("digits")
    with open_audio(CLIP) as reader:
        endpoint = Endpoint(silence_ms=200, longest_ms=200)
        utterances = list(model.utterances(reader.blocks(8000), endpoint=endpoint))
        assert any(utterance.continues for utterance in utterances)
        transcript = FormattedTranscript(
            name="clip", stem="clip", model=model, reader=reader, utterances=iter(utterances)
        )
        return "".join(transcript.pieces(form))


def test_a_word_that_is_cut_has_one_time_in_every_format() -> None:
    assert [line.split()[4] for line in written("ctm").splitlines()] == TEXT.split()
    assert f"\n{TEXT}\n" in written("srt")
    assert f"\n{TEXT}\n" in written("vtt")
    row = json.loads(written("json"))
    assert row["text"] == TEXT
    assert [word["text"] for word in row["words"]] == TEXT.split()
    for before, after in pairwise(row["words"]):
        assert before["start_ms"] < before["end_ms"] <= after["start_ms"]
    assert written("textgrid").count('text = "three"') == 1
