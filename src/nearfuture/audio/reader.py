"""The one reader of recordings: files, bytes, open files and pipes, block by block."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import BinaryIO, Self, cast

import numpy as np
import soundfile
from numpy.typing import NDArray

from nearfuture.audio.container import DEMUXERS, has_media
from nearfuture.audio.decoder import ContainerDecoder, Decoder, PcmDecoder, SndfileDecoder
from nearfuture.audio.error import AudioError, CutOff, Damage
from nearfuture.audio.limits import BLOCK_SAMPLES, check_form, check_levels
from nearfuture.audio.mixdown import Mixdown
from nearfuture.audio.mpeg import behind_tags
from nearfuture.audio.signature import LONGEST, kind
from nearfuture.audio.source import AudioSource, Source, open_source, spooled
from nearfuture.audio.stretches import cut_off_media, stretches
from nearfuture.audio.wav import WavHeader, is_wav, wav_header
from nearfuture.audio.window import Bytes, Window

_LONGEST_HEADER = 1 << 20  # of a WAV in a pipe
_SIGNATURE = 12
_ASF = "Windows Media"

Block = NDArray[np.float32]


def open_audio(source: AudioSource) -> AudioReader:
    """Open a recording to read it block by block, in memory that does not grow with it.

    WAV (8 to 32 bit, float, A-law, µ-law, extensible, streamed headers with lengths of 0 or
    0xFFFFFFFF), FLAC, Ogg Vorbis and Opus, MP3, and what else libsndfile knows; with the extra
    `media` MPEG-4 (m4a, mp4, 3gp), WebM, Matroska, Windows Media (wma), AAC and AMR. Files that
    stand behind one another in one are read all. A WAV comes out of a pipe as it arrives; a pipe
    with anything else is copied to the disk first.

    Args:
        source: a path, the bytes of a file, or an open binary file or pipe, from where it stands;
            it is not closed.

    Raises:
        AudioError: if there is no such file or it may not be read, if it is empty or no audio, or
            has more channels or another rate than can be read.

    >>> file = io.BytesIO()
    >>> soundfile.write(file, np.zeros((20_000, 2)), 8000, format="FLAC")
    >>> with open_audio(file.getvalue()) as reader:
    ...     print(reader.rate, reader.channels, [len(block) for block in reader.blocks(8000)])
    ...     print(reader.damage)
    8000 2 [8000, 8000, 4000]
    None
    """
    with ExitStack() as stack:
        opened = open_source(source, stack)
        decoders = _decoders(opened, stack)
        return AudioReader(opened.name, decoders, stack.pop_all())


class AudioReader:
    """A recording that is being read; made by `open_audio`, and a context manager.

    Attributes:
        name: what it is called in messages.
        rate: samples per second.
        channels: number of channels.
        frames: samples of each channel; None where only reading can tell, and in a pipe.
        floats: whether they are stored as floats, so that levels may be anything.
        at: how many samples of each channel have been read.
        damage: why something is missing, where that is known; all is known once all is read.
        mixdown: how its channels are mixed; None before the first block.
    """

    def __init__(self, name: str, opened: _Opened, stack: ExitStack) -> None:
        self.name = name
        self._parts, self._known, self._stack = opened.parts, opened.damage, stack
        first = self._parts[0][0]
        self.rate, self.channels = first.rate, first.channels
        self.floats = any(decoder.floats for decoder, _ in self._parts)
        counts = [decoder.frames for decoder, _ in self._parts]
        known = [count for count in counts if count is not None]
        self.frames = sum(known) if len(known) == len(counts) else None
        self.at = 0
        self.damage: Damage | None = self._known
        self.mixdown: Mixdown | None = None
        self._index = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close whatever was opened for it."""
        self._stack.close()

    def blocks(self, frames: int | None = None, *, channel: int | None = None) -> Iterator[Block]:
        """The samples in order, (n,) float32 with full scale [-1, 1].

        Args:
            frames: the most of a block; fewer where there are many channels.
            channel: which channel, from 0; the mean of all unless given, or the loudest where they
                cancel each other: see `Mixdown`, whose second is held back.

        Raises:
            AudioError: where a sample is no finite number or absurdly large (see `check_levels`);
                for a channel that is not there.
        """
        if channel is not None and not 0 <= channel < self.channels:
            raise AudioError(
                f"{self.name} has {self.channels} channels, numbered from 0: there is no channel "
                f"{channel}"
            )
        if channel is not None:
            for block in self.channel_blocks(frames):
                yield block[:, channel].copy()
            return
        if self.channels == 1:
            for block in self.channel_blocks(frames):
                yield block[:, 0]
            return
        mixdown = Mixdown(self.channels, self.rate) if self.mixdown is None else self.mixdown
        self.mixdown = mixdown
        for block in self.channel_blocks(frames):
            yield from _cut(mixdown.step(block), frames)
        yield from _cut(mixdown.finish(), frames)

    def channel_blocks(self, frames: int | None = None) -> Iterator[Block]:
        """The same as `blocks`, with every channel: (n, channels) float32."""
        most = max(1, BLOCK_SAMPLES // self.channels)
        count = most if frames is None else max(1, min(frames, most))
        while self._index < len(self._parts):
            decoder, damage = self._parts[self._index]
            block = decoder.read(count)
            check_levels(block, self.name, first=self.at)
            self.at += len(block)
            if len(block):
                yield _with_channels(block, self.channels)
            if decoder.damage is not None:
                self._stop(decoder.damage)
            elif len(block) == 0:
                decoder.close()
                if damage is not None:
                    self._stop(damage)
                self._index += 1

    def seek(self, frame: int) -> None:
        """Go to a sample, before the first block; where decoding cannot begin there, by reading."""
        begin = 0
        for index, (decoder, _) in enumerate(self._parts):
            if decoder.frames is None or frame < begin + decoder.frames:
                break
            begin += decoder.frames
            self._index = index + 1
        else:
            self.at = begin
            return
        if decoder.seek(frame - begin):
            self.at = frame
            return
        self.at = begin
        while self.at < frame:
            block = decoder.read(min(frame - self.at, BLOCK_SAMPLES // decoder.channels))
            self.at += len(block)
            if len(block) == 0:
                return

    def check(self) -> None:
        """Refuse a recording that is known to be damaged.

        Raises:
            CutOff: saying how and where.
        """
        if self.damage is not None:
            raise CutOff(self.damage.sentence(self.name))

    def _stop(self, damage: Damage) -> None:
        self.damage = Damage(damage.reason, self.at / self.rate)
        self._index = len(self._parts)


def _cut(samples: Block, most: int | None) -> Iterator[Block]:
    """What was held back, in blocks that are no longer than wanted."""
    size = max(1, len(samples) if most is None else most)
    for begin in range(0, len(samples), size):
        yield samples[begin : begin + size]


class _Opened:
    """Decoders one behind the other, each with what is wrong behind it."""

    def __init__(self) -> None:
        self.parts: list[tuple[Decoder, Damage | None]] = []
        self.damage: Damage | None = None

    def add(self, name: str, decoder: Decoder, damage: Damage | None) -> bool:
        """Another one; False where reading must stop before it."""
        check_form(name, decoder.rate, decoder.channels)
        if self.parts and decoder.rate != self.parts[0][0].rate:
            changed = Damage(
                f"changes its rate from {self.parts[0][0].rate} to {decoder.rate} Hz: what follows "
                f"is not read; split it first"
            )
            self.parts[-1] = (self.parts[-1][0], changed)
            self.damage = changed
            return False
        self.parts.append((decoder, damage))
        if damage is not None and self.damage is None:
            self.damage = damage
        return True


def _with_channels(block: Block, channels: int) -> Block:
    """Where a later part has another number of channels: the mean of its own in each."""
    if block.shape[1] == channels:
        return block
    return np.repeat(block.mean(axis=1, keepdims=True, dtype=np.float32), channels, axis=1)


def _decoders(source: Source, stack: ExitStack) -> _Opened:
    if not source.seekable:
        piped = _piped(source)
        if isinstance(piped, _Opened):
            return piped
        source = spooled(source, piped, stack)
    file = source.file
    file.seek(0)
    head = file.read(LONGEST)
    if not head:
        raise AudioError(
            f"{source.name} is empty (0 bytes): a WAV, FLAC, Ogg or MP3 file is wanted"
        )
    form = _form(file, head)
    if form in DEMUXERS:
        return _contained(source, form, stack)
    opened = _Opened()
    for stretch in stretches(file, form):
        decoder: Decoder
        if stretch.wav is not None:
            check_form(source.name, stretch.wav.rate, stretch.wav.channels)
            size = stretch.end - stretch.begin
            window = io.BufferedReader(Window(file, stretch.begin, stretch.end), 1 << 16)
            decoder = PcmDecoder(cast(BinaryIO, window), stretch.wav, size)
        else:
            try:
                decoder = SndfileDecoder(file, stretch)
            except soundfile.LibsndfileError as error:
                damage = Damage(_reason(form, head, error))
                if opened.parts:  # what comes before can be read
                    opened.parts[-1] = (opened.parts[-1][0], damage)
                    opened.damage = opened.damage or damage
                    break
                if stretch.damage is not None:
                    raise CutOff(stretch.damage.sentence(source.name)) from error
                raise AudioError(damage.sentence(source.name)) from error
            stack.callback(decoder.close)
            if opened.parts:
                decoder.close()  # until it is read
        if not opened.add(source.name, decoder, stretch.damage):
            break
    return opened


def _form(file: BinaryIO, head: bytes) -> str | None:
    """What kind of file it is; Ogg and a tag in front may hide others."""
    form = kind(head)
    if form == "Ogg" and head[28:33] == b"\x7fFLAC":
        return "FLAC in Ogg"  # of which libsndfile reads only its own
    if head[:3] == b"ID3":
        data = Bytes(file)
        behind = kind(data.at(behind_tags(data, 0), LONGEST))
        return behind if behind == "AAC" else form
    return form


def _contained(source: Source, form: str, stack: ExitStack) -> _Opened:
    if not has_media():
        raise AudioError(
            f"{source.name} is {form}, which needs the extra media: pip install "
            f"'nearfuture[media]'; or convert it to WAV, FLAC, Ogg or MP3 first"
        )
    whole = source.whole
    if whole is None:
        source.file.seek(0)
        whole = source.file.read()
    decoder = ContainerDecoder(whole, demuxer=DEMUXERS[form], name=f"{source.name} ({form})")
    stack.callback(decoder.close)
    opened = _Opened()
    opened.add(source.name, decoder, cut_off_media(source.file) if form == _ASF else None)
    return opened


def _piped(source: Source) -> _Opened | bytes:
    """A WAV as it arrives, or what was read of something else."""
    pipe = _Behind(b"", source.file)
    begun = b""
    while (len(begun) < _SIGNATURE or is_wav(begun)) and len(begun) < _LONGEST_HEADER:
        try:
            header = wav_header(io.BytesIO(begun), longest=_LONGEST_HEADER)
        except AudioError:
            return begun
        if header is not None:
            if header.encoding is None or not header.rate or not header.channels:
                return begun
            check_form(source.name, header.rate, header.channels)
            rest = _Behind(begun[header.begin :], source.file)
            opened = _Opened()
            decoder = _PipedPcm(cast(BinaryIO, rest), header, header.announced)
            opened.add(source.name, decoder, None)
            return opened
        more = pipe.read(1 << 12)
        if not more:
            break
        begun += more
    return begun


class _Behind:
    """A pipe of which a little has been read already."""

    def __init__(self, begun: bytes, file: BinaryIO) -> None:
        self._begun, self._file = begun, file
        self._more = getattr(file, "read1", file.read)

    def read(self, count: int) -> bytes:
        """What is there, at most so much, and nothing only at the end."""
        if self._begun:
            data, self._begun = self._begun[:count], self._begun[count:]
            return data
        return cast(bytes, self._more(count))


class _PipedPcm(PcmDecoder):
    """Samples out of a pipe: whether all have come is known at the end."""

    def __init__(self, file: BinaryIO, header: WavHeader, size: int | None) -> None:
        super().__init__(file, header, size)
        self.frames, self._announced = None, size

    def read(self, frames: int) -> Block:
        """At most so many samples."""
        block = super().read(frames)
        if len(block) == 0 and self._announced is not None:
            if self.missing:
                there = self._announced - self.missing
                self.damage = Damage(
                    f"was cut off: {there} of {self._announced} bytes of samples are there"
                )
            elif is_wav(self._file.read(12)):
                self.damage = Damage(
                    "holds another recording behind the first, which is not read from a pipe: "
                    "write it to a file first"
                )
        return block


def _reason(form: str | None, head: bytes, error: soundfile.LibsndfileError) -> str:
    """What is found instead of audio, as the rest of a sentence."""
    reason = error.error_string
    if not reason.startswith("Format not recognised"):
        reason = " ".join(reason.removeprefix("Error : ").split()).rstrip(".")
        return f"cannot be decoded ({reason}): it is damaged or was cut off"
    if form is not None:
        way_out = "convert it to WAV, FLAC, Ogg or MP3 first"
        if form.endswith("archive"):
            way_out = "unpack it first"
        elif "Git LFS" in form:
            way_out = "fetch it with git lfs pull"
        return f"is {form}: {way_out}"
    begin = head[:24]
    if all(32 <= byte < 127 or byte in b"\t\r\n" for byte in begin):
        found = f"text, {begin.decode('ascii')!r}…"
    else:
        found = f"bytes {begin[:8].hex(' ')}…"
    return f"is no audio that can be read: found {found}, not WAV, FLAC, Ogg or MP3"
