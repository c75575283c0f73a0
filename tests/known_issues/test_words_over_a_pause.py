"""The bundled model wrote one word of 21 s: it reads no space behind 20 s of faint noise."""

import numpy as np
import pytest

from nearfuture.audio import read
from nearfuture.decoding import Detokenizer, Endpoint, GreedyDecoder
from nearfuture.runtime import SegmentedTranscript, Stream, Transcript, load
from nearfuture.runtime.bundle import MODELS
from nearfuture.text import Vocabulary

SAID = "seven two zero nine nine one"
NOISE_S = 20


@pytest.fixture(scope="module")
def pcm() -> np.ndarray:
    samples = MODELS.parent / "samples"
    one, other = (read(samples / f"flite-{name}.flac") for name in ("slt-720", "rms-991"))
    noise = 1e-4 * np.random.default_rng(0).standard_normal(NOISE_S * one.rate)
    assert one.rate == other.rate == 8000
    return np.concatenate([one.samples, noise.astype(np.float32), other.samples])


def unspaced(log_probs: np.ndarray, vocabulary: Vocabulary) -> str:
    tokens, _ = GreedyDecoder().step(log_probs, GreedyDecoder().start())
    return vocabulary.decode([token.index for token in tokens])


def test_a_pause_of_20_s_is_between_two_words_in_text_times_and_utterances(
    pcm: np.ndarray,
) -> None:
    model = load("digits")
    manifest = model.manifest
    frames: list[np.ndarray] = []
    heard = [SegmentedTranscript(Transcript.empty(manifest), Endpoint())]

    def hear(heads: dict[int, np.ndarray]) -> None:
        frames.append(heads[19])
        heard.append(heard[-1].step(heads[19], heads[0]))

    stream: Stream = model.stream(on_log_probs=hear)
    for at in range(0, len(pcm), 3001):
        stream.accept(pcm[at : at + 3001])
    final = stream.finish()
    assert "zeronine" in unspaced(np.concatenate(frames), manifest.vocabulary)  # as it was

    assert final.committed == SAID
    assert [word.text for word in final.words] == SAID.split()
    assert max(word.end_ms - word.start_ms for word in final.words) < 1000
    assert final.words[3].start_ms - final.words[2].end_ms > 1000 * NOISE_S
    ended = [one.committed for one in heard if one.ends]
    assert (ended, heard[-1].committed) == (["seven two zero"], " nine nine one")
    tokens, _ = GreedyDecoder().step(np.concatenate(frames), GreedyDecoder().start())
    detokenizer = Detokenizer(manifest.vocabulary, manifest.frame_ms, manifest.centre_ms)
    assert detokenizer.words(tokens) == final.words
