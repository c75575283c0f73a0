"""Bytes of audio as they arrive, as samples: any cut, with or without a WAV header in front."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio import AudioError
from nearfuture.audio.limits import MAX_CHANNELS
from nearfuture.audio.pcm import WIDTHS, Samples, as_float, decode_pcm
from nearfuture.audio.signature import kind, undecided
from nearfuture.audio.wav import MAX_CHUNKS, WavHeader, wav_header
from nearfuture.serving.errors import RequestError
from nearfuture.serving.json_fields import as_rate, brief

ENCODINGS = {name: WIDTHS[name] for name in ("int16", "float32", "mulaw", "alaw")}
"""What raw audio may be, little-endian, one channel, and how many bytes a sample takes."""

_TEXT_BYTES = 64  # so many bytes of ASCII are no samples of 16 or 32 bits
_MAX_HEADER_BYTES = 1 << 16
_PIECE_BYTES = 1 << 12
_NOTHING = np.zeros(0, np.int16)


@dataclass(frozen=True)
class _PcmFormat:
    """The encoding of the samples of a WAV file."""

    encoding: str
    rate: int
    channels: int

    def __str__(self) -> str:
        return f"{self.encoding}, {self.rate} Hz, channels: {self.channels}"


class PcmReader:
    r"""Turns messages of audio into samples, whatever their borders.

    What does not begin with a WAV header is raw, one channel, little-endian, in `encoding`. A
    header, which may be cut anywhere too, says all that itself; several channels are averaged
    (left and right of opposite sign cancel out: send one of them). What
    a WAV has behind its samples is skipped, until another WAV of the same kind follows. No more is
    held than a header, a sample, or what could be the first frame of an MP3.

    Args:
        encoding: of raw audio, one of `ENCODINGS`.
        rate: of raw audio, in samples per second.

    Attributes:
        rate: that of the header, once one has been read.
        encoding: likewise.

    Raises:
        RequestError: for another encoding.

    >>> reader = PcmReader("int16", rate=8000)
    >>> [reader.read(part).tolist() for part in (b"\x01", b"\x00\x02", b"\x00" * 13, b"\x09\x00")]
    [[], [], [1, 2, 0, 0, 0, 0, 0, 0], [9]]
    """

    def __init__(self, encoding: str = "int16", *, rate: int) -> None:
        if encoding not in ENCODINGS:
            raise RequestError(
                "invalid",
                f"encoding is {brief(encoding)}: raw audio is {', '.join(ENCODINGS)}, one channel, "
                f"little-endian; a WAV header has its own",
                "encoding",
            )
        self.encoding, self.rate = encoding, rate
        self._buffer = b""
        self._state: Literal["start", "samples", "trailer"] = "start"
        self._wav: _PcmFormat | None = None
        self._remaining: int | None = None  # bytes of samples of a WAV that says how many it has
        self._skip = 0  # bytes behind them that are skipped next
        self._chunks = 0  # behind them, so far

    def read(self, data: bytes) -> Samples:
        """Return the samples that these bytes complete: (n,) int16 or float32, n ≥ 0.

        Raises:
            RequestError: for a file that is no WAV, for text, for a WAV that is none of the usual
                kinds, and for one that is of another kind than the one before.
        """
        # Each WAV and each chunk copies what is held: of a large message that is little at a time.
        parts: list[NDArray[Any]] = []
        for begin in range(0, len(data) or 1, _PIECE_BYTES):
            self._buffer += data[begin : begin + _PIECE_BYTES]
            parts += [part for part in self._complete() if len(part)]
        return np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else _NOTHING

    async def read_in_turns(self, data: bytes) -> Samples:
        """Return what `read` does; between the pieces of a large message others have their turn.

        A message of a megabyte has room for twenty thousand headers.

        Raises:
            RequestError: as `read`.
        """
        parts: list[NDArray[Any]] = []
        for begin in range(0, len(data) or 1, _PIECE_BYTES):
            if begin:
                await asyncio.sleep(0)
            if len(part := self.read(data[begin : begin + _PIECE_BYTES])):
                parts.append(part)
        return np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else _NOTHING

    def finish(self) -> Samples:
        """Return the samples of a few last bytes that could have begun a file, and do not."""
        if self._state != "start" or not self._buffer or kind(self._buffer) == "WAV":
            return _NOTHING
        self._state = "samples"
        return self.read(b"")

    def _complete(self) -> Iterator[Samples]:
        """Yield the samples that the buffer completes."""
        while True:
            if self._state == "start":
                if self._undecided():
                    return
                self._state = "samples"
            elif self._state == "samples":
                yield self._samples()
                if self._remaining != 0:
                    return
                self._state = "trailer"
            elif not self._skip_to_next_wav():
                return
            else:
                self._state = "start"

    def _undecided(self) -> bool:
        """Return whether the buffer may still become a header; remove a whole one."""
        if undecided(self._buffer):
            return True
        signature = kind(self._buffer)
        if (
            signature is None
            and self.encoding in ("int16", "float32")
            and _is_text(self._buffer[:_TEXT_BYTES])
        ):
            if len(self._buffer) < _TEXT_BYTES:
                return True
            raise RequestError(
                "bad_audio",
                f"this is text, {brief(self._buffer[:40].decode())}, and no audio: send the bytes "
                f"of the samples themselves, not base64 or a name",
            )
        if signature is None:
            return False
        if signature != "WAV":
            raise RequestError(
                "bad_audio",
                f"this audio is {signature}, which cannot be read as it comes: send raw samples or "
                f"WAV, or the whole file to /v1/audio/transcriptions",
            )
        try:
            header = wav_header(io.BytesIO(self._buffer), longest=_MAX_HEADER_BYTES)
        except AudioError as error:
            raise RequestError("bad_audio", str(error)) from error
        if header is None:
            if len(self._buffer) > _MAX_HEADER_BYTES:
                raise RequestError(
                    "bad_audio",
                    f"the WAV header has {_MAX_HEADER_BYTES} bytes and no samples behind it: send "
                    f"the samples alone",
                )
            return True
        form, size = _format(header), header.announced
        if self._wav not in (None, form):
            raise RequestError(
                "bad_audio",
                f"a WAV ({form}) follows one of another kind ({self._wav}): open a stream for each",
            )
        self._wav, self._remaining = form, size
        self._skip = 0 if size is None else size % 2  # chunks begin at even places
        self._chunks = 0
        self.encoding, self.rate = form.encoding, form.rate
        self._buffer = self._buffer[header.begin :]
        return False

    def _samples(self) -> Samples:
        """Return the samples in the buffer, as far as they are whole."""
        channels = 1 if self._wav is None else self._wav.channels
        width = WIDTHS[self.encoding] * channels
        size = (
            len(self._buffer)
            if self._remaining is None
            else min(self._remaining, len(self._buffer))
        )
        whole = size - size % width
        ready, self._buffer = self._buffer[:whole], self._buffer[whole:]
        if self._remaining is not None:
            self._remaining -= whole
            if self._remaining < width:  # no sample, but a part of one
                self._remaining, self._skip = 0, self._skip + self._remaining
        samples = decode_pcm(ready, self.encoding)
        if channels > 1:
            samples = as_float(samples).reshape(-1, channels).mean(axis=1, dtype=np.float32)
        return samples

    def _skip_to_next_wav(self) -> bool:
        """Skip what is behind the samples of a WAV; return whether another WAV begins."""
        while True:
            skipped = min(self._skip, len(self._buffer))
            self._buffer, self._skip = self._buffer[skipped:], self._skip - skipped
            if len(self._buffer) < 12:
                return False
            name, size = self._buffer[:4], int.from_bytes(self._buffer[4:8], "little")
            if name == b"RIFF" and self._buffer[8:12] == b"WAVE":
                return True
            self._chunks += 1
            if self._chunks > MAX_CHUNKS:
                raise RequestError(
                    "bad_audio", f"the WAV has more than {MAX_CHUNKS} chunks behind its samples"
                )
            if not all(32 <= byte < 127 for byte in name):
                size = 1 << 62  # no chunk: its kind and its end are unknown
            self._skip = 8 + size + size % 2


def _is_text(data: bytes) -> bool:
    return all(32 <= byte < 127 or byte in b"\t\r\n" for byte in data)


def _format(header: WavHeader) -> _PcmFormat:
    if header.encoding is None or not 1 <= header.channels <= MAX_CHANNELS:
        raise RequestError(
            "bad_audio",
            f"the WAV has format {header.tag} with {header.bits} bits and {header.channels} "
            f"channels: PCM of 8 to 32 bits, float, A-law or mu-law of 1 to {MAX_CHANNELS} "
            f"channels is expected",
        )
    rate = as_rate(header.rate, code="bad_audio")
    return _PcmFormat(header.encoding, rate, header.channels)
