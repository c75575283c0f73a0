"""What `transcribe` writes of one recording, in every format: piece by piece, where it can."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfuture.text.subtitles import srt, vtt
from nearfuture.text.timed import ctm, described, textgrid

if TYPE_CHECKING:
    from nearfuture.audio import AudioReader
    from nearfuture.decoding import Word
    from nearfuture.runtime import Model, TranscribedUtterance

FORMATS = ("txt", "srt", "vtt", "json", "ctm", "textgrid")


@dataclass(frozen=True)
class Transcript:
    """The text of one recording as it comes.

    Args:
        name: of the recording.
        stem: its name without folder and suffix.
        model: that hears it.
        reader: it, open; how long it is, is known when all of it has been read.
        utterances: what is said, as it comes.
    """

    name: str
    stem: str
    model: "Model"
    reader: "AudioReader"
    utterances: Iterator["TranscribedUtterance"]

    def pieces(self, form: str, *, named: bool = False) -> Iterator[str]:
        """The text in a format, as soon as it is known.

        Args:
            form: one of `FORMATS`.
            named: each line of plain text says which recording it is of.
        """
        match form:
            case "srt":
                return srt(self._words())
            case "vtt":
                return vtt(self._words())
            case "ctm":
                return ctm(self._words(), name=self.stem)
            case "textgrid":
                return self._textgrid()
            case "json":
                return self._json()
        return self._lines(f"{self.name}: " if named else "")

    @property
    def read_ms(self) -> float:
        """How much of it has been read."""
        return 1000 * self.reader.at / self.reader.rate

    def _words(self) -> Iterator["Word"]:
        from nearfuture.decoding import join_words

        return join_words((one.words, one.continues) for one in self.utterances)

    def _lines(self, prefix: str) -> Iterator[str]:
        for utterance in self.utterances:
            yield f"{prefix}{utterance.text}\n"

    def _textgrid(self) -> Iterator[str]:
        words = list(self._words())
        yield textgrid({"words": words}, duration_ms=self.read_ms)

    def _json(self) -> Iterator[str]:
        from nearfuture.runtime import Transcription

        heard = Transcription(tuple(self.utterances), self.read_ms, 0.0)
        latency = self.model.latency(self.reader.rate)
        told = {
            "file": self.name,
            "text": heard.text,
            "utterances": [
                {
                    "text": utterance.text,
                    "start_ms": round(utterance.start_ms, 1),
                    "end_ms": round(utterance.end_ms, 1),
                }
                for utterance in heard.utterances
            ],
            "words": [described(word) for word in heard.words],
            "audio_ms": round(heard.audio_ms, 1),
            "latency_ms": None
            if latency is None
            else {
                "worst": latency.worst_ms,
                "mean": latency.mean_ms,
                "items": {item.name: item.ms for item in latency.items},
            },
        }
        yield json.dumps(told, ensure_ascii=False) + "\n"
