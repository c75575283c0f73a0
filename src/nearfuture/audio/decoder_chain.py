"""Which decoders read a recording: one for each file that stands in it, one behind the other."""

from __future__ import annotations

import io
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import BinaryIO, cast

import soundfile

from nearfuture.audio.container import DEMUXERS, ContainerDecoder, has_media
from nearfuture.audio.decoder import Decoder, PcmDecoder, SndfileDecoder, undecodable
from nearfuture.audio.error import AudioError, Damage, TruncatedAudioError
from nearfuture.audio.input import AudioInput
from nearfuture.audio.limits import check_form
from nearfuture.audio.member import Member
from nearfuture.audio.members import cut_off_media, members
from nearfuture.audio.mpeg import behind_tags
from nearfuture.audio.pipe import open_pipe
from nearfuture.audio.signature import LONGEST, kind
from nearfuture.audio.window import Bytes, Window
from nearfuture.error import Code

_ASF = "Windows Media"


@dataclass(frozen=True)
class ChainedDecoder:
    """A decoder, and why samples are missing behind its own."""

    decoder: Decoder
    damage: Damage | None = None


def open_decoders(source: AudioInput, stack: ExitStack) -> list[ChainedDecoder]:
    """Find out what a recording is, and open the decoders that read it.

    Args:
        source: The recording.
        stack: Closes what is opened here.

    Raises:
        AudioError: as `nearfuture.audio.open_audio`.
    """
    if not source.file.seekable():
        piped = open_pipe(source)
        if not isinstance(piped, bytes):
            return [ChainedDecoder(piped)]
        source = source.to_disk(piped, stack)
    source.file.seek(0)
    head = source.file.read(LONGEST)
    if not head:
        raise AudioError(
            f"{source.name} is empty (0 bytes): a WAV, FLAC, Ogg or MP3 file is expected",
            code="invalid",
        )
    form = _form(source.file, head)
    if form in DEMUXERS:
        return [_open_container(source, form, stack)]
    chain: list[ChainedDecoder] = []
    for member in members(source.file, form):
        try:
            decoder = _open_member(source.file, member)
        except soundfile.LibsndfileError as error:
            audio = not error.error_string.startswith("Format not recognised")
            damage = undecodable(error) if audio else _not_audio(form, head)
            if chain:  # what comes before can be read
                chain[-1] = replace(chain[-1], damage=damage)
                break
            if member.damage is not None:
                raise TruncatedAudioError(member.damage.sentence(source.name)) from error
            code: Code = "damaged" if audio else "unsupported"
            raise AudioError(damage.sentence(source.name), code=code) from error
        stack.callback(decoder.close)
        check_form(source.name, decoder.rate, decoder.channels)
        if chain:
            decoder.close()  # until it is read
            if decoder.rate != (rate := chain[0].decoder.rate):
                damage = Damage(
                    f"changes its rate from {rate} to {decoder.rate} Hz: what follows is not read; "
                    f"split it first"
                )
                chain[-1] = replace(chain[-1], damage=damage)
                break
        chain.append(ChainedDecoder(decoder, member.damage))
    return chain


def _form(file: BinaryIO, head: bytes) -> str | None:
    """Tell the format of a file; Ogg and a tag in front may hide others."""
    form = kind(head)
    if form == "Ogg" and head[28:33] == b"\x7fFLAC":
        return "FLAC in Ogg"  # of which libsndfile reads only its own
    if head[:3] == b"ID3":
        data = Bytes(file)
        tagged = kind(data.at(behind_tags(data, 0), LONGEST))
        return tagged if tagged == "AAC" else form
    return form


def _open_member(file: BinaryIO, member: Member) -> Decoder:
    if member.wav is None:
        return SndfileDecoder(file, member)
    window = io.BufferedReader(Window(file, member.begin, member.end), 1 << 16)
    return PcmDecoder(cast(BinaryIO, window), member.wav, member.end - member.begin)


def _open_container(source: AudioInput, form: str, stack: ExitStack) -> ChainedDecoder:
    if not has_media():
        raise AudioError(
            f"{source.name} is {form}, which needs the extra media: pip install "
            f"'nearfuture[media]'; or convert it to WAV, FLAC, Ogg or MP3 first",
            code="missing_dependency",
        )
    whole = source.whole
    if whole is None:
        source.file.seek(0)
        whole = source.file.read()
    decoder = ContainerDecoder(whole, demuxer=DEMUXERS[form], name=f"{source.name} ({form})")
    stack.callback(decoder.close)
    check_form(source.name, decoder.rate, decoder.channels)
    return ChainedDecoder(decoder, cut_off_media(source.file) if form == _ASF else None)


def _not_audio(form: str | None, head: bytes) -> Damage:
    """Tell what is there instead of a format that libsndfile reads."""
    if form is not None:
        remedy = "convert it to WAV, FLAC, Ogg or MP3 first"
        if form.endswith("archive"):
            remedy = "unpack it first"
        elif "Git LFS" in form:
            remedy = "fetch it with git lfs pull"
        return Damage(f"is {form}: {remedy}")
    begin = head[:24]
    if all(32 <= byte < 127 or byte in b"\t\r\n" for byte in begin):
        content = f"text, {begin.decode('ascii')!r}…"
    else:
        content = f"bytes {begin[:8].hex(' ')}…"
    return Damage(f"is no audio that can be read: found {content}, not WAV, FLAC, Ogg or MP3")
