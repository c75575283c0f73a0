"""The transcript of one recording in every format that `transcribe` writes, as it grows."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nearfuture.text import ctm, srt, textgrid, timed_json, vtt

if TYPE_CHECKING:
    from nearfuture.audio import AudioReader
    from nearfuture.cli.grammar import GrammarTranscriber
    from nearfuture.decoding import Word
    from nearfuture.runtime import Model, TranscribedUtterance

FORMATS = ("txt", "srt", "vtt", "json", "ctm", "textgrid")


@dataclass(frozen=True, kw_only=True)
class FormattedTranscript:
    """The transcript of a recording that is still being read.

    Args:
        name: The name of the recording.
        stem: Its name without folder and suffix.
        model: The model that transcribes it.
        reader: The open recording; its length is known when all of it has been read.
        utterances: The utterances, as they end.
        commands: Where a grammar is searched, what was understood and what was not.
    """

    name: str
    stem: str
    model: "Model"
    reader: "AudioReader"
    utterances: Iterator["TranscribedUtterance"]
    commands: "GrammarTranscriber | None" = None

    def pieces(self, form: str, *, named: bool = False) -> Iterator[str]:
        """Yield the text in a format, as soon as it is known.

        Args:
            form: One of `FORMATS`.
            named: Begin each line of plain text with the name of the recording.
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
        prefix = f"{self.name}: " if named else ""
        return (f"{prefix}{utterance.text}\n" for utterance in self.utterances)

    @property
    def _read_ms(self) -> float:
        return 1000 * self.reader.at / self.reader.rate

    def _words(self) -> Iterator["Word"]:
        from nearfuture.decoding import join_words

        return join_words((utterance.words, utterance.continues) for utterance in self.utterances)

    def _textgrid(self) -> Iterator[str]:
        words = list(self._words())
        yield textgrid({"words": words}, duration_ms=self._read_ms)

    def _json(self) -> Iterator[str]:
        from nearfuture.runtime import Transcription

        transcription = Transcription(tuple(self.utterances), self._read_ms, 0.0)
        latency = self.model.latency(self.reader.rate)
        itemised = latency and {
            "worst": latency.worst_ms,
            "mean": latency.mean_ms,
            "items": {item.name: item.ms for item in latency.items},
        }
        utterances = [
            {
                "text": utterance.text,
                "start_ms": round(utterance.start_ms, 1),
                "end_ms": round(utterance.end_ms, 1),
            }
            for utterance in transcription.utterances
        ]
        row: dict[str, Any] = {
            "file": self.name,
            "text": transcription.text,
            "utterances": utterances,
            "words": [timed_json(word) for word in transcription.words],
            "audio_ms": round(transcription.audio_ms, 1),
            "latency_ms": itemised,
        }
        if self.commands is not None:
            row["commands"] = [command.json() for command in self.commands.spoken]
        # The value of a slot is whatever its YAML says, a date, too.
        yield json.dumps(row, ensure_ascii=False, default=str) + "\n"
