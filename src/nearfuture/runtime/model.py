"""A model by name or path, with a latency budget: the first thing a user meets."""

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
from nearfuture.runtime.engine import (
    Engine,
    OfflineEngine,
    choose_precision,
    refuse_bidirectional,
)
from nearfuture.runtime.manifest import Manifest
from nearfuture.runtime.offline import offline_log_probs
from nearfuture.runtime.opening import choose, empty_transcript, quanta_of
from nearfuture.runtime.pcm import as_samples
from nearfuture.runtime.precision import FLOAT32
from nearfuture.runtime.reading import Event, LogProbsHook
from nearfuture.runtime.stream import Budget, Stream
from nearfuture.runtime.transcription import TranscribedUtterance, Transcription
from nearfuture.runtime.utterance import Utterances

Source = AudioSource | Audio | ArrayLike
"""A recording as users have it; see `Model.transcribe`."""

_ENDPOINT = Endpoint()


def load(source: str | Path, budget_ms: float | None = None, *, precision: str = FLOAT32) -> Model:
    """Load a model and choose how far it may look ahead.

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
    """A model that runs, with its budget chosen. Made by `load`.

    Args:
        bundle: the files of it.
        budget_ms: as for `load`.
        precision: as for `load`.

    Attributes:
        manifest: what the bundle says about itself.

    Raises:
        NearfutureError: where no head keeps the budget, or the bundle has no such precision.
    """

    def __init__(
        self, bundle: Bundle, *, budget_ms: float | None = None, precision: str = FLOAT32
    ) -> None:
        self.manifest: Manifest = bundle.manifest
        self._bundle = bundle
        self._budget_ms = math.inf if budget_ms is None else budget_ms
        self._engine: Engine | None = None
        self._offline: OfflineEngine | None = None
        if self.manifest.kind == "streaming":
            self._choose(self.rate)
            self._engine = Engine(bundle, precision=precision)
        else:
            if budget_ms is not None:
                largest_lookahead(budget_ms, {0: math.inf})  # says why no budget can be kept
            choose_precision(bundle, precision)
            self._offline = OfflineEngine(bundle)

    def __repr__(self) -> str:
        """Its name, and what it promises.

        >>> load("digits", budget_ms=400)
        <Model 'digits': streaming, at most 375 ms>
        """
        promise = f", at most {self.budget.worst_ms:g} ms" if self._engine else ""
        return f"<Model {self.manifest.name!r}: {self.manifest.kind}{promise}>"

    @property
    def rate(self) -> int:
        """Samples per second that the model hears; other rates are resampled."""
        return self.manifest.rate

    @property
    def budget(self) -> Budget:
        """What it promises for audio at its own rate."""
        if self._engine is None:
            return Budget(None, math.inf)
        frames, latency = self._choose(self.rate)
        return Budget(frames, latency.worst_ms)

    @property
    def budgets(self) -> dict[int, Latency]:
        """Every lookahead it has, with its latency for audio at its own rate; maybe none."""
        return dict(self.manifest.heads)

    def latency(self, rate: int | None = None) -> Latency | None:
        """The algorithmic latency for audio at `rate`, itemised, the live resampler included.

        None for a bidirectional model: nothing but the end of the recording ends its wait.

        Raises:
            NearfutureError: where no head keeps the budget at this rate.
        """
        if self._engine is None:
            return None
        return self._choose(self.rate if rate is None else rate)[1]

    def stream(
        self,
        rate: int | None = None,
        *,
        endpoint: Endpoint | None = None,
        on_log_probs: LogProbsHook | None = None,
    ) -> Stream:
        """A new stream, with the largest lookahead that keeps the budget at this rate.

        Args:
            rate: samples per second of what the stream will be given; the model's own unless given.
            endpoint: divides the text into utterances; it is one, however long, unless given.
            on_log_probs: called after each step with the new log-probabilities of every head.

        Raises:
            NotStreamable: for a bidirectional model.
            NearfutureError: where no head keeps the budget once the resampler is counted.
        """
        refuse_bidirectional(self._bundle)
        assert self._engine is not None
        rate = self.rate if rate is None else rate
        frames, latency = self._choose(rate)
        return Stream(
            self._engine,
            quanta_of(self.manifest, rate),
            empty_transcript(self.manifest),
            latency=latency,
            frames=frames,
            endpoint=endpoint,
            on_log_probs=on_log_probs,
        )

    def transcribe(
        self, source: Source, rate: int | None = None, *, endpoint: Endpoint | None = _ENDPOINT
    ) -> Transcription:
        """The text of a whole recording.

        A streaming model hears it as it would live, through the same resampler, so the text is the
        same; a bidirectional one hears all of it at once, or three minutes at a time, and 20
        seconds on either side of them, where it is longer than that.

        Args:
            source: the path of a file, its bytes, a file that is open in binary mode, what
                `nearfuture.audio.read` gives, or an array of samples: (n,) floating point in
                [-1, 1] or int16.
            rate: samples per second of an array; the model's own unless given.
            endpoint: divides the text into utterances; it is one, however long, where this is None.

        Raises:
            AudioError: for a file that cannot be read, or not to its end.
            NearfutureError: for samples of another kind or not finite, and for a rate beside a file
                that has its own.

        >>> heard = load("digits").transcribe(np.zeros(8000))
        >>> heard.text, heard.words, heard.utterances, heard.audio_ms
        ('', (), (), 1000.0)
        """
        since = perf_counter()
        heard_samples = 0

        def counted(blocks: Iterable[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
            nonlocal heard_samples
            for block in blocks:
                heard_samples += len(block)
                yield block

        if _is_file(source):
            with open_audio(source) as reader:
                reader.check()
                rate = _its_rate(rate, reader.rate)
                blocks = counted(reader.blocks(rate))
                utterances = tuple(self.utterances(blocks, rate, endpoint=endpoint))
                reader.check()
        else:
            if isinstance(source, Audio):
                rate, samples = _its_rate(rate, source.rate), source.samples
            else:
                rate = self.rate if rate is None else rate
                samples = as_samples(cast(ArrayLike, source))
            blocks = counted([samples])
            utterances = tuple(self.utterances(blocks, rate, endpoint=endpoint))
        return Transcription(
            utterances, 1000 * heard_samples / int(rate), compute_ms=1000 * (perf_counter() - since)
        )

    def utterances(
        self,
        blocks: Iterable[ArrayLike],
        rate: int | None = None,
        *,
        endpoint: Endpoint | None = _ENDPOINT,
    ) -> Iterator[TranscribedUtterance]:
        """The utterances of a recording that comes in blocks, each as soon as it has ended.

        Together they are what `transcribe` gives; how the recording is cut changes nothing, and
        memory does not grow with its length.

        Args:
            blocks: (n,) floating point in [-1, 1] or int16, one behind another.
            rate: samples per second of them; the model's own unless given.
            endpoint: as for `transcribe`.

        Raises:
            NearfutureError: as for `transcribe`.
        """
        rate = self.rate if rate is None else rate
        if self._offline is None:
            stream = self.stream(rate, endpoint=endpoint)
            for piece in _pieces(blocks, rate):
                for event in stream.accept(piece):
                    if event.ends:
                        yield _utterance(event)
            if (last := stream.finish()).words:
                yield _utterance(last)
            return
        heard = Utterances(empty_transcript(self.manifest), endpoint)
        for log_probs in self._offline_log_probs(blocks, rate):
            for frame in [log_probs] if endpoint is None else log_probs[:, None]:
                heard = heard.step(frame)
                if heard.ends:
                    yield _utterance(heard)
        if heard.words and not heard.ends:
            yield _utterance(heard)

    def log_probs(self, samples: ArrayLike, rate: int | None = None) -> NDArray[np.float32]:
        """The log-probabilities that `transcribe` reads the text of: for decoders and alignments.

        Args:
            samples: (n,) floating point in [-1, 1] or int16.
            rate: samples per second; the model's own unless given.

        Returns:
            (T, V): T frames, one every `manifest.frame_ms`, and behind the blank the symbols of
            `manifest.vocabulary`; of a streaming model those of the head that commits.

        Raises:
            NearfutureError: for samples of another kind or not finite.

        >>> load("digits-bidirectional").log_probs(np.zeros(8000)).shape
        (24, 17)
        """
        rate = self.rate if rate is None else rate
        if self._offline is not None:
            return np.concatenate(list(self._offline_log_probs([samples], rate)))
        commits, _ = self._choose(rate)
        parts: list[NDArray[np.float32]] = []
        stream = self.stream(rate, on_log_probs=lambda heads: parts.append(heads[commits]))
        for piece in _pieces([samples], rate):
            stream.accept(piece)
        stream.finish()
        return np.concatenate(parts)

    def _offline_log_probs(
        self, blocks: Iterable[ArrayLike], rate: int
    ) -> Iterator[NDArray[np.float32]]:
        assert self._offline is not None
        resampled = resample_blocks(map(as_samples, blocks), rate, self.rate)
        return offline_log_probs(self._offline, self.manifest, resampled)

    def _choose(self, rate: int) -> tuple[int, Latency]:
        """The head that commits for audio at `rate`, and its latency."""
        return choose(self.manifest, rate, self._budget_ms)


def _pieces(blocks: Iterable[ArrayLike], rate: int) -> Iterator[NDArray[np.float32]]:
    """The samples by the second: events of the past are not kept."""
    for block in blocks:
        pcm = as_samples(block)
        for at in range(0, len(pcm), rate):
            yield pcm[at : at + rate]


def _utterance(ended: Event | Utterances) -> TranscribedUtterance:
    return TranscribedUtterance(ended.committed.strip(), ended.words, ended.continues)


def _is_file(source: Source) -> TypeGuard[AudioSource]:
    """Whether it is to be decoded; whatever else there is, is samples."""
    kinds = (str, os.PathLike, bytes, bytearray, memoryview)
    return isinstance(source, kinds) or hasattr(source, "read")


def _its_rate(rate: int | None, own: int) -> int:
    """The rate of a recording that knows its own."""
    if rate not in (None, own):
        raise NearfutureError(
            f"rate={rate} is for arrays: this recording says that it has {own} Hz"
        )
    return own
