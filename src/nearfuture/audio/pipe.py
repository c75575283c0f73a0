"""A WAV out of a pipe, as it arrives."""

from __future__ import annotations

import io
from typing import BinaryIO, cast

from nearfuture.audio.decoder import Block, PcmDecoder
from nearfuture.audio.error import AudioError, Damage
from nearfuture.audio.input import AudioInput
from nearfuture.audio.limits import check_form
from nearfuture.audio.wav import WavHeader, is_wav, wav_header

_LONGEST_HEADER = 1 << 20
_SIGNATURE = 12


def open_pipe(source: AudioInput) -> PipeDecoder | bytes:
    """Read the header of a WAV; if the pipe carries anything else, return what was read.

    Raises:
        AudioError: if the rate or the number of channels is beyond the limits.
    """
    begun = b""
    pipe = _Pipe(source.file)
    while (len(begun) < _SIGNATURE or is_wav(begun)) and len(begun) < _LONGEST_HEADER:
        try:
            header = wav_header(io.BytesIO(begun), longest=_LONGEST_HEADER)
        except AudioError:
            return begun
        if header is not None:
            if not header.readable:
                return begun
            check_form(source.name, header.rate, header.channels)
            return PipeDecoder(_Pipe(source.file, begun[header.begin :]), header)
        more = pipe.read(1 << 12)
        if not more:
            break
        begun += more
    return begun


class PipeDecoder(PcmDecoder):
    """Raw samples out of a pipe; whether all have come is known at the end."""

    def __init__(self, pipe: _Pipe, header: WavHeader) -> None:
        super().__init__(cast(BinaryIO, pipe), header, header.announced)
        self.frames = None

    def read(self, frames: int) -> Block:
        """Read at most so many samples, as soon as there is one."""
        block = super().read(frames)
        if len(block) == 0 and self._size is not None:
            if self.missing:
                received = self._size - self.missing
                self.damage = Damage(
                    f"was cut off: {received} of {self._size} bytes of samples are there"
                )
            elif is_wav(self._file.read(12)):
                self.damage = Damage(
                    "holds another recording behind the first, which is not read from a pipe: "
                    "write it to a file first"
                )
        return block


class _Pipe:
    """A pipe, behind bytes that have been read of it already."""

    def __init__(self, file: BinaryIO, begun: bytes = b"") -> None:
        self._begun = begun
        self._more = getattr(file, "read1", file.read)

    def read(self, count: int) -> bytes:
        """Read at most so many bytes, as soon as there are some; none only at the end."""
        if self._begun:
            data, self._begun = self._begun[:count], self._begun[count:]
            return data
        return cast(bytes, self._more(count))
