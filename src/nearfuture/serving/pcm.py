"""Bytes as they come over a wire, as samples: any cut, with or without a WAV header in front."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio import AudioError
from nearfuture.audio.limits import HIGHEST_RATE, LOWEST_RATE, MOST_CHANNELS
from nearfuture.audio.pcm import WIDTHS, Samples, as_float, decode_pcm
from nearfuture.audio.signature import kind, undecided
from nearfuture.audio.wav import MOST_CHUNKS, WavHeader, wav_header
from nearfuture.serving.limits import Refused, shown

ENCODINGS = {name: WIDTHS[name] for name in ("int16", "float32", "mulaw", "alaw")}
"""What raw audio may be, little-endian, one channel, and how many bytes a sample takes."""

_TEXT = 64  # so many bytes of ASCII are no samples of 16 or 32 bits
_LARGEST_HEADER = 1 << 16
_PIECE = 1 << 12
_NOTHING = np.zeros(0, np.int16)


def as_rate(value: Any) -> int:
    """A sample rate as a client names it.

    Raises:
        Refused: unless it is a whole number from 4000 to 192000.

    >>> as_rate(8000), as_rate(44100.0)
    (8000, 44100)
    """
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole or not LOWEST_RATE <= value <= HIGHEST_RATE:
        raise Refused(
            "bad_request",
            f"rate is {shown(value)}: a whole number of samples per second from {LOWEST_RATE} "
            f"to {HIGHEST_RATE} is wanted",
        )
    return int(value)


def json_text(data: bytes) -> str | None:
    """The text of a binary message that is a JSON object; None for audio.

    >>> json_text(b'{"eof" : 1}'), json_text(bytes(320))
    ('{"eof" : 1}', None)
    """
    if not data.startswith(b"{"):
        return None
    try:
        text = data.decode()
        return text if isinstance(json.loads(text), dict) else None
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True)
class _Format:
    """What a WAV header says of its samples."""

    encoding: str
    rate: int
    channels: int

    def __str__(self) -> str:
        return f"{self.encoding}, {self.rate} Hz, channels: {self.channels}"


class PcmReader:
    r"""Turns messages of audio into samples, whatever their borders.

    What does not begin with a WAV header is raw, one channel, little-endian, in `encoding`. A
    header, which may be cut anywhere too, says all that itself; several channels are averaged. What
    a WAV has behind its samples is left out, until another WAV of the same kind follows. No more is
    held than a header, a sample, or what could be the first frame of an MP3.

    Args:
        encoding: of raw audio, one of `ENCODINGS`.
        rate: of raw audio, in samples per second.

    Attributes:
        rate: that of the header, once one has been read.
        encoding: likewise.

    Raises:
        Refused: for another encoding.

    >>> reader = PcmReader("int16", rate=8000)
    >>> [reader.read(part).tolist() for part in (b"\x01", b"\x00\x02", b"\x00" * 13, b"\x09\x00")]
    [[], [], [1, 2, 0, 0, 0, 0, 0, 0], [9]]
    """

    def __init__(self, encoding: str = "int16", *, rate: int) -> None:
        if encoding not in ENCODINGS:
            raise Refused(
                "bad_request",
                f"encoding is {shown(encoding)}: raw audio is {', '.join(ENCODINGS)}, one channel, "
                f"little-endian; a WAV header says its own",
            )
        self.encoding, self.rate = encoding, rate
        self._held = b""
        self._place: Literal["start", "samples", "behind"] = "start"
        self._wav: _Format | None = None
        self._left: int | None = None  # bytes of samples of a WAV that says how many it has
        self._passed = 0  # bytes behind them that are left out next
        self._chunks = 0  # behind them, so far

    def read(self, data: bytes) -> Samples:
        """The samples that these bytes complete: (n,) int16 or float32, n ≥ 0.

        Raises:
            Refused: for a file that is no WAV, for text, for a WAV that is none of the usual kinds,
                and for one that is of another kind than the one before.
        """
        # Each WAV and each chunk copies what is held: of a large message that is little at a time.
        parts: list[NDArray[Any]] = []
        for begin in range(0, len(data) or 1, _PIECE):
            self._held += data[begin : begin + _PIECE]
            parts += [part for part in self._complete() if len(part)]
        return np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else _NOTHING

    def finish(self) -> Samples:
        """The samples of a few last bytes that could have begun a file, and do not."""
        if self._place != "start" or not self._held or kind(self._held) == "WAV":
            return _NOTHING
        self._place = "samples"
        return self.read(b"")

    def _complete(self) -> Iterator[Samples]:
        """The samples that what is held completes."""
        while True:
            if self._place == "start":
                if self._undecided():
                    return
                self._place = "samples"
            elif self._place == "samples":
                yield self._samples()
                if self._left != 0:
                    return
                self._place = "behind"
            elif not self._at_next():
                return
            else:
                self._place = "start"

    def _undecided(self) -> bool:
        """Whether what is held may still become a header; takes a whole one off."""
        if undecided(self._held):
            return True
        found = kind(self._held)
        if found is None and self.encoding in ("int16", "float32") and _is_text(self._held[:_TEXT]):
            if len(self._held) < _TEXT:
                return True
            raise Refused(
                "bad_audio",
                f"this is text, {shown(self._held[:40].decode())}, and no audio: send the bytes of "
                f"the samples themselves, not base64 or a name",
            )
        if found is None:
            return False
        if found != "WAV":
            raise Refused(
                "bad_audio",
                f"this audio is {found}, which cannot be read as it comes: send raw samples or "
                f"WAV, or the whole file to /v1/audio/transcriptions",
            )
        try:
            header = wav_header(io.BytesIO(self._held), longest=_LARGEST_HEADER)
        except AudioError as error:
            raise Refused("bad_audio", str(error)) from error
        if header is None:
            if len(self._held) > _LARGEST_HEADER:
                raise Refused(
                    "bad_audio",
                    f"the WAV header has {_LARGEST_HEADER} bytes and no samples behind it: send "
                    f"the samples alone",
                )
            return True
        form, size = _format(header), header.announced
        if self._wav not in (None, form):
            raise Refused(
                "bad_audio",
                f"a WAV ({form}) follows one of another kind ({self._wav}): open a stream for each",
            )
        self._wav, self._left = form, size
        self._passed = 0 if size is None else size % 2  # chunks begin at even places
        self._chunks = 0
        self.encoding, self.rate = form.encoding, form.rate
        self._held = self._held[header.begin :]
        return False

    def _samples(self) -> Samples:
        """The samples that are held, as far as they are whole."""
        channels = 1 if self._wav is None else self._wav.channels
        width = WIDTHS[self.encoding] * channels
        size = len(self._held) if self._left is None else min(self._left, len(self._held))
        whole = size - size % width
        ready, self._held = self._held[:whole], self._held[whole:]
        if self._left is not None:
            self._left -= whole
            if self._left < width:  # no sample, but a part of one
                self._left, self._passed = 0, self._passed + self._left
        samples = decode_pcm(ready, self.encoding)
        if channels > 1:
            samples = as_float(samples).reshape(-1, channels).mean(axis=1, dtype=np.float32)
        return samples

    def _at_next(self) -> bool:
        """Leave out what is behind the samples of a WAV; whether another WAV begins."""
        while True:
            passed = min(self._passed, len(self._held))
            self._held, self._passed = self._held[passed:], self._passed - passed
            if len(self._held) < 12:
                return False
            name, size = self._held[:4], int.from_bytes(self._held[4:8], "little")
            if name == b"RIFF" and self._held[8:12] == b"WAVE":
                return True
            self._chunks += 1
            if self._chunks > MOST_CHUNKS:
                raise Refused(
                    "bad_audio", f"the WAV has more than {MOST_CHUNKS} chunks behind its samples"
                )
            if not all(32 <= byte < 127 for byte in name):
                size = 1 << 62  # no chunk: nobody knows what this is, or where it ends
            self._passed = 8 + size + size % 2


def _is_text(data: bytes) -> bool:
    return all(32 <= byte < 127 or byte in b"\t\r\n" for byte in data)


def _format(header: WavHeader) -> _Format:
    if header.encoding is None or not 1 <= header.channels <= MOST_CHANNELS:
        raise Refused(
            "bad_audio",
            f"the WAV has format {header.tag} with {header.bits} bits and {header.channels} "
            f"channels: PCM of 8 to 32 bits, float, A-law or mu-law of 1 to {MOST_CHANNELS} "
            f"channels is wanted",
        )
    return _Format(header.encoding, as_rate(header.rate), header.channels)
