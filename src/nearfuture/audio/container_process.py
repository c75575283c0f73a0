"""The process that decodes containers: `python -m nearfuture.audio.container_process`.

It reads requests from its standard input, each a line of JSON (`demuxer`, `channels`: the most, and
`path` or the number of `bytes` that follow), and answers with a line of JSON, blocks of samples
behind their length, an empty one, and a line of JSON. It ends with its input.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import av
import numpy as np
from numpy.typing import NDArray

_CODECS = frozenset(
    (
        *("aac", "aac_latm", "ac3", "eac3", "alac", "flac", "opus", "libopus", "vorbis"),
        *("amrnb", "amrwb", "amr_nb", "amr_wb", "libopencore_amrnb", "libopencore_amrwb"),
        *("mp1", "mp1float", "mp2", "mp2float", "mp3", "mp3float"),
        *("wmalossless", "wmapro", "wmav1", "wmav2", "wmavoice"),
        *("pcm_alaw", "pcm_mulaw", "pcm_s8", "pcm_u8", "pcm_s16le", "pcm_s16be", "pcm_s24le"),
        *("pcm_s24be", "pcm_s32le", "pcm_s32be", "pcm_f32le", "pcm_f32be", "pcm_f64le"),
        *("pcm_f64be", "adpcm_ima_qt", "adpcm_ms"),
    )
)
_MEMORY = 3 << 30
_FILES = 64
_BLOCK = 1 << 18
_SHORT_S = 0.5  # encoders and edit lists leave out or add a little


class _Unreadable(Exception):  # noqa: N818 - not an error of this program
    """A file cannot be read, or not to its end; the message states why."""


def main() -> None:
    """Decode file after file, until standard input ends."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    _limit()
    while line := requests.readline():
        request = json.loads(line)
        size = request.get("bytes")
        source = io.BytesIO(requests.read(size)) if size is not None else None
        try:
            _answer(request, source, answers)
        except BrokenPipeError:
            return


def _limit() -> None:
    """Limit memory and files, so that a decoder that goes wild does not harm the machine."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        for what, most in (
            (resource.RLIMIT_AS, _MEMORY),
            (resource.RLIMIT_NOFILE, _FILES),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, 0),
        ):
            hard = resource.getrlimit(what)[1]
            soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(what, (soft, hard))


def _answer(request: dict[str, Any], source: BinaryIO | None, answers: BinaryIO) -> None:
    begun, damage = False, None
    try:
        with contextlib.ExitStack() as stack:
            file = source or stack.enter_context(Path(request["path"]).open("rb"))
            blocks = _blocks(file, request["demuxer"], request["channels"])
            rate, channels = next(blocks)
            _send(answers, {"rate": rate, "channels": channels})
            begun = True
            for data in filter(None, _gathered(blocks)):
                answers.write(len(data).to_bytes(4, "little") + data)
                answers.flush()
    except _Unreadable as error:
        damage = str(error)
    except (av.FFmpegError, ValueError, MemoryError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        damage = f"cannot be decoded ({_reason(error)}): it is damaged or was cut off"
    if begun:
        answers.write(bytes(4))
        _send(answers, {"damage": damage})
    else:
        _send(answers, {"error": damage or "has no sound"})


def _reason(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:100]


def _gathered(blocks: Iterator[Any]) -> Iterator[bytes]:
    """Join blocks to fewer and larger ones, those before an error included."""
    data = bytearray()
    try:
        for block in blocks:
            data += block.tobytes()
            if len(data) >= _BLOCK:
                yield bytes(data)
                data.clear()
    except Exception:
        yield bytes(data)
        raise
    yield bytes(data)


def _send(answers: BinaryIO, fields: dict[str, Any]) -> None:
    answers.write(json.dumps(fields).encode() + b"\n")
    answers.flush()


def _blocks(file: BinaryIO, demuxer: str, most_channels: int) -> Iterator[Any]:
    """Yield first the rate and the number of channels, then samples, (n, channels)."""
    options = {
        "protocol_whitelist": "none",
        "format_whitelist": demuxer,
        "codec_whitelist": ",".join(sorted(_CODECS)),
    }
    if demuxer == "mov":
        options |= {"enable_drefs": "0", "use_absolute_path": "0"}
    with av.open(file, format=demuxer, options=options, io_open=_refuse) as container:
        streams = container.streams.audio
        if not streams:
            raise _Unreadable("has no sound")
        stream = streams[0]
        if stream.codec_context is None or stream.codec_context.name not in _CODECS:
            raise _Unreadable(
                "has sound of a kind that cannot be decoded: convert it to WAV or FLAC"
            )
        yield from _decoded(container, stream, most_channels)


def _refuse(*_: Any) -> Any:
    raise _Unreadable("refers to other files, which are not opened")


def _decoded(container: Any, stream: Any, most_channels: int) -> Iterator[Any]:
    rate, samples, resampler, form = 0, 0, None, None
    try:
        for frame in container.decode(stream):
            if resampler is None:
                channels = frame.layout.nb_channels
                if channels > most_channels:
                    raise _Unreadable(f"has {channels} channels: 1 to {most_channels} can be read")
                rate, form = frame.sample_rate, (frame.sample_rate, channels)
                resampler = av.AudioResampler(format="flt", layout=frame.layout, rate=rate)
                yield form
            elif form != (frame.sample_rate, frame.layout.nb_channels):
                raise _Unreadable("changes its rate or its channels: what follows is not read")
            frame.pts = None
            for piece in resampler.resample(frame):
                block = _array(piece, form[1])
                samples += len(block)
                yield block
    except av.EOFError:
        pass
    if resampler is None:
        raise _Unreadable("has no sound")
    announced = _announced_s(container, stream)
    if announced is not None and samples / rate < announced - _SHORT_S:
        raise _Unreadable(f"was cut off: it announces {announced:.3f} s")


def _array(frame: Any, channels: int) -> NDArray[np.float32]:
    array: NDArray[np.float32] = frame.to_ndarray().reshape(-1, channels)
    return array.astype("<f4", copy=False)


def _announced_s(container: Any, stream: Any) -> float | None:
    """Read the duration of the sound, where the file states it and does not estimate it."""
    if container.format.name.startswith("mov") and stream.duration:
        return float(stream.duration * stream.time_base)
    if container.format.name.startswith(("matroska", "asf")) and len(container.streams) == 1:
        return container.duration / 1e6 if container.duration else None
    return None


if __name__ == "__main__":
    main()
