"""A model by name or path, with a latency budget: where users begin."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import perf_counter
from typing import TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfuture.audio import Audio, AudioSource, open_audio, resample_blocks
from nearfuture.budget import Latency, largest_lookahead
from nearfuture.decoding import Endpoint
from nearfuture.error import NearfutureError
from nearfuture.runtime.bundle import Bundle
from nearfuture.runtime.decoder import Event
from nearfuture.runtime.engine import (
    Engine,
    OfflineEngine,
    choose_precision,
    refuse_bidirectional,
)
from nearfuture.runtime.manifest import Manifest
from nearfuture.runtime.offline import offline_log_probs
from nearfuture.runtime.pcm import as_samples
from nearfuture.runtime.precision import FLOAT32
from nearfuture.runtime.segmented_transcript import SegmentedTranscript
from nearfuture.runtime.stream import Stream
from nearfuture.runtime.stream_config import Budget, LogProbsHook, StreamConfig
from nearfuture.runtime.transcript import Transcript
from nearfuture.runtime.transcription import TranscribedUtterance, Transcription

Source = AudioSource | Audio | ArrayLike
"""A recording in any form that `Model.transcribe` takes."""

_ENDPOINT = Endpoint()


def load(source: str | Path, budget_ms: float | None = None, *, precision: str = FLOAT32) -> Model:
    """Load a model and choose its lookahead by a latency budget.

    Args:
        source: name of a model that comes with this package, or the path of a bundle.
        budget_ms: worst-case algorithmic latency allowed, everything included; the model's largest
            lookahead, its most accurate head, unless given.
        precision: of the graphs: `float32`, or one of the bundle's `manifest.precisions`, which say
            how far they are from it; `auto` is the fastest of them that this processor offers.

    Raises:
        NearfutureError: if the bundle cannot be opened, has no graphs in this precision, this
            processor does not offer it, or no head keeps the budget; the message names the way out.
    """
    return Model(Bundle.open(source), budget_ms=budget_ms, precision=precision)


class Model:
    """A model that is ready to run within its budget; made by `load`.

    Args:
        bundle: the files of the model.
        budget_ms: as for `load`.
        precision: as for `load`.

    Attributes:
        manifest: the description of the bundle.

    Raises:
        NearfutureError: where no head keeps the budget, or the bundle has no such precision.
    """

    def __init__(
        self, bundle: Bundle, *, budget_ms: float | None = None, precision: str = FLOAT32
    ) -> None:
        self.manifest: Manifest = bundle.manifest
        self._bundle = bundle
        self._budget_ms = budget_ms
        self._engine: Engine | None = None
        self._offline: OfflineEngine | None = None
        if self.manifest.kind == "streaming":
            self._config()
            self._engine = Engine(bundle, precision=precision)
        else:
            if budget_ms is not None:
                largest_lookahead(budget_ms, {0: math.inf})  # says why no budget can be kept
            choose_precision(bundle, precision)
            self._offline = OfflineEngine(bundle)

    def __repr__(self) -> str:
        """Return the name of the model, and its promise.

        >>> load("digits", budget_ms=400)
        <Model 'digits': streaming, at most 375 ms>
        """
        promise = f", at most {self.budget.worst_ms:g} ms" if self._engine else ""
        return f"<Model {self.manifest.name!r}: {self.manifest.kind}{promise}>"

    @property
    def rate(self) -> int:
        """Samples per second that the model takes; audio at other rates is resampled."""
        return self.manifest.rate

    @property
    def budget(self) -> Budget:
        """The promise for audio at the model's own rate."""
        if self._engine is None:
            return Budget(None, math.inf)
        return self._config().budget

    @property
    def budgets(self) -> dict[int, Latency]:
        """Every lookahead of the model, with its latency for audio at its own rate; maybe none."""
        return dict(self.manifest.heads)

    def latency(self, rate: int | None = None) -> Latency | None:
        """Return the algorithmic latency for audio at `rate`, itemised, with the live resampler.

        It is None for a bidirectional model, which waits for the end of the recording.

        Raises:
            NearfutureError: where no head keeps the budget at this rate.
        """
        if self._engine is None:
            return None
        return self._config(rate).latency

    def stream(
        self,
        rate: int | None = None,
        *,
        endpoint: Endpoint | None = None,
        on_log_probs: LogProbsHook | None = None,
    ) -> Stream:
        """Begin a stream, with the largest lookahead that keeps the budget at this rate.

        Args:
            rate: samples per second of the stream's audio; by default the model's own.
            endpoint: divides the text into utterances; without it the text is one utterance.
            on_log_probs: called after each step with the new log-probabilities of every head.

        Raises:
            NotStreamable: for a bidirectional model.
            NearfutureError: where no head keeps the budget once the resampler is counted.
        """
        refuse_bidirectional(self._bundle)
        assert self._engine is not None
        config = self._config(rate, endpoint=endpoint, on_log_probs=on_log_probs)
        return Stream(self._engine, config)

    def transcribe(
        self, source: Source, rate: int | None = None, *, endpoint: Endpoint | None = _ENDPOINT
    ) -> Transcription:
        """Transcribe a whole recording.

        A streaming model computes it as it would live, through the same resampler, so the text is
        the same. A bidirectional model computes all of it at once; of more than three minutes,
        three minutes at a time, with 20 seconds of context on either side.

        Args:
            source: the path of a file, its bytes, a file that is open in binary mode, what
                `nearfuture.audio.read` gives, or an array of samples: (n,) floating point in
                [-1, 1] or int16.
            rate: samples per second of an array; by default the model's own.
            endpoint: divides the text into utterances; where it is None, the text is one utterance.

        Raises:
            AudioError: for a file that cannot be read, or not to its end.
            NearfutureError: for samples of another kind or not finite, and for a rate beside a file
                that has its own.

        >>> transcription = load("digits").transcribe(np.zeros(8000))
        >>> transcription.text, transcription.words, transcription.audio_ms
        ('', (), 1000.0)
        """
        began = perf_counter()
        if _is_file(source):
            with open_audio(source) as reader:
                reader.check()
                rate = _check_rate(rate, reader.rate)
                blocks = reader.blocks(rate)
                utterances = tuple(self.utterances(blocks, rate, endpoint=endpoint))
                reader.check()
                count = reader.at
        else:
            if isinstance(source, Audio):
                rate, samples = _check_rate(rate, source.rate), source.samples
            else:
                rate = self.rate if rate is None else rate
                samples = as_samples(cast(ArrayLike, source))
            utterances = tuple(self.utterances([samples], rate, endpoint=endpoint))
            count = len(samples)
        return Transcription(
            utterances, 1000 * count / rate, compute_ms=1000 * (perf_counter() - began)
        )

    def utterances(
        self,
        blocks: Iterable[ArrayLike],
        rate: int | None = None,
        *,
        endpoint: Endpoint | None = _ENDPOINT,
    ) -> Iterator[TranscribedUtterance]:
        """Transcribe a recording that comes in blocks; yield each utterance as it ends.

        All of them are what `transcribe` returns. The sizes of the blocks change nothing, and
        memory does not grow with the length of the recording.

        Args:
            blocks: (n,) floating point in [-1, 1] or int16, one behind another.
            rate: samples per second of the blocks; by default the model's own.
            endpoint: as for `transcribe`.

        Raises:
            NearfutureError: as for `transcribe`.
        """
        rate = self.rate if rate is None else rate
        if self._offline is None:
            stream = self.stream(rate, endpoint=endpoint)
            for second in _seconds(blocks, rate):
                for event in stream.accept(second):
                    if event.ends:
                        yield _utterance(event)
            if (last := stream.finish()).words:
                yield _utterance(last)
            return
        transcript = SegmentedTranscript(Transcript.empty(self.manifest), endpoint)
        for log_probs in self._offline_log_probs(blocks, rate):
            for frame in [log_probs] if endpoint is None else log_probs[:, None]:
                transcript = transcript.step(frame)
                if transcript.ends:
                    yield _utterance(transcript)
        if transcript.words and not transcript.ends:
            yield _utterance(transcript)

    def log_probs(self, samples: ArrayLike, rate: int | None = None) -> NDArray[np.float32]:
        """Compute the log-probabilities that `transcribe` decodes, for other uses of them.

        Args:
            samples: (n,) floating point in [-1, 1] or int16.
            rate: samples per second; by default the model's own.

        Returns:
            (T, V): T frames, one every `manifest.frame_ms`, with the blank and behind it the
            symbols of `manifest.vocabulary`; of a streaming model's heads the one that commits.

        Raises:
            NearfutureError: for samples of another kind or not finite.

        >>> load("digits-bidirectional").log_probs(np.zeros(8000)).shape
        (24, 17)
        """
        return np.concatenate(list(self.log_prob_blocks([samples], rate)))

    def log_prob_blocks(
        self, blocks: Iterable[ArrayLike], rate: int | None = None
    ) -> Iterator[NDArray[np.float32]]:
        """Compute the log-probabilities of a recording that comes in blocks, as they are final.

        All of them, one behind another, are what `log_probs` returns. Memory does not grow with
        the length of the recording.

        Args:
            blocks: (n,) floating point in [-1, 1] or int16, one behind another.
            rate: samples per second of the blocks; by default the model's own.

        Raises:
            NearfutureError: for samples of another kind or not finite.
        """
        rate = self.rate if rate is None else rate
        if self._offline is not None:
            yield from self._offline_log_probs(blocks, rate)
            return
        lookahead = self._config(rate).lookahead
        parts: list[NDArray[np.float32]] = []
        stream = self.stream(rate, on_log_probs=lambda heads: parts.append(heads[lookahead]))
        for second in _seconds(blocks, rate):
            stream.accept(second)
            yield from parts
            parts.clear()
        stream.finish()
        yield from parts

    def _offline_log_probs(
        self, blocks: Iterable[ArrayLike], rate: int
    ) -> Iterator[NDArray[np.float32]]:
        assert self._offline is not None
        resampled = resample_blocks(map(as_samples, blocks), rate, self.rate)
        return offline_log_probs(self._offline, self.manifest, resampled)

    def _config(
        self,
        rate: int | None = None,
        *,
        endpoint: Endpoint | None = None,
        on_log_probs: LogProbsHook | None = None,
    ) -> StreamConfig:
        return StreamConfig.choose(
            self.manifest, rate, self._budget_ms, endpoint=endpoint, on_log_probs=on_log_probs
        )


def _seconds(blocks: Iterable[ArrayLike], rate: int) -> Iterator[NDArray[np.float32]]:
    """Yield the samples second by second, so that memory holds the events of a second only."""
    for block in blocks:
        pcm = as_samples(block)
        for at in range(0, len(pcm), rate):
            yield pcm[at : at + rate]


def _utterance(ended: Event | SegmentedTranscript) -> TranscribedUtterance:
    return TranscribedUtterance(ended.committed.strip(), ended.words, ended.continues)


def _is_file(source: Source) -> TypeGuard[AudioSource]:
    """Tell files, which must be decoded, from samples."""
    kinds = (str, os.PathLike, bytes, bytearray, memoryview)
    return isinstance(source, kinds) or hasattr(source, "read")


def _check_rate(rate: int | None, own_rate: int) -> int:
    """Return the rate that a recording states, and refuse another one beside it."""
    if rate not in (None, own_rate):
        raise NearfutureError(
            f"`rate` is for arrays: this recording has {own_rate} Hz, not {rate}",
            code="conflict",
            parameter="rate",
        )
    return own_rate
